package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/sqlite/sqlitetest"
	"github.com/stilehost/stile/toolchain"
)

// home is a folder of durable state, with the options of its managers.
type home struct {
	t       testing.TB
	options Options
}

var (
	shared      sync.Mutex
	sharedHost  *host.Host
	sharedTools *toolchain.Toolchain
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asBundler {
		if err := serveAsBundler(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := sqlitetest.InMemory(m.Run)
	if sharedHost != nil {
		_ = sharedTools.Close()
		_ = sharedHost.Close()
	}
	os.Exit(code)
}

func newHome(t testing.TB) *home {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if sharedHost == nil {
		cacheDir, keyDir := cachetest.Dirs(t)
		h, err := host.New(context.Background(), host.Options{CacheDir: cacheDir, KeyDir: keyDir})
		if err != nil {
			t.Fatal(err)
		}
		tools, err := toolchain.New(context.Background(), h, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir})
		if err != nil {
			t.Fatal(err)
		}
		sharedHost, sharedTools = h, tools
	}
	dir := t.TempDir()
	state := extension.NewState(dir, func(console.Level, string) {})
	t.Cleanup(func() { _ = state.Close() })
	return &home{t, Options{
		Dir: dir, Host: sharedHost, State: state, Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return sharedTools, nil },
	}}
}

// open opens a manager, like a new process.
func (h *home) open() *Manager {
	h.t.Helper()
	m, err := Open(h.t.Context(), h.options)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = m.Close() })
	return m
}

// policyOf makes managers that are opened from now on follow a policy.
func (h *home) policyOf(text string) {
	h.t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		h.t.Fatal(err)
	}
	h.options.Policy = p
}

var (
	agent  = Viewer{User: "tom", Agent: "a"}
	own    = extension.Scope{Kind: extension.Agent, Owner: "a"}
	person = Decision{By: "user:tom", Via: "terminal"}
)

// draft is an extension of one tool "get" that returns value, asking for permissions.
func draft(name, value, permissions string) Draft {
	source := fmt.Sprintf(`import { extension } from "stile";
export default extension({ tools: { get: { description: "Gets a value", input: { type: "object" }, run: async (input, env) => (%s) } } });`, value)
	return tool(name, "get", source, permissions)
}

func tool(name, tools, source, permissions string) Draft {
	if permissions == "" {
		permissions = "{}"
	}
	return Draft{
		Scope:    own,
		Manifest: fmt.Appendf(nil, `{"name": %q, "version": "1.0.0", "description": "A test", "tools": ["%s"], "permissions": %s}`, name, strings.ReplaceAll(tools, ",", `","`), permissions),
		Files:    map[string][]byte{"tool.ts": []byte(source)}, Author: "agent:a", Via: "test",
	}
}

func write(t *testing.T, m *Manager, d Draft) *Written {
	t.Helper()
	w, err := m.Write(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func approve(t *testing.T, m *Manager, r Release) {
	t.Helper()
	d := person
	d.Release, d.Digest = r.ID, r.Digest
	if _, err := m.Approve(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// says calls a tool and checks its result.
func says(t *testing.T, m *Manager, name, want string) {
	t.Helper()
	r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: name})
	if err != nil || string(r.Output) != want {
		t.Fatalf("%s: got %s, %v, want %s", name, r.Output, err, want)
	}
}

// offered is the tools that a viewer can call.
func offered(t *testing.T, m *Manager, v Viewer) []Tool {
	t.Helper()
	tools, err := m.Tools(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// isGone checks that a tool is no longer offered.
func isGone(t *testing.T, m *Manager, name string) {
	t.Helper()
	_, err := m.Call(t.Context(), Call{Viewer: agent, Tool: name})
	if unknown := (*UnknownToolError)(nil); !errors.As(err, &unknown) {
		t.Fatalf("%s: got %v, want an UnknownToolError", name, err)
	}
}

// eventually waits for an effect of another goroutine or manager.
func eventually(t *testing.T, m *Manager, what string, ok func() bool) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for {
		changed := m.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("it never came that %s", what)
		}
	}
}

// An extension that only computes activates at once, is available after a restart without a new build, and can return to an
// earlier version.
func TestLife(t *testing.T) {
	h := newHome(t)
	m := h.open()
	first := write(t, m, draft("answer", "1", ""))
	if first.Release.State != Active || first.Release.Line == "" {
		t.Fatalf("got %+v, want it active by a line of the policy", first.Release)
	}
	says(t, m, "answer_get", "1")
	if again := write(t, m, draft("answer", "1", "")); !again.Unchanged || again.Release.ID != first.Release.ID {
		t.Errorf("the same bytes are another release: %+v", again.Release)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}

	h.options.Toolchain = func(context.Context) (*toolchain.Toolchain, error) { return nil, errors.New("nothing is to be built") }
	m = h.open()
	says(t, m, "answer_get", "1")
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}

	h.options.Toolchain = func(context.Context) (*toolchain.Toolchain, error) { return sharedTools, nil }
	m = h.open()
	second := write(t, m, draft("answer", "2", ""))
	says(t, m, "answer_get", "2")
	d := person
	if _, err := m.Rollback(t.Context(), own, "answer", first.Version.Digest, d); err != nil {
		t.Fatal(err)
	}
	says(t, m, "answer_get", "1")
	history, err := m.History(t.Context(), own, "answer")
	if err != nil || len(history) != 3 || history[0].State != Active || history[1].State != Superseded || history[1].Digest != second.Version.Digest {
		t.Errorf("got %+v, %v", history, err)
	}
	if _, err := m.Revoke(t.Context(), own, "answer", d); err != nil {
		t.Fatal(err)
	}
	isGone(t, m, "answer_get")
	if _, err := m.Rollback(t.Context(), own, "answer", first.Version.Digest, d); !errors.As(err, new(*StateError)) {
		t.Errorf("what was revoked is brought back: %v", err)
	}
	if _, err := m.Rollback(t.Context(), own, "answer", second.Version.Digest, d); err != nil {
		t.Errorf("what was superseded before is not brought back: %v", err)
	}
	if entries, _, err := m.VerifyAudit(t.Context()); err != nil || entries == 0 {
		t.Errorf("got %d, %v", entries, err)
	}
}

// A request that was waiting when its extension was revoked was never active. It is denied, and only the active version is revoked.
func TestRevokedWhileOneWaits(t *testing.T) {
	m := newHome(t).open()
	first := write(t, m, draft("answer", "1", ""))
	waits := write(t, m, draft("answer", "2", `{"network": ["example.com"]}`))
	d := person
	d.Reason = "too much"
	r, err := m.Revoke(t.Context(), own, "answer", d)
	if err != nil || r.ID != first.Release.ID || r.State != Revoked || r.Line != "" {
		t.Errorf("got %+v, %v", r, err)
	}
	history, err := m.History(t.Context(), own, "answer")
	if err != nil || len(history) != 2 || history[0].State != Denied || history[0].Reason != "too much" || history[1].State != Revoked {
		t.Errorf("got %+v, %v", history, err)
	}
	var state *StateError
	if _, err := m.Rollback(t.Context(), own, "answer", first.Version.Digest, d); !errors.As(err, &state) || state.Release != first.Release.ID {
		t.Errorf("got %v", err)
	}
	if _, err := m.Rollback(t.Context(), own, "answer", waits.Version.Digest, d); !errors.As(err, new(*NotFoundError)) {
		t.Errorf("got %v", err)
	}
}

// A caller of a missing tool is told what became of it.
func TestFindSaysWhatBecameOfIt(t *testing.T) {
	m := newHome(t).open()
	asked := write(t, m, draft("answer", "1", `{"network": ["example.com"]}`)).Release
	d := person
	d.Release, d.Digest, d.Reason = asked.ID, asked.Digest, "ask for one host only"
	if _, err := m.Deny(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		viewer Viewer
		want   string
	}{
		{agent, "there is no extension answer; answer was denied by user:tom (ask for one host only) in scope agent:a (request 1)"},
		{Viewer{Agent: "b"}, "there is no extension answer"},
	} {
		if _, err := m.Find(t.Context(), tt.viewer, "answer"); !errors.As(err, new(*NotFoundError)) || err.Error() != tt.want {
			t.Errorf("%+v: got %v", tt.viewer, err)
		}
	}
}

// A draft that requests more authority waits for a person, who decides about the displayed bytes. Such an update waits while the
// old version serves.
func TestApproval(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"updates": "same"}`)
	m := h.open()
	w := write(t, m, draft("notes", "1", `{"kv": true}`))
	if w.Release.State != Pending || len(w.Changes) == 0 {
		t.Fatalf("got %+v, %v", w.Release, w.Changes)
	}
	isGone(t, m, "notes_get")
	d := person
	d.Release, d.Digest = w.Release.ID, strings.Repeat("0", 64)
	if _, err := m.Approve(t.Context(), d); !errors.As(err, new(*DigestError)) {
		t.Errorf("other bytes are approved: %v", err)
	}
	approve(t, m, w.Release)
	says(t, m, "notes_get", "1")
	d.Digest = w.Release.Digest
	if _, err := m.Approve(t.Context(), d); !errors.As(err, new(*StateError)) {
		t.Errorf("what is active is approved again: %v", err)
	}

	same := write(t, m, draft("notes", "2", `{"kv": true}`))
	if same.Release.State != Active {
		t.Errorf("an update that asks for no more is %s", same.Release.State)
	}
	says(t, m, "notes_get", "2")
	more := write(t, m, draft("notes", "3", `{"kv": true, "network": ["example.com"]}`))
	if more.Release.State != Pending {
		t.Errorf("an update that asks for more is %s", more.Release.State)
	}
	says(t, m, "notes_get", "2")
	other := write(t, m, draft("notes", "4", `{"kv": true, "network": ["example.com"]}`))
	d.Release, d.Digest = more.Release.ID, more.Release.Digest
	if _, err := m.Approve(t.Context(), d); !errors.As(err, new(*StateError)) {
		t.Errorf("what was withdrawn is approved: %v", err)
	}
	d.Release, d.Digest = other.Release.ID, other.Release.Digest
	if _, err := m.Deny(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	says(t, m, "notes_get", "2")
	if pending, err := m.Pending(t.Context()); err != nil || len(pending) != 0 {
		t.Errorf("got %v, %v", pending, err)
	}
}

const waiting = `import { extension } from "stile";
const input = { type: "object" };
export default extension({ tools: {
	wait: { description: "Waits", input, run: async (_, env) => { env.console.log("here"); await env.clock.sleep(60_000); return 1; } },
	spin: { description: "Spins", input, run: (_, env) => { env.console.log("here"); for (;;); } },
	hold: { description: "Catches all", input, run: async (_, env) => { env.console.log("here"); for (;;) try { await env.clock.sleep(60_000); } catch {} } },
} });`

// A revocation ends running calls, by this process or another one, whatever the tool does.
func TestRevokeEndsCalls(t *testing.T) {
	for _, name := range []string{"wait", "spin", "hold"} {
		for _, by := range []string{"this process", "another"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				h := newHome(t)
				m := h.open()
				write(t, m, tool("slow", "hold,spin,wait", waiting, `{"clock": true, "console": true}`))
				began, ended := make(chan struct{}), make(chan error, 1)
				go func() {
					_, err := m.Call(context.WithoutCancel(t.Context()), Call{Viewer: agent, Tool: "slow_" + name, Log: func(console.Level, string) { close(began) }})
					ended <- err
				}()
				select {
				case <-began:
				case err := <-ended:
					t.Fatalf("it ended before it was revoked: %v", err)
				}
				d := person
				d.Reason = "not wanted"
				who := m
				if by == "another" {
					who = h.open()
				}
				if _, err := who.Revoke(t.Context(), own, "slow", d); err != nil {
					t.Fatal(err)
				}
				revoked := (*RevokedError)(nil)
				if err := <-ended; !errors.As(err, &revoked) || revoked.Reason != "not wanted" {
					t.Errorf("got %v, want a RevokedError with the reason", err)
				}
				isGone(t, m, "slow_"+name)
			})
		}
	}
}

// A running call finishes with its version when an update arrives.
func TestUpdateLetsCallsEnd(t *testing.T) {
	m := newHome(t).open()
	const source = `import { extension } from "stile";
export default extension({ tools: { get: { description: "Waits a little", input: { type: "object" }, run: async (_, env) => { env.console.log("here"); await env.clock.sleep(%d); return %d; } } } });`
	const asks = `{"clock": true, "console": true}`
	write(t, m, tool("slow", "get", fmt.Sprintf(source, 500, 1), asks))
	began, ended := make(chan struct{}), make(chan string, 1)
	go func() {
		r, err := m.Call(context.WithoutCancel(t.Context()), Call{Viewer: agent, Tool: "slow_get", Log: func(console.Level, string) { close(began) }})
		ended <- fmt.Sprint(string(r.Output), err)
	}()
	<-began
	write(t, m, tool("slow", "get", fmt.Sprintf(source, 0, 2), asks))
	says(t, m, "slow_get", "2")
	if got := <-ended; got != "1<nil>" {
		t.Errorf("got %s", got)
	}
}

// Two processes on one store see each other's changes.
func TestTwoProcesses(t *testing.T) {
	h := newHome(t)
	one, two := h.open(), h.open()
	write(t, one, draft("answer", "1", ""))
	eventually(t, two, "the other process has the tool", func() bool { return len(offered(t, two, agent)) == 1 })
	says(t, two, "answer_get", "1")
	write(t, two, draft("answer", "2", ""))
	eventually(t, one, "the update came", func() bool {
		r, err := one.Call(t.Context(), Call{Viewer: agent, Tool: "answer_get"})
		return err == nil && string(r.Output) == "2"
	})
}
