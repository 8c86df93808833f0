package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/capabilities/browser"
	rules "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
)

const browserServer = "@playwright/mcp@0.0.83"

// missing adds rows that this machine cannot measure.
func (b *bench) missing(reason string, rows ...row) {
	for _, r := range rows {
		r.Missing = reason
		b.add(r)
	}
}

// lacks says what this machine lacks to confine programs, or "". Of each list, one program is enough.
func lacks(programs ...[]string) string {
	if os.Geteuid() != 0 {
		return "it needs root"
	}
	for _, names := range programs {
		if found(names...) == "" {
			return strings.Join(names, " or ") + " is not installed"
		}
	}
	return ""
}

// found is the path of the first of these programs that is installed, or "".
func found(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// site is a page on loopback. Each copy of it says its number.
type site struct{ *httptest.Server }

func serveSite() site {
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, `<h2>Part %d</h2><p>A <a href="/part/%d">stile</a> has <b>steps</b>: %s</p>`, i, i, strings.Repeat("one more step, ", 12))
	}
	parts := b.String() + "<table><tr><th>Fence</th><th>Steps</th></tr><tr><td>low</td><td>2</td></tr></table><script>document.title += ' and steps'</script>"
	return site{httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, text := "text/html", `<!doctype html><title>Stiles</title><link rel="stylesheet" href="/style.css"><h1>Page `+r.FormValue("n")+"</h1>"+parts //nolint:gosec // a number
		if r.URL.Path == "/style.css" {
			kind, text = "text/css", "body { font-family: sans-serif; max-width: 40em }"
		}
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, text) // the browser notices
	}))}
}

func (s site) port() string {
	at, _ := url.Parse(s.URL)
	return at.Port()
}

func (s site) page(n int) string { return fmt.Sprintf("%s/?n=%d", s.URL, n) }

// rungBrowser opens pages and reads them, in browsers that run.
func (b *bench) rungBrowser(ctx context.Context, ours client, peers string, at site) (err error) {
	opened := row{Key: "rung3_ms", What: "rung 3 over MCP: open a page of 8 KB and read it as Markdown, warm browser", Unit: "ms", AtMost: 80}
	theirsOpened := row{Key: "rung3_peer_ms", What: "... Playwright's server from npm: navigate and snapshot, the same browser", Unit: "ms"}
	ratio := row{Key: "rung3_ratio", What: "... rung 3 / Playwright's server"}
	session := row{Key: "rung3_session_mib", What: "rung 3: memory of one more session with that page", Unit: "MiB", AtMost: 14}
	theirSession := row{Key: "rung3_peer_session_mib", What: "... Playwright's server: a process and a browser for each session", Unit: "MiB"}
	chromium := found("chromium-headless-shell", "chromium")
	if reason := lacks([]string{"chromium-headless-shell", "chromium"}); reason != "" {
		b.missing(reason, opened, theirsOpened, ratio, session, theirSession)
		return nil
	}
	if session.Value, err = b.sessionMiB(ctx, at); err != nil { // before other browsers share what these have
		return err
	}
	if err := npm(ctx, peers, browserServer); err != nil {
		return err
	}
	theirs, err := connect(ctx, nil, "node", filepath.Join(peers, "node_modules", "@playwright", "mcp", "cli.js"),
		"--executable-path", chromium, "--headless", "--isolated", "--no-sandbox", "--output-dir", filepath.Join(b.dir, "playwright"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.Close()) }()
	var took, peer measure.Series
	for n := range b.rounds(40) + 1 {
		var a, z []float64
		for k := range 5 {
			id := n*5 + k
			said, page := fmt.Sprintf("Page %d", id), map[string]any{"url": at.page(id)}
			err := errors.Join(
				spent(&a, func() error { return ours.call(ctx, "browser_open", page, "# "+said) }),
				spent(&z, func() error {
					return errors.Join(theirs.call(ctx, "browser_navigate", page, at.page(id)), theirs.call(ctx, "browser_snapshot", map[string]any{}, `"`+said+`"`))
				}),
			)
			if err != nil {
				return err
			}
		}
		if n > 0 {
			took, peer = append(took, a), append(peer, z)
		}
	}
	b.add(opened.of(took))
	b.add(theirsOpened.of(peer))
	b.add(ratio.ratio(took, peer))
	b.add(session)
	theirSession.Value, err = treeMiB(theirs.process.Process.Pid)
	b.add(theirSession)
	return err
}

// sessionMiB opens eight sessions in one browser, and returns what each takes beyond the first.
func (b *bench) sessionMiB(ctx context.Context, at site) (_ float64, err error) {
	port, err := strconv.ParseUint(at.port(), 10, 16)
	if err != nil {
		return 0, err
	}
	here := capability.NewSite(filepath.Join(b.dir, "browser"), nil)
	defer func() { err = errors.Join(err, here.Close()) }()
	rights := browser.Rights{Rules: []rules.Rule{{Scheme: "http", Host: "127.0.0.1", Port: uint16(port)}}}
	opened, err := rights.Open(ctx, here)
	if err != nil {
		return 0, err
	}
	var before float64
	const sessions = 8
	for n := range sessions {
		one, err := opened.(*browser.Grant).Open(ctx)
		if err != nil {
			return 0, err
		}
		session := one.(*browser.Session)
		defer func() { _ = session.Close() }() // the site closes what is left
		if err := done(ctx)(session.Open(ctx, at.page(n))); err != nil {
			return 0, err
		}
		if err := done(ctx)(session.Markdown(ctx)); err != nil {
			return 0, err
		}
		if n > 0 && n < sessions-1 {
			continue
		}
		now, err := treeMiB(os.Getpid())
		if err != nil {
			return 0, err
		}
		if n == 0 {
			before = now
		} else {
			return (now - before) / (sessions - 1), nil
		}
	}
	return 0, nil
}

// done waits until a session has done something.
func done(ctx context.Context) func(*browser.Pending, error) error {
	return func(p *browser.Pending, err error) error {
		if err == nil {
			_, err = p.Take(ctx)
		}
		return err
	}
}

// treeMiB is the memory of the processes below one, with their shares of what they share.
func treeMiB(pid int) (float64, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	below := map[int][]int{}
	for _, file := range stats {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(content), ") ")
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		var state string
		var parent int
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil {
			below[parent] = append(below[parent], child)
		}
	}
	total := 0.0
	for all := below[pid]; len(all) > 0; all = all[1:] {
		all = append(all, below[all[0]]...)
		m, err := measure.Memory(all[0])
		if err == nil {
			total += m.Proportional / 1024
		}
	}
	return total, nil
}

// makeTree is a command that makes a repository of n files of 1 KB in the current folder.
func makeTree(n int) string {
	return fmt.Sprintf(`git init -q . && git config user.name bench && git config user.email bench@localhost && git config gc.auto 0 || exit 1
text=; i=0; while [ $i -lt 40 ]; do text="$text a step and a stile, line $i
"; i=$((i + 1)); done
i=0; while [ $i -lt %d ]; do d=d$((i / 100)); [ -d $d ] || mkdir $d; echo "$i$text" > $d/f$i.txt; i=$((i + 1)); done
git add . && git commit -q -m tree && git gc -q && git status --porcelain | wc -l`, n)
}

const status = "git status --porcelain | wc -l; "

// change is a command that changes n files of such a tree.
func change(n, id int) string {
	return fmt.Sprintf(`i=0; while [ $i -lt %d ]; do echo change %d >> d$((i / 100))/f$i.txt; i=$((i + 1)); done; echo made %d`, n, id, id)
}

// rungSandbox has git look at a tree of the workspace in a container that runs, changes files there, and has them back.
func (b *bench) rungSandbox(ctx context.Context, agent func(string) (client, error)) (err error) {
	const files = 10_000
	ten := row{Key: "rung4_ms", What: "rung 4 over MCP, warm sandbox: git status of 10,000 files, change 10, sync back", Unit: "ms", AtMost: 300}
	peer := row{Key: "rung4_peer_ms", What: "... rsync there, the same in a new container, rsync back", Unit: "ms"}
	ratio := row{Key: "rung4_ratio", What: "... rung 4 / that"}
	mounted := row{Key: "rung4_mount_ms", What: "... the new container alone, on a bind mount", Unit: "ms"}
	sync := row{Key: "rung4_sync_ms", What: "rung 4: change 10 of 10,000 files, sync back", Unit: "ms"}
	few := row{Key: "rung4_exists_ratio", What: "... / change 10 of 10 files", AtMost: 1.2}
	all := row{Key: "rung4_all_ms", What: "rung 4: change all 10,000 files, sync back", Unit: "ms"}
	allPeer := row{Key: "rung4_all_peer_ms", What: "... rsync there, the same in a new container, rsync back", Unit: "ms"}
	allRatio := row{Key: "rung4_all_ratio", What: "... rung 4 / that"}
	if reason := lacks([]string{"crun", "runc"}, []string{"git"}); reason != "" {
		b.missing(reason, ten, peer, ratio, mounted, sync, few, all, allPeer, allRatio)
		return nil
	}
	big, err := agent("big")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, big.Close()) }()
	small, err := agent("small")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, small.Close()) }()
	sandbox := func(c client, command, want string) error {
		return c.call(ctx, "sandbox_run", map[string]any{"command": command, "timeout": 300}, want)
	}
	if err := errors.Join(sandbox(big, makeTree(files), "exit code 0"), sandbox(small, makeTree(10), "exit code 0")); err != nil {
		return err
	}
	c, err := b.newContainer()
	if err != nil {
		return err
	}
	reason := lacks([]string{"rsync"})
	if reason == "" {
		err := c.run(ctx, c.tree, makeTree(files), "0")
		if err == nil {
			err = errors.Join(rsync(ctx, c.tree, c.copied), rsync(ctx, c.tree, c.mounted))
		}
		if err != nil {
			reason = strings.ReplaceAll(fmt.Sprintf("%.200s", err), "\n", " ")
		}
	}
	var whole, synced, syncedFew, wholePeer, wholeMounted, alls, allsPeer measure.Series
	made := func(id int) string { return fmt.Sprintf("made %d\n", id) }
	for n := range b.rounds(40) + 1 {
		var t, w, f, p, m []float64
		err := errors.Join(
			spent(&t, func() error { return sandbox(big, status+change(10, n), made(n)+"changed ") }),
			spent(&w, func() error { return sandbox(big, change(10, n), made(n)+"changed ") }),
			spent(&f, func() error { return sandbox(small, change(10, n), made(n)+"changed ") }),
		)
		if reason == "" {
			err = errors.Join(err,
				spent(&p, func() error { return c.synced(ctx, status+change(10, n), made(n)) }),
				spent(&m, func() error { return c.run(ctx, c.mounted, status+change(10, n), made(n)) }),
			)
		}
		if err != nil {
			return err
		}
		if n > 0 {
			whole, synced, syncedFew = append(whole, t), append(synced, w), append(syncedFew, f)
			wholePeer, wholeMounted = append(wholePeer, p), append(wholeMounted, m)
		}
	}
	for n := range 3 { // they take seconds
		id := 1000 + n
		var a, p []float64
		err := spent(&a, func() error { return sandbox(big, change(files, id), made(id)+"9000 changes left out") })
		if reason == "" {
			err = errors.Join(err, spent(&p, func() error { return c.synced(ctx, change(files, id), made(id)) }))
		}
		if err != nil {
			return err
		}
		alls, allsPeer = append(alls, a), append(allsPeer, p)
	}
	b.add(ten.of(whole))
	if reason == "" {
		b.add(peer.of(wholePeer))
		b.add(ratio.ratio(whole, wholePeer))
		b.add(mounted.of(wholeMounted))
	} else {
		b.missing(reason, peer, ratio, mounted)
	}
	b.add(sync.of(synced))
	b.add(few.ratio(synced, syncedFew))
	b.add(all.of(alls))
	if reason == "" {
		b.add(allPeer.of(allsPeer))
		b.add(allRatio.ratio(alls, allsPeer))
	} else {
		b.missing(reason, allPeer, allRatio)
	}
	return nil
}

// container runs commands in new containers, which see the programs of this machine and a folder. It is what docker run with a bind
// mount does, without a daemon and layers.
type container struct {
	runtime []string
	dir     string
	// tree and copied are made alike by rsync; mounted is one more copy.
	tree, copied, mounted string
}

func (b *bench) newContainer() (*container, error) {
	dir := filepath.Join(b.dir, "container")
	c := &container{
		runtime: []string{found("runc", "crun"), "--root", filepath.Join(dir, "state")},
		dir:     dir, tree: filepath.Join(dir, "tree"), copied: filepath.Join(dir, "copied"), mounted: filepath.Join(dir, "mounted"),
	}
	root := filepath.Join(dir, "root")
	for _, folder := range []string{"tree", "copied", "mounted", "root/usr", "root/work", "root/proc", "root/dev", "root/tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(root, name)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// run runs a command in a tree.
func (c *container) run(ctx context.Context, tree, script, want string) error {
	type object = map[string]any
	config, err := json.Marshal(object{
		"ociVersion": "1.0.2",
		"process": object{
			"args": []string{"sh", "-c", script}, "cwd": "/work", "env": []string{"PATH=/usr/bin", "HOME=/tmp"}, "noNewPrivileges": true,
			"user": object{"uid": 0, "gid": 0}, "capabilities": object{},
		},
		"root": object{"path": "root", "readonly": true},
		"mounts": []object{
			{"destination": "/proc", "type": "proc", "source": "proc"},
			{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755", "size=64k"}},
			{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "nodev", "size=64m"}},
			{"destination": "/usr", "type": "bind", "source": "/usr", "options": []string{"rbind", "ro"}},
			{"destination": "/work", "type": "bind", "source": tree, "options": []string{"rbind", "rw"}},
		},
		"linux": object{"namespaces": []object{{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}}},
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dir, "config.json"), config, 0o600); err != nil {
		return err
	}
	return command(ctx, want, c.runtime[0], append(slices.Clip(c.runtime[1:]), "run", "--bundle", c.dir, "bench-"+strconv.Itoa(os.Getpid()))...)
}

// synced runs a command in a copy of the tree, and copies what it changed.
func (c *container) synced(ctx context.Context, script, want string) error {
	return errors.Join(
		rsync(ctx, c.tree, c.copied),
		c.run(ctx, c.copied, script, want),
		rsync(ctx, c.copied, c.tree),
	)
}

// rsync makes one tree like another.
func rsync(ctx context.Context, from, to string) error {
	return command(ctx, "", "rsync", "-a", "--delete", from+"/", to)
}

// command runs a command, whose output must have a text.
func command(ctx context.Context, want, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err == nil && !strings.Contains(string(out), want) {
		err = errors.New("not " + want)
	}
	if err != nil {
		return fmt.Errorf("%s printed %.500s: %w", filepath.Base(name), out, err)
	}
	return nil
}
