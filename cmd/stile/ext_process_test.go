package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// home is the STILE_HOME of a test, with the shared cache.
type home struct {
	ctx context.Context
	t   *testing.T
	dir string
	env []string
}

func newHome(t *testing.T) *home {
	t.Helper()
	cachetest.Open(t) // it makes the key
	cache, keyDir := cachetest.Dirs(t)
	key, err := os.ReadFile(filepath.Join(keyDir, "cache.key"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cache.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // so that a process that hangs fails its test
	t.Cleanup(cancel)
	return &home{ctx, t, dir, append(os.Environ(), "STILE_HOME="+dir, "STILE_CACHE="+cache, "STILE_KEYRING=off", "STILE_USER=tom")}
}

func (h *home) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(h.ctx, "stile", args...)
	c.Env = h.env
	return c
}

// stile runs a command that must succeed, and returns its result.
func (h *home) stile(args ...string) string {
	h.t.Helper()
	c := h.command(args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		h.t.Fatalf("stile %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}

// extension writes an extension with one tool "get", whose function has this body.
func (h *home) extension(name, version, body string) (dir string) {
	h.t.Helper()
	return h.extensionWith(name, version, "{}", body)
}

func (h *home) extensionWith(name, version, bindings, body string) (dir string) {
	h.t.Helper()
	dir = filepath.Join(h.t.TempDir(), "extension")
	files := map[string]string{
		"manifest.json": fmt.Sprintf(`{"name": %q, "version": %q, "description": "A test", "tools": ["get"], "bindings": %s}`, name, version, bindings),
		"tool.ts": `import { extension } from "stile";
			export default extension({ tools: { get: { description: "Gets", run: async (_: unknown, env: any) => { ` + body + ` } } } });`,
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	return dir
}

// fetches is an extension whose tool returns the status of a request to a server of this machine.
func (h *home) fetches(name, address string) (dir string) {
	_, port, _ := strings.Cut(address, ":")
	return h.extensionWith(name, "1.0.0", `{"site": {"http": [{"scheme": "http", "host": "127.0.0.1", "port": `+port+`}]}}`,
		`return (await env.site.fetch("http://`+address+`/")).status`)
}

// site is a server that answers only when a test tells it to.
type site struct {
	address string
	asked   chan struct{} // gets a value for each request
	answer  func()        // answers all requests
}

func newSite(t *testing.T) site {
	s := site{asked: make(chan struct{}, 10)}
	answer := make(chan struct{})
	s.answer = sync.OnceFunc(func() { close(answer) })
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		s.asked <- struct{}{}
		<-answer
	}))
	t.Cleanup(server.Close)
	t.Cleanup(s.answer)
	s.address = server.Listener.Addr().String()
	return s
}

// approveAll approves all pending requests.
func (h *home) approveAll() {
	h.t.Helper()
	var list struct {
		Pending []struct {
			Request int64
			Digest  string
		}
	}
	if err := json.Unmarshal([]byte(h.stile("ext", "list", "--json")), &list); err != nil {
		h.t.Fatal(err)
	}
	for _, r := range list.Pending {
		h.stile("ext", "approve", strconv.FormatInt(r.Request, 10), "--yes", "--digest", r.Digest)
	}
}

// lastLine is the error object that a failed command ends with.
func lastLine(t *testing.T, text string) (object struct{ Kind, Message string }) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	whole := struct {
		Error *struct{ Kind, Message string }
	}{&object}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &whole); err != nil {
		t.Fatalf("the last line is not JSON: %v\n%s", err, text)
	}
	return object
}

// TestRevokeUnderCall revokes an extension while a long call of it runs in another process.
func TestRevokeUnderCall(t *testing.T) {
	h := newHome(t)
	h.stile("ext", "add", h.extension("waiter", "1.0.0", `console.log("started"); await new Promise((done) => setTimeout(done, 600_000));`))
	call := h.command("ext", "call", "waiter_get", "--limit", "wall=10m")
	stderr, err := call.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	if first, err := lines.ReadString('\n'); err != nil || first != "[info] started\n" {
		t.Fatalf("got %q, %v", first, err)
	}
	h.stile("ext", "revoke", "waiter", "--yes", "--reason", "enough")
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	var status *exec.ExitError
	if err := call.Wait(); !errors.As(err, &status) || status.ExitCode() != 3 {
		t.Errorf("got %v, want exit code 3", err)
	}
	if got := lastLine(t, string(rest)); got.Kind != "denied" || !strings.Contains(got.Message, "the extension waiter was revoked: enough") {
		t.Errorf("got %v", got)
	}
}

// TestKilledAdd kills processes that add versions, at random moments. Either the old or the new version is active, complete and
// with its entries in the audit log.
func TestKilledAdd(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	start := time.Now()
	h.stile("ext", "add", h.extension("killed", "1.0.0", "return 0"))
	took := time.Since(start)
	active := 0
	for i := 1; i <= 20; i++ {
		add := h.command("ext", "add", h.extension("killed", fmt.Sprintf("1.%d.0", i), fmt.Sprintf("return %d", i)))
		if err := add.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Duration(rand.Int64N(int64(took))), func() { _ = add.Process.Kill() }) // it may have ended
		_ = add.Wait()
		kill.Stop()
		got, err := strconv.Atoi(strings.TrimSpace(h.stile("ext", "call", "killed_get")))
		if err != nil || got != active && got != i {
			t.Fatalf("version %d answers %d, %v; version %d was active before", i, got, err, active)
		}
		active = got
	}
	h.stile("audit", "verify")
	var history struct{ Releases []struct{ State string } }
	if err := json.Unmarshal([]byte(h.stile("ext", "history", "killed", "--json")), &history); err != nil {
		t.Fatal(err)
	}
	for i, r := range history.Releases {
		if (r.State == "active") != (i == 0) {
			t.Errorf("release %d of %d is %s", i, len(history.Releases), r.State)
		}
	}
}

// TestAddAtOnce adds from several processes at the same time, under one name and under several.
func TestAddAtOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const processes = 4
	var wait sync.WaitGroup
	for i := range processes {
		same := h.extension("same", fmt.Sprintf("1.%d.0", i), fmt.Sprintf("return %d", i))
		other := h.extension(fmt.Sprintf("other-%d", i), "1.0.0", fmt.Sprintf("return %d", i))
		wait.Go(func() {
			for _, dir := range []string{same, other} {
				if out, err := h.command("ext", "add", dir).CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			}
		})
	}
	wait.Wait()
	var list struct {
		Extensions []struct {
			Name   string
			Active *struct{ State string }
		}
	}
	if err := json.Unmarshal([]byte(h.stile("ext", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Extensions) != processes+1 {
		t.Errorf("there are %d extensions, not %d", len(list.Extensions), processes+1)
	}
	for _, e := range list.Extensions {
		if e.Active == nil {
			t.Errorf("%s is not active", e.Name)
		}
	}
	var history struct{ Releases []struct{ State string } }
	if err := json.Unmarshal([]byte(h.stile("ext", "history", "same", "--json")), &history); err != nil {
		t.Fatal(err)
	}
	if len(history.Releases) != processes {
		t.Errorf("there are %d releases, not %d", len(history.Releases), processes)
	}
	if got := h.stile("audit", "verify"); !strings.HasPrefix(got, fmt.Sprintf("%d entries", 4*processes)) {
		t.Errorf("got %s", got)
	}
}

// TestLargeRow has a row in the store that no command wrote. It is not read, and doctor says what to do.
func TestLargeRow(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.stile("ext", "list")
	file := filepath.Join(h.dir, lifecycle.File)
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `INSERT INTO audit VALUES (1, 0, json_object('reason', hex(zeroblob(?))), x'')`, lifecycle.MaxRow/2+1)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"doctor"}, "restore it from a backup, or move it away to begin anew: " + file},
		{[]string{"audit", "list"}, "too big (18); stile doctor says which files are damaged and what to do"},
	} {
		if out, err := h.command(tt.args...).CombinedOutput(); err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%v: got %v, %.2000s", tt.args, err, out)
		}
	}
}
