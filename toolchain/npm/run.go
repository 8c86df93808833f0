package npm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/child"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
)

func clientError(problem, remedy string, err error) *toolchain.SetupError {
	return &toolchain.SetupError{Task: "resolve npm packages", Problem: problem, Remedy: remedy, Err: err}
}

// workplace is a folder for one run of npm, with its own home and settings.
type workplace struct {
	*folder
	c    *Client
	root *os.Root
	user *userSettings

	holder string // of the settings

	reports  *sparse       // nil for nobody
	arrive   *arrivals     // nil unless packages are unpacked
	asked    int           // packages about which the registry was asked
	patience time.Duration // for a first answer while versions are chosen
	stale    bool          // npm took what it had, because the registry did not answer

	sharing *flock.Flock // of npm's own cache; nil if the cache is in the folder
}

const (
	projectDir = "project"
	viewDir    = "view"
)

// errHolder means that the settings are not those that were known before npm was asked.
var errHolder = errors.New("npm has other settings now")

func (c *Client) workplace(ctx context.Context, holder string) (_ *workplace, err error) {
	user, err := c.settings(ctx)
	if err != nil {
		return nil, err
	}
	if c.tag(user) != holder {
		return nil, errHolder
	}
	if err := c.running.Take(ctx); ctx.Err() != nil {
		return nil, c.ended(ctx, "resolving packages for other builds")
	} else if err != nil {
		return nil, clientError("npm got no turn to run", "Check that the folder of the cache is there and can be written.", err)
	}
	defer func() {
		if err != nil {
			c.running.Give()
		}
	}()
	var sharing *flock.Flock
	if c.cache != nil {
		if sharing, err = c.shareCache(ctx); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				_ = sharing.Close() // nothing was written
			}
		}()
	}
	dir, err := makeFolder()
	if err != nil {
		return nil, noRoom(err)
	}
	root, err := os.OpenRoot(dir.name)
	if err != nil {
		return nil, noRoom(errors.Join(err, dir.remove()))
	}
	w := &workplace{folder: dir, c: c, root: root, user: user, holder: holder, sharing: sharing}
	for _, name := range []string{projectDir, "home", "tmp"} {
		err = errors.Join(err, root.Mkdir(name, 0o700))
	}
	if err == nil && sharing != nil {
		err = os.MkdirAll(c.npmCache(w), 0o700)
	}
	if err == nil {
		err = root.WriteFile("npmrc", []byte(user.npmrc+ourSettings), 0o600)
	}
	if err != nil {
		return nil, noRoom(errors.Join(err, w.root.Close(), dir.remove()))
	}
	return w, nil
}

const (
	anotherPackage = "another package that does the same"
	otherOrAgain   = "another version or package, or try again: it may have been damaged in transit"
)

// authors is a problem that the author can correct in the manifest.
func authors(text, fix string) error {
	return &toolchain.BuildError{Problems: []toolchain.Problem{{File: ManifestFile, Text: text, Fix: fix}}}
}

func unreadable(err error) error {
	return clientError("what npm installed cannot be read", "Try again.", err)
}

func noRoom(err error) error {
	return clientError("there is no disk space for npm to work in", "Check the temporary folder.", err)
}

// remove also gives back the turn to run npm.
func (w *workplace) remove() error {
	defer w.c.running.Give()
	err := errors.Join(w.root.Close(), w.folder.remove())
	if w.sharing != nil {
		err = errors.Join(err, w.sharing.Close())
	}
	return err
}

func (w *workplace) path(name string) string { return filepath.Join(w.name, filepath.FromSlash(name)) }

// write makes a file of the project.
func (w *workplace) write(name string, content []byte) error {
	if err := w.root.WriteFile(projectDir+"/"+name, content, 0o600); err != nil {
		return noRoom(err)
	}
	return nil
}

// read returns a file of the project.
func (w *workplace) read(name string, limit int64) ([]byte, error) {
	f, err := w.root.Open(projectDir + "/" + name)
	if err != nil {
		return nil, clientError("npm did not write "+name, "Check that npm 10 or newer is on this machine.", err)
	}
	defer func() { _ = f.Close() }()
	text, err := bounded.Read(f, limit)
	if errors.Is(err, bounded.ErrTooLarge) {
		return nil, tooLarge(fmt.Sprintf("%s has more than %d MiB", name, limit>>20), fmt.Sprintf("%d MiB", limit>>20))
	}
	return text, err
}

// maxOutput bounds npm's output. For a few hundred packages with thousands of versions, that is megabytes.
const maxOutput = 64 << 20

// maxSaid bounds npm's messages, and what is kept of its output for an error.
const maxSaid = 1 << 20

// maxMemory is what one run of npm may allocate. Without a limit, 1,700 packages take 600 MiB, which is several times as many as are allowed.
const maxMemory = 1 << 30

// run runs npm in the project, or in the folder for `npm view`. read, if not nil, reads its output, which is JSON.
func (w *workplace) run(ctx context.Context, read func(out io.Reader) error, args ...string) error {
	npm, err := findNPM(w.c.o.NPM)
	if err != nil {
		return err
	}
	folder := projectDir
	if args[0] == "view" {
		folder = viewDir
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// With a prefix npm looks for no project in the folders above.
	args = append(args, "--json", "--prefix="+w.path(folder), "--userconfig="+w.path("npmrc"), "--globalconfig="+w.path("home/none"), "--cache="+w.c.npmCache(w))
	most := w.c.maxMemory
	cmd := command(ctx, w.path(folder), child.WithMemory(most, append([]string{npm}, args...)...)...)
	cmd.Env = append(environment(os.Environ()), "HOME="+w.path("home"), "USERPROFILE="+w.path("home"), "TMPDIR="+w.path("tmp"),
		fmt.Sprintf("NODE_OPTIONS=--max-old-space-size=%d", most*3/4>>20)) // so that it collects its garbage in time
	output, err := w.root.Create("output") // a registry can make npm write more than fits into memory
	if err != nil {
		return noRoom(err)
	}
	defer func() { _ = output.Close() }() // only read from here on
	var text bytes.Buffer
	out, said := &capped{to: output, left: maxOutput}, &capped{to: &text, left: maxSaid}
	stop := w.watch(cancel)
	heard := func() {}
	if w.patience > 0 && !slices.Contains(args, "--offline") {
		silence := time.AfterFunc(w.patience, func() {
			cancel(&unreachedError{"ETIMEDOUT", fmt.Errorf("%w in %s", errSilent, w.patience)})
		})
		defer silence.Stop()
		heard = func() { silence.Stop() }
	}
	connected := false
	cmd.Stdout, cmd.Stderr = out, io.MultiWriter(said, &listener{corrupt: func(url string) { cancel(&corruptError{url}) }, away: func(url, code string) {
		heard()
		if !connected && toolchain.NPMDisconnected(code) { // npm would try three times, one package after the other
			cancel(&unreachedError{code, fmt.Errorf("request to %s failed", printable.Short(url, 200))})
		}
	}, got: func(url string, fetched bool) {
		if fetched {
			heard()
			connected = true
		}
		if name := askedFor(url); name != "" && args[0] == "install" {
			w.asked++
			w.reports.report(Progress{Package: name, Done: w.asked}, false)
		}
	}, stale: func() { w.stale = true }})
	err = cmd.Run()
	if large := stop(); large != nil {
		return large
	}
	bad, corrupt := errors.AsType[*corruptError](context.Cause(ctx))
	away, unreached := errors.AsType[*unreachedError](context.Cause(ctx))
	switch {
	case corrupt:
		return bad
	case unreached:
		return failed(away.code, away.err)
	case ctx.Err() != nil:
		return w.c.ended(ctx, steps[args[0]])
	case out.err != nil:
		return noRoom(out.err)
	case out.left < 0:
		return tooLarge("npm wrote more than "+printable.Size(maxOutput)+" about the packages", printable.Size(maxOutput))
	case err != nil:
		head, _ := io.ReadAll(io.NewSectionReader(output, 0, maxSaid)) // without the output, npm's messages remain
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signaled() || child.OutOfMemory(text.String()) || child.OutOfMemory(string(head)) { // Node.js does not always get to say so
			return tooLarge(fmt.Sprintf("npm needs more than %d MiB of memory for what the registry answers", most>>20), fmt.Sprintf("%d MiB", most>>20))
		}
		return explain(head, text.String(), err)
	}
	if m := unwritten.FindStringSubmatch(text.String()); m != nil {
		_, at, _ := strings.Cut(m[2], filepath.Base(w.name)+"/"+projectDir+"/")
		switch m[1] {
		case "EEXIST", "ENOTDIR", "EISDIR": // the folder is new, so the package is at fault
			return &archiveError{at, "a file and a folder of one name"}
		case "ENAMETOOLONG":
			return &archiveError{at, longName}
		}
		return failed(m[1], fmt.Errorf("it left out files of packages (%s)", m[1]))
	}
	if said.left < 0 { // and may have left out files
		return tooLarge("npm printed more than "+printable.Size(maxSaid)+" about the packages", printable.Size(maxSaid))
	}
	if read == nil {
		return nil
	}
	if err := read(io.NewSectionReader(output, 0, maxOutput)); err != nil {
		return clientError("npm's report about the packages has an unknown format", "Check that npm 10 or newer is on this machine.", err)
	}
	return nil
}

// steps describe npm's commands.
var steps = map[string]string{
	"install": "asking the registry which versions there are", "view": "asking the registry about the packages", "ci": "fetching packages from the registry",
}

// command is npm with a folder to run in. Everything it starts ends with it, because the npm on PATH may start another one.
func command(ctx context.Context, dir string, commandLine ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, commandLine[0], commandLine[1:]...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// unwritten matches npm's only message about a file that it could not unpack, because npm continues. For files that it leaves
// out of hostile archives, it prints a sentence.
var unwritten = lazyregexp.New(`TAR_ENTRY_ERROR (E[A-Z]+)\b([^\n]*)`)

// failed explains a code of npm that is not about the packages.
func failed(code string, err error) error {
	if toolchain.NPMUnreached(code) {
		err = &unreachedError{code, err}
	}
	if problem, remedy := toolchain.NPMFault(code); problem != "" {
		return clientError(problem, remedy, err)
	}
	return clientError("npm failed", "Check that npm 10 or newer works on this machine.", err)
}

// unreachedError means that the registry did not answer, or not like one. One that refuses this machine has answered.
type unreachedError struct {
	code string
	err  error
}

// errSilent means that npm got no answer while there was patience.
var errSilent = errors.New("no answer came")

func (e *unreachedError) Error() string { return e.err.Error() }
func (e *unreachedError) Unwrap() error { return e.err }

func findNPM(name string) (string, error) {
	npm, err := exec.LookPath(name)
	if err != nil {
		return "", clientError(toolchain.NoNPM, toolchain.InstallNPM()+".", err)
	}
	return npm, nil
}

// capped passes on the first bytes that are written to it. left is below 0 if there were more.
type capped struct {
	to   io.Writer
	left int
	err  error
}

func (c *capped) Write(p []byte) (int, error) {
	if c.left >= 0 && c.err == nil {
		_, c.err = c.to.Write(p[:min(len(p), c.left)])
		c.left -= len(p)
	}
	return len(p), nil
}

var notThere = lazyregexp.New(`'([^'\n]{1,300}@[^'\n]{0,300})' (is not in this registry|could not be found)`)

const longName = "the name of a file or folder is too long"

// archiveError reports an archive with a file that npm cannot unpack to its place in the project.
type archiveError struct{ at, why string }

func (e *archiveError) Error() string { return e.why }

// explain names the package: the innermost one that contains the file.
func (e *archiveError) explain(packages []located) error {
	name, folder := "a package", ""
	for _, p := range packages {
		if strings.HasPrefix(e.at, p.at+"/") && len(p.at) > len(folder) {
			name, folder = p.Name+"@"+p.Version, p.at
		}
	}
	return badArchive(name, e.why)
}

// badArchive is a package whose archive cannot be unpacked.
func badArchive(name, why string) error {
	return authors(fmt.Sprintf("npm cannot unpack the archive of %s: %s", name, why), otherOrAgain)
}

// explain interprets npm's messages about a failure. If the author asked for something unavailable, it returns a
// *toolchain.BuildError.
func explain(out []byte, said string, err error) error {
	var answer struct {
		Error struct{ Code, Summary, Detail string }
	}
	_ = json.Unmarshal(out, &answer) // npm that fails early writes none
	code, text := answer.Error.Code, strings.TrimSpace(answer.Error.Summary+"\n"+answer.Error.Detail)
	if code == "" {
		code, text = toolchain.NPMCode(said+string(out)), said
	}
	first, _, _ := strings.Cut(text, "\n")
	first = printable.Short(first, 300)
	if strings.Contains(text, "git error") { // npm 10 tries, and has no git here
		code = "EALLOWGIT"
	}
	switch code {
	case "E404":
		what, fix := "a package", "the name of a package that is there"
		if m := notThere.FindStringSubmatch(text); m != nil {
			name := m[1][:max(0, strings.LastIndex(m[1], "@"))]
			what = quote(name)
			if near := closeName(name); near != "" {
				fix = quote(near) + ", if that is what is meant"
			}
		}
		return authors(what+" is not in the registry", fix)
	case "ENOVERSIONS":
		return authors(first+" that are old enough", "another package, or wait; only a person can allow fresh versions")
	case "ETARGET":
		fix := "a range of versions that there are"
		if strings.Contains(first, "with a date before") {
			fix = "an older range, or wait until the version is old enough; only a person can allow fresh ones"
		}
		return authors(first, fix)
	case "ERESOLVE":
		return authors("packages need incompatible versions of another one: "+first, "compatible ranges")
	case "EBADPLATFORM":
		return authors("a package is not for this machine: "+first, "a package that is JavaScript only")
	case "EALLOWGIT", "EALLOWREMOTE", "EALLOWFILE", "EALLOWDIRECTORY":
		return authors("a package asks for one that is not of the registry, or brings its own: "+first, anotherPackage)
	case "ENAMETOOLONG":
		return badArchive("a package", longName)
	case "EINTEGRITY":
		return otherBytes("a package")
	case "EUSAGE":
		return &LockError{"npm finds that it does not match the requested packages"}
	}
	if unpackable.MatchString(text) {
		return badArchive("a package", first)
	}
	return failed(code, fmt.Errorf("%w: %s", err, printable.Short(strings.TrimRight(strings.TrimSpace(text), "."), 500)))
}

var unpackable = lazyregexp.New(`^(TAR_BAD_ARCHIVE: |zlib: |max decompression ratio exceeded)`)

// watchEvery is how often the size of what npm writes is checked, at most; a check that takes long is followed by ten times its duration
// without one. onDisk is how many times larger than the result that may be, because types, maps and documents are removed later.
const (
	watchEvery = 100 * time.Millisecond
	onDisk     = 4
)

// watch calls end with a problem if npm writes too much, until stop is called. That looks for the last time, and returns the problem.
func (w *workplace) watch(end func(error)) (stop func() error) {
	var found error
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		next := time.NewTimer(watchEvery)
		defer next.Stop()
		for {
			select {
			case <-done:
				return
			case <-next.C:
				began := time.Now()
				if found = w.measure(false); found != nil {
					end(found)
					return
				}
				next.Reset(max(watchEvery, 10*time.Since(began)))
			}
		}
	}()
	return func() error {
		close(done)
		<-over
		if found != nil {
			return found
		}
		return w.measure(true)
	}
}

// measure fails if the folder is larger than packages can be, or npm's own cache than it should ever be: npm keeps the whole of an archive
// there, whatever it unpacks of it.
// It reports what has arrived.
func (w *workplace) measure(last bool) error {
	if w.arrive != nil {
		w.arrive.p.Bytes = 0
		defer func() {
			if w.arrive.p.Bytes > 0 {
				w.reports.report(w.arrive.p, last)
			}
		}()
	}
	var size int64
	files := 0
	o := w.c.o
	maxSize, maxFiles := onDisk*o.MaxBytes, onDisk*o.MaxFiles
	err := fs.WalkDir(w.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // npm moves folders about
		}
		if info, err := entry.Info(); err == nil {
			size += info.Size()
			if info.Mode().IsRegular() {
				w.arrive.see(name, info.Size())
			}
		}
		if files++; files > maxFiles {
			return tooLarge(fmt.Sprintf("the packages have more than %d files with types and documents", maxFiles), fmt.Sprint(o.MaxFiles))
		}
		if size > maxSize {
			return tooLarge(fmt.Sprintf("the packages have more than %d MiB with types and documents", maxSize>>20), fmt.Sprintf("%d MiB", o.MaxBytes>>20))
		}
		return nil
	})
	if err != nil || w.sharing == nil {
		return err
	}
	if size, _ := sizeOf(w.c.npmCache(w)); size > 2*w.c.maxCache {
		return tooLarge(fmt.Sprintf("what npm fetches from the registry fills its cache, which has %d MiB", size>>20), fmt.Sprintf("%d MiB", 2*w.c.maxCache>>20))
	}
	return nil
}
