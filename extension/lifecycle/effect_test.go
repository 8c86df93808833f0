package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

var (
	everybody = extension.Scope{Kind: extension.Shared}
	stranger  = Viewer{User: "ann", Agent: "b"} // sees only shared extensions
)

// decider is another process, which makes the decisions that it receives.
type decider struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

const (
	deciderDir  = "STILE_TEST_DECIDER"
	deciderStep = "STILE_TEST_DECIDER_DIES"
)

// newDecider starts a process on the store of h. The process kills itself at a given step of a change.
func newDecider(t *testing.T, h *home, dies string) *decider {
	t.Helper()
	d := &decider{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDecider$", "-test.count=1")} //nolint:gosec // this very test
	d.cmd.Env = append(os.Environ(), deciderDir+"="+h.options.Dir, deciderStep+"="+dies, "TMPDIR="+t.TempDir())
	d.cmd.Stderr = os.Stderr
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewScanner(out)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.end)
	return d
}

func (d *decider) end() {
	_ = d.in.Close()
	_ = d.cmd.Wait() // it may have been killed
}

// decide returns when the process reports completion. ok is false if it was killed instead.
func (d *decider) decide(what string, args ...any) (r Release, ok bool) {
	d.t.Helper()
	if _, err := fmt.Fprintln(d.in, append([]any{what}, args...)...); err != nil {
		d.t.Fatal(err)
	}
	for d.out.Scan() {
		switch _, err := fmt.Sscanf(d.out.Text(), "done %d %s", &r.ID, &r.Digest); {
		case err == nil:
			return r, true
		case strings.HasPrefix(d.out.Text(), "failed"):
			d.t.Fatalf("%s: %s", what, d.out.Text())
		}
	}
	return r, false
}

// TestDecider is the other process.
func TestDecider(t *testing.T) {
	dir := os.Getenv(deciderDir)
	if dir == "" {
		return // TestDecisions and others start it
	}
	h := newHome(t)
	h.options.Dir = dir
	dies := os.Getenv(deciderStep)
	h.options.step = func(name string) {
		if name == dies {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	m := h.open()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var what string
		d := person
		_, _ = fmt.Sscan(lines.Text(), &what, &d.Release, &d.Digest)
		var r Release
		var err error
		switch what {
		case "promote":
			r, err = m.Promote(t.Context(), own, everybody, "answer", "user:tom", "test")
		case "approve":
			r, err = m.Approve(t.Context(), d)
		case "deny":
			r, err = m.Deny(t.Context(), d)
		case "revoke":
			r, err = m.Revoke(t.Context(), everybody, "answer", d)
		case "remove":
			r, err = m.Remove(t.Context(), everybody, "answer", d)
		case "rollback":
			r, err = m.Rollback(t.Context(), own, "answer", d.Digest, d)
		case "settle":
			m.old <- struct{}{}
			continue
		default:
			err = errors.New("there is no such decision")
		}
		if err != nil {
			fmt.Println("failed", err)
			return
		}
		fmt.Println("done", r.ID, r.Digest)
	}
}

// TestDecisions has another process make 1,000 decisions. Every call and list that begins afterwards follows what it reported. This
// process does not poll for changes.
func TestDecisions(t *testing.T) {
	h := newHome(t)
	h.options.poll = time.Hour
	m := h.open()
	versions := [2]string{write(t, m, draft("answer", "0", "")).Release.Digest, write(t, m, draft("answer", "1", "")).Release.Digest}
	other := newDecider(t, h, "")
	decide := func(what string, args ...any) Release {
		t.Helper()
		r, ok := other.decide(what, args...)
		if !ok {
			t.Fatalf("%s: it is gone", what)
		}
		return r
	}
	stale := 0
	// offers checks a list and a call, in either order. Each must detect the change by itself.
	offers := func(n int, v Viewer, want string) {
		t.Helper()
		listed := func() {
			if tools := offered(t, m, v); (len(tools) == 1) != (want != "") {
				stale++
				t.Errorf("decision %d: the list has %d tools", n, len(tools))
			}
		}
		if n/5%2 == 0 {
			listed()
		}
		r, err := m.Call(t.Context(), Call{Viewer: v, Tool: "answer_get"})
		switch gone := errors.As(err, new(*UnknownToolError)) || errors.As(err, new(*RevokedError)); {
		case want == "" && !gone, want != "" && (err != nil || string(r.Output) != want):
			stale++
			t.Errorf("decision %d: a call got %s, %v, want %q", n, r.Output, err, want)
		}
		listed()
	}
	for n := 0; n < 1000 && stale < 10; n += 5 {
		current := n / 5 % 2
		decide("rollback", 0, versions[current])
		offers(n, agent, fmt.Sprint(current))
		r := decide("promote")
		offers(n+1, stranger, "")
		if n/5%4 == 0 {
			decide("deny", r.ID, r.Digest)
			offers(n+2, stranger, "")
			r = decide("promote")
			offers(n+2, stranger, "")
		}
		decide("approve", r.ID, r.Digest)
		offers(n+3, stranger, fmt.Sprint(current))
		decide([]string{"revoke", "remove"}[current])
		offers(n+4, stranger, "")
	}
}

// TestKilledDecisions kills a process at each step of a change. This process follows whatever is in the store by then, at
// once, and the next decision works normally.
func TestKilledDecisions(t *testing.T) {
	for _, step := range []string{"change", "cleared", "committed", "settle", "settled"} {
		t.Run(step, func(t *testing.T) {
			h := newHome(t)
			h.options.poll = time.Hour
			m := h.open()
			first, second := write(t, m, draft("answer", "0", "")).Release, write(t, m, draft("answer", "1", "")).Release
			says(t, m, "answer_get", "1")
			settled(t, m)
			dying := newDecider(t, h, step)
			if _, ok := dying.decide("rollback", 0, first.Digest); ok {
				_ = dying.cmd.Wait() // it dies when it writes the stamp, which is later; no other process looks, so none writes the stamp
			}
			inStore, err := m.Active(t.Context())
			if err != nil || len(inStore) != 1 {
				t.Fatalf("got %+v, %v", inStore, err)
			}
			if committed := step != "change" && step != "cleared"; committed != (inStore[0].Digest == first.Digest) {
				t.Errorf("active is %s", inStore[0].Digest)
			}
			want := map[string]string{first.Digest: "0", second.Digest: "1"}[inStore[0].Digest]
			if tools := offered(t, m, agent); len(tools) != 1 || tools[0].Digest != inStore[0].Digest {
				t.Errorf("the list has %+v", tools)
			}
			says(t, m, "answer_get", want)
			settled(t, m)
			says(t, m, "answer_get", want)
			if _, ok := newDecider(t, h, "").decide("rollback", 0, map[string]string{"0": second.Digest, "1": first.Digest}[want]); !ok {
				t.Fatal("it is gone")
			}
			says(t, m, "answer_get", map[string]string{"0": "1", "1": "0"}[want])
		})
	}
}

// settled waits until the stamp alone answers.
func settled(t *testing.T, m *Manager) {
	t.Helper()
	if err := errors.Join(m.Refresh(t.Context()), m.settle(t.Context())); err != nil {
		t.Fatal(err)
	}
	if !m.stamp.Is(m.generation) {
		t.Fatal("the stamp does not name the newest state")
	}
}

// A call that waits for a slot follows all decisions made before it begins.
func TestDecisionsWhileWaiting(t *testing.T) {
	h := newHome(t)
	cacheDir, keyDir := cachetest.Dirs(t)
	single, err := host.New(t.Context(), host.Options{CacheDir: cacheDir, KeyDir: keyDir, Instances: 1, WarmInstances: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = single.Close() }()
	tools, err := toolchain.New(t.Context(), single, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tools.Close() }()
	h.policyOf(`{"approve": [{"permissions": {"kv": true}}]}`)
	other := h.open()
	first := write(t, other, draft("answer", "0", `{"kv": true}`)).Release
	second := write(t, other, draft("answer", "env.kv.get('k').then(() => 1)", `{"kv": true}`)).Release
	write(t, other, draft("block", `console.log("here")`, ""))
	calls := make(chan struct{}, 10)
	h.options.Host, h.options.poll = single, time.Hour
	h.options.Toolchain = func(context.Context) (*toolchain.Toolchain, error) { return tools, nil }
	h.options.step = func(name string) {
		if name == "call" {
			calls <- struct{}{}
		}
	}
	m := h.open()
	defer func() { _ = m.Close() }()

	for _, c := range []struct {
		name   string
		before string
		decide func(d Decision) error
		check  func(output string, err error) bool
	}{
		{"nothing", "1", func(Decision) error { return nil }, func(o string, err error) bool { return err == nil && o == "1" }},
		{
			"another version", "1", func(d Decision) error {
				_, err := other.Rollback(t.Context(), own, "answer", first.Digest, d)
				return err
			},
			func(o string, err error) bool { return err == nil && o == "0" },
		},
		{
			"the version before", "0", func(d Decision) error {
				_, err := other.Rollback(t.Context(), own, "answer", second.Digest, d)
				return err
			},
			func(o string, err error) bool { return err == nil && o == "1" },
		},
		{
			"a policy", "1", func(Decision) error {
				p, err := policy.Parse([]byte(`{"ceiling": {"permissions": {"kv": true}}}`))
				m.SetPolicy(p)
				return err
			},
			func(o string, err error) bool { return err == nil && o == "1" },
		},
		{
			"a policy that takes away", "1", func(Decision) error {
				p, err := policy.Parse([]byte(`{"ceiling": {"permissions": {}}}`))
				m.SetPolicy(p)
				return err
			},
			func(_ string, err error) bool { return errors.As(err, new(*CeilingError)) },
		},
		{
			"quarantine", "1", func(Decision) error {
				alter(t, other, "UPDATE release SET quarantine = 'it is broken' WHERE state = 'active' AND name = 'answer'")
				return nil
			},
			func(_ string, err error) bool { return errors.As(err, new(*QuarantinedError)) },
		},
		{
			"not allowed", "1", func(Decision) error { return nil }, nil,
		},
		{
			"revoked", "1", func(d Decision) error { _, err := other.Revoke(t.Context(), own, "answer", d); return err },
			func(_ string, err error) bool { return errors.As(err, new(*RevokedError)) },
		},
	} {
		alter(t, other, "UPDATE release SET quarantine = ''")
		m.SetPolicy(h.options.Policy)
		says(t, m, "answer_get", c.before)
		for len(calls) > 0 { // also of calls that were prepared twice
			<-calls
		}
		here, goOn := make(chan struct{}), make(chan struct{})
		blocked, waited := make(chan error, 1), make(chan struct{})
		go func() {
			_, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "block_get", Log: func(console.Level, string) { close(here); <-goOn }})
			blocked <- err
		}()
		<-here // it has the only slot
		<-calls
		refused := errors.New("not allowed")
		call := Call{Viewer: agent, Tool: "answer_get"}
		if c.check == nil {
			call.Allowed = func() error { return refused }
			c.check = func(_ string, err error) bool { return errors.Is(err, refused) }
		}
		go func() {
			defer close(waited)
			r, err := m.Call(t.Context(), call)
			if !c.check(string(r.Output), err) {
				t.Errorf("%s: a call that waited got %s, %v", c.name, r.Output, err)
			}
		}()
		<-calls // it is prepared
		if err := c.decide(person); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		close(goOn)
		<-waited
		if err := <-blocked; err != nil {
			t.Error(err)
		}
	}
}
