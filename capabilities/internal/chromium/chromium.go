// Package chromium runs Debian's headless Chromium, confined, and speaks its DevTools protocol over a pipe. On Linux, with the right to
// make namespaces, the browser runs as nobody in an empty network, among no other processes, and on a file system that has only what it
// needs to run and a small disk of its own. It ends with this process, however that ends, and leaves nothing behind. Nothing listens on a
// port.
package chromium

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/internal/printable"
)

// Options configures a [Browser]. Every field may be zero.
type Options struct {
	// Path is the program. Default: what [Find] finds.
	Path string
	// Args are added to the command line.
	Args []string
	// Network is the path of a network namespace for the browser. It is required unless Unconfined is set.
	Network string
	// Unconfined runs the browser in the network and on the file system of this process. Root still runs it as nobody.
	Unconfined bool
	// Memory is how many bytes one process of a page may have. Default 512 MiB.
	Memory int64
	// Total is how many bytes all processes of the browser may have together. Default 1.5 GiB.
	Total int64
	// Disk is how many bytes the browser may write: its profile, caches and downloads. It is enforced where the browser is confined.
	// Default 256 MiB.
	Disk int64
}

// Browser is a running browser. It is safe for concurrent use. Its creator closes it.
type Browser struct {
	*conn
	options Options
	cell    *cell
	process *os.Process
	// stderr is the beginning of what it wrote there.
	stderr *beginning

	done   chan struct{} // closed when the process has ended and nothing of it is left
	closed sync.Once

	mu      sync.Mutex
	exit    error
	crashed func(pid int)
	worked  func(took time.Duration)
}

// ErrMissing is the error of a machine without Chromium.
var ErrMissing = errors.New("chromium-headless-shell is not installed: `apt install chromium-headless-shell`")

// paths are where the program is. A script that starts it would stand between this process and the browser.
var paths = []string{
	"/usr/lib/chromium/chromium-headless-shell",
	"/usr/lib64/chromium-browser/headless_shell",
	"/opt/chromium/chrome-headless-shell",
}

// Find returns the path of the program.
func Find() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chrome-headless-shell", "headless_shell"} {
		if path, err := exec.LookPath(name); err == nil && !isScript(path) {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				return path, nil
			}
		}
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", ErrMissing
}

func isScript(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	var start [2]byte
	n, _ := f.Read(start[:])
	return string(start[:n]) == "#!"
}

// profile is the folder of everything that the browser writes, on its own disk.
const profile = "/tmp/stile"

// flags are those of every browser. Chromium's own sandbox stays on.
func flags(dir string) []string {
	return []string{
		"--headless",
		"--remote-debugging-pipe",
		"--user-data-dir=" + filepath.Join(dir, "profile"),
		"--no-first-run",
		"--no-default-browser-check",
		"--no-pings",
		"--no-service-autorun",
		"--password-store=basic",
		"--use-mock-keychain",
		"--mute-audio",
		"--hide-scrollbars",
		"--disable-gpu",
		"--disable-3d-apis", // WebGL without a GPU takes the processor for itself
		"--disable-dev-shm-usage",
		"--disable-background-networking",
		"--disable-breakpad",
		"--disable-crash-reporter",
		"--disable-client-side-phishing-detection",
		"--disable-component-extensions-with-background-pages",
		"--disable-component-update",
		"--disable-default-apps",
		"--disable-domain-reliability",
		"--disable-extensions",
		"--disable-notifications",
		"--disable-print-preview",
		"--disable-quic",
		"--disable-speech-api",
		"--disable-sync",
		"--disable-background-timer-throttling",
		"--disable-backgrounding-occluded-windows",
		"--disable-renderer-backgrounding",
		"--disable-features=DialMediaRouteProvider,MediaRouter,OptimizationHints,OptimizationGuideModelDownloading,Translate,AutofillServerCommunication,CertificateTransparencyComponentUpdater,AsyncDns,DnsOverHttps,WebTransport,InterestFeedContentSuggestions,PaintHolding,BackForwardCache,Prerender2,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable",
		"--block-new-web-contents", // no popups
		"--deny-permission-prompts",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", // the proxy looks names up, and nothing else
		"--proxy-bypass-list=<-loopback>",
		"--js-flags=--max-old-space-size=256",
		"--window-size=1280,800",
		"--force-color-profile=srgb",
		"--lang=en-US",
		"--metrics-recording-only",
		"--no-startup-window",
	}
}

// startTime bounds the start of a browser, until it answers.
const startTime = 20 * time.Second

// Start starts a browser, and returns when it answers. ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Browser, error) {
	if o.Path == "" {
		path, err := Find()
		if err != nil {
			return nil, err
		}
		o.Path = path
	}
	o.Memory = cmp.Or(o.Memory, 512<<20)
	o.Total = cmp.Or(o.Total, 1536<<20)
	o.Disk = cmp.Or(o.Disk, 256<<20)
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	c, err := newCell(o)
	if err != nil {
		return nil, err
	}
	b := &Browser{options: o, cell: c, stderr: &beginning{}, done: make(chan struct{})}
	if err := b.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start Chromium: %w", err), c.close())
	}
	var version struct{ Product string }
	if err := b.Call(ctx, "", "Browser.getVersion", nil, &version); err != nil {
		_ = b.Close()
		return nil, fmt.Errorf("start Chromium: %w%s", err, b.words())
	}
	return b, nil
}

// words are what the browser wrote to its standard error, to explain why it ended.
func (b *Browser) words() string {
	text := strings.TrimSpace(b.stderr.String())
	if text == "" {
		return ""
	}
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.Contains(line, "dbus") })
	return ": " + printable.Short(strings.Join(lines, "; "), 500)
}

func (b *Browser) start() error {
	var files [4]*os.File // the browser's ends, then ours
	defer func() {
		for _, f := range files[:2] {
			_ = f.Close() // nil is no fault
		}
	}()
	var err error
	if files[0], files[3], err = os.Pipe(); err == nil {
		files[2], files[1], err = os.Pipe()
	}
	if err != nil {
		return errors.Join(err, files[2].Close(), files[3].Close())
	}
	cmd := exec.Command(b.options.Path, slices.Concat(flags(b.cell.dir), b.options.Args)...) //nolint:noctx // it outlives the context of its start
	cmd.Env = []string{"HOME=" + b.cell.dir, "TMPDIR=" + b.cell.dir, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "FONTCONFIG_PATH=/etc/fonts", "TZ=UTC"}
	cmd.Dir = b.cell.dir
	cmd.Stderr = b.stderr
	cmd.ExtraFiles = []*os.File{files[0], files[1]}
	cmd.WaitDelay = time.Second
	if err := b.cell.start(cmd, b.options); err != nil {
		return errors.Join(err, files[2].Close(), files[3].Close())
	}
	b.process = cmd.Process
	b.conn = newConn(files[2], files[3])
	go func() {
		<-b.ended // it closed its pipe, we closed ours, or it wrote what is no message
		b.cell.kill(cmd.Process)
	}()
	go func() {
		err := cmd.Wait()
		b.mu.Lock()
		b.exit = err
		b.mu.Unlock()
		gone := ErrGone
		if err != nil {
			gone = fmt.Errorf("%w: %w", ErrGone, err)
		}
		b.fail(gone)
		_ = b.cell.close() // nothing can be done about what is left of a folder
		close(b.done)
	}()
	go b.watch()
	return nil
}

// ErrGone is the error of every call once the browser has ended.
var ErrGone = errors.New("the browser has ended")

// Err is ErrGone once the browser answers no more. Then it has ended, or is about to.
func (b *Browser) Err() error {
	b.conn.mu.Lock()
	defer b.conn.mu.Unlock()
	return b.err
}

// Done is closed when the browser has ended and nothing is left of it.
func (b *Browser) Done() <-chan struct{} { return b.done }

// Close kills the browser with all its processes, and returns when they have ended. Closing again does nothing.
func (b *Browser) Close() error {
	b.closed.Do(func() {
		b.fail(ErrGone)
		b.cell.kill(b.process)
	})
	<-b.done
	return nil
}

// Pid is the process id of the browser, for tests.
func (b *Browser) Pid() int { return b.process.Pid }

// Memory is how many bytes its processes take, with their parts of what they share. It is 0 where the system does not say.
func (b *Browser) Memory() int64 { return proportional(b.process.Pid) }

// Folder returns a new folder on the browser's disk, as the browser names it. [Browser.Open] opens files in it.
func (b *Browser) Folder(name string) string { return filepath.Join(b.cell.dir, name) }

// Open opens a file that the browser wrote, by a path that Folder returned. It follows no links.
func (b *Browser) Open(path string) (*os.File, error) { return b.cell.open(path) }

// RemoveAll removes a folder that Folder returned.
func (b *Browser) RemoveAll(path string) error { return b.cell.removeAll(path) }

// OnKill sets the function that is called when a process of a page was killed because it took too much memory.
func (b *Browser) OnKill(f func(pid int)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.crashed = f
}

// OnWork sets the function that is told a few times a second how much processor time the browser's processes took. It is not told where the
// system does not say.
func (b *Browser) OnWork(f func(took time.Duration)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.worked = f
}

// beginning keeps the first bytes that are written to it.
type beginning struct {
	mu   sync.Mutex
	kept []byte
}

const maxWords = 8 << 10

func (b *beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, p[:min(len(p), maxWords-len(b.kept))]...)
	return len(p), nil
}

func (b *beginning) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.kept)
}
