package lifecycle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension/policy"
)

// family are the runs of a test: [Runs].
type family struct {
	t    *testing.T
	dir  string
	m    *Manager
	runs *durable.Runs
}

const mailBinding = `, "mail": {"signals": true}`

// StartChild implements [Runs].
func (f *family) StartChild(ctx context.Context, input []byte, prepare func() (Run, error)) error {
	return f.runs.StartChild(ctx, func() (durable.Spec, error) {
		run, err := prepare()
		return specOf(run, input), err
	})
}

// TakeChild implements [Runs].
func (f *family) TakeChild(ctx context.Context, name string, sequence uint64) (tools.Ended, bool, error) {
	r, ok, err := f.runs.TakeChild(ctx, sequence)
	if err != nil || !ok {
		return tools.Ended{}, false, err
	}
	return tools.Ended{Output: r.Output, Failure: r.Failure(name), CPU: r.Usage.CPU}, true, nil
}

func specOf(run Run, input []byte) durable.Spec {
	target, _ := json.Marshal(run.RunTarget)
	pin, _ := json.Marshal(run.RunPin)
	return durable.Spec{Component: durable.Code{Digest: run.Code, Read: run.Component}, Tool: run.Own, Input: input, Target: string(target), Pinned: string(pin)}
}

func (f *family) authority(ctx context.Context, run durable.Info) (durable.Authority, error) {
	var target RunTarget
	var pin RunPin
	if err := errors.Join(json.Unmarshal([]byte(run.Target), &target), json.Unmarshal([]byte(run.Pinned), &pin)); err != nil {
		return durable.Authority{}, err
	}
	awake, err := f.m.Wake(ctx, target, pin)
	if of, ok := errors.AsType[*CallerError](err); ok {
		err = &durable.RefusedError{Caller: of.Caller, Reason: of.Error()}
	}
	return durable.Authority(awake), err
}

// newFamily opens a manager whose durable calls call tools durably.
func newFamily(t *testing.T, h *home) *family {
	t.Helper()
	f := &family{t: t, dir: t.TempDir()}
	h.options.Runs = f
	f.m = h.open()
	f.reopen()
	t.Cleanup(func() {
		if err := f.runs.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *family) reopen() {
	f.t.Helper()
	var err error
	f.runs, err = durable.Open(f.t.Context(), durable.Options{
		Dir: f.dir, Key: bytes.Repeat([]byte{7}, durable.KeySize), Host: sharedHost, Idle: 10 * time.Millisecond, Request: f.authority,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.runs.Work()
}

// start starts a durable call of a tool.
func (f *family) start(c Call) string {
	f.t.Helper()
	run, err := f.m.PrepareRun(f.t.Context(), c)
	if err != nil {
		f.t.Fatal(err)
	}
	info, _, err := f.runs.Start(f.t.Context(), specOf(run, c.Input))
	if err != nil {
		f.t.Fatal(err)
	}
	return info.Name
}

// ends waits for the end of a run.
func (f *family) ends(run string) durable.Result {
	f.t.Helper()
	r, err := f.runs.Wait(f.t.Context(), run)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// asleep waits until a run and its only child sleep. It returns the child.
func (f *family) asleep(run string) (child string) {
	f.t.Helper()
	for {
		r, err := f.runs.Get(f.t.Context(), run)
		if err != nil || r.State.Final() {
			f.t.Fatalf("%s %s %v", r.State, r.Reason, err)
		}
		children, err := f.runs.Children(f.t.Context(), run)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(children) == 1 && children[0].State == durable.Asleep && r.State == durable.Asleep {
			return children[0].Name
		}
		<-time.After(2 * time.Millisecond)
	}
}

// TestChildErrors calls tools that fail in many ways, from a durable call and from another. Both are told the same.
func TestChildErrors(t *testing.T) {
	for _, c := range []struct {
		name, callee, bindings, input string
		change                        func(t *testing.T, m *Manager)
		want                          string
	}{
		{name: "a result", callee: `({ n: await env.store.get("n"), input })`, bindings: kvBinding, input: `{"x": [1, "ä"]}`, want: `"result"`},
		{name: "thrown", callee: `(() => { throw new Error("no more bread") })()`, want: "no more bread"},
		{name: "an input that is none", callee: `1`, input: `[]`, want: `"code":"invalid"`},
		{name: "an input that is too large", callee: `1`, input: `{"x": "` + strings.Repeat("x", 1<<20) + `"}`, want: `"code":"exhausted"`},
		{name: "denied", callee: `await env.web.fetch("https://example.com/b")`, bindings: `"web": {"http": [{"host": "example.com", "path": "/a"}]}`, want: `example.com`},
		{name: "too large a result", callee: `"x".repeat(2 << 20)`, want: `"code":"exhausted"`},
		{name: "too much memory", callee: `(() => { const all = []; for (;;) all.push("x".repeat(1 << 20) + all.length); })()`, want: `"code"`},
		{name: "bindings", callee: `1`, input: `{"pass": true}`, want: "accepts no others"},
		{name: "no such tool", callee: `1`, input: `{"name": "base_none"}`, want: `"code":"not-found"`},
		{name: "not named", callee: `1`, input: `{"name": "other_get"}`, want: "no pattern of the binding names this tool"},
		{name: "revoked", callee: `1`, change: func(t *testing.T, m *Manager) {
			if _, err := m.Revoke(t.Context(), own, "base", person); err != nil {
				t.Fatal(err)
			}
		}, want: "is no longer active"},
		{name: "outgrown", callee: `1`, change: func(t *testing.T, m *Manager) { add(t, m, answers("base", `2`, kvBinding)) }, want: "may do more now than when top was approved"},
		{name: "resting", callee: `(() => { throw new Error("again") })()`, change: func(t *testing.T, m *Manager) {
			for range 5 {
				_, _ = m.Call(t.Context(), Call{Viewer: agent, Tool: "top_get"})
			}
		}, want: "failed 5 times in a row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t)
			h.policyOf(`{"limits": {"failuresBeforeBreak": 5}}`)
			f := newFamily(t, h)
			add(t, f.m, answers("base", c.callee, c.bindings))
			add(t, f.m, calls("top", `await env.helpers.call(input.name ?? "base_get", input.pass || input.name ? {} : input, input.pass ? { env: { helpers: env.helpers } } : {})
				.then(result => ({ result }), (e) => ({ code: e.code, text: e.message.replace(/until [^ "]*/, ""), operation: e.operation, reason: e.reason, remedy: e.remedy, name: e.name }))`, "base_*"))
			if c.change != nil {
				c.change(t, f.m)
			}
			input := []byte(c.input)
			if c.input == "" {
				input = []byte(`{}`)
			}
			call := Call{Viewer: agent, Tool: "top_get", Input: input}
			if c.input == `[]` { // which top itself does not take
				call.Input = []byte(`{}`)
				add(t, f.m, calls("top", `await env.helpers.call("base_get", []).then(result => ({ result }), (e) => ({ code: e.code, text: e.message }))`, "base_*"))
			}
			if len(c.input) > 1<<19 {
				call.Input = []byte(`{}`)
				add(t, f.m, calls("top", `await env.helpers.call("base_get", { x: "x".repeat(1 << 20) }).then(result => ({ result }), (e) => ({ code: e.code, text: e.message }))`, "base_*"))
			}
			plain, err := f.m.Call(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			r := f.ends(f.start(call))
			if !strings.Contains(string(plain.Output), c.want) || string(r.Output) != string(plain.Output) {
				t.Errorf("a call that is durable gets\n%s %s, another one\n%s", r.Output, r.Outcome, plain.Output)
			}
		})
	}
}

// TestChildAuthority has a durable call and the one that it made sleep while the authority of either changes.
func TestChildAuthority(t *testing.T) {
	revoke := func(name string) func(t *testing.T, f *family) {
		return func(t *testing.T, f *family) {
			if _, err := f.m.Revoke(t.Context(), own, name, person); err != nil {
				t.Fatal(err)
			}
		}
	}
	policyOf := func(text string) func(t *testing.T, f *family) {
		return func(t *testing.T, f *family) {
			p, err := policy.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			f.m.SetPolicy(p)
		}
	}
	const code = `await env.helpers.base_get({}).catch(e => e.code + ": " + e.message)`
	for _, c := range []struct {
		name   string
		change func(t *testing.T, f *family)
		want   string // in the result, or why it is parked
		state  durable.State
		child  durable.State
	}{
		{"nothing", func(*testing.T, *family) {}, `"v1 1"`, durable.Done, durable.Done},
		{"the callee is replaced", func(t *testing.T, f *family) { add(t, f.m, answers("base", `2`, kvBinding+mailBinding)) }, `"v1 1"`, durable.Done, durable.Done},
		{"the callee is replaced by more", func(t *testing.T, f *family) {
			add(t, f.m, answers("base", `2`, kvBinding+mailBinding+`, "web": {"http": [{"host": "example.com"}]}`))
		}, `"v1 1"`, durable.Done, durable.Done},
		{"the caller is replaced", func(t *testing.T, f *family) { add(t, f.m, calls("top", `3`, "base_*")) }, `"v1 1"`, durable.Done, durable.Done},
		{"the callee is revoked", revoke("base"), "unavailable: unavailable: base_get: the extension base was revoked", durable.Done, durable.Failed},
		{"the callee is removed", func(t *testing.T, f *family) {
			if _, err := f.m.Remove(t.Context(), own, "base", Decision{By: "agent:a"}); err != nil {
				t.Fatal(err)
			}
		}, "unavailable: unavailable: base_get: the extension base was removed", durable.Done, durable.Failed},
		{"the callee is forgotten", func(t *testing.T, f *family) {
			add(t, f.m, answers("base", `2`, kvBinding))
			history, err := f.m.History(t.Context(), own, "base")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.m.Forget(t.Context(), history[len(history)-1].Digest, person); err != nil {
				t.Fatal(err)
			}
		}, "base_get", durable.Done, durable.Failed},
		{"the caller is revoked", revoke("top"), "the extension top was revoked", durable.Parked, durable.Failed},
		{"the policy takes the binding away", policyOf(`{"ceiling": {"permissions": {"kv": true}}}`), "revoked", durable.Done, durable.Failed},
		{"the policy takes the callee's binding away", policyOf(`{"ceiling": {"bindings": {"b": {"tools": ["base_*"]}, "m": {"signals": true}}}}`), `"v1 denied"`, durable.Done, durable.Done},
	} {
		for _, process := range []string{"the same process", "another process"} {
			t.Run(c.name+", "+process, func(t *testing.T) {
				h := newHome(t)
				f := newFamily(t, h)
				add(t, f.m, answers("base", `await env.mail.receive("go").then(() => env.store.increment("n", 1)).then(n => "v1 " + n, e => "v1 " + e.code)`, kvBinding+mailBinding))
				add(t, f.m, calls("top", code, "base_*"))
				run := f.start(Call{Viewer: agent, Tool: "top_get"})
				child := f.asleep(run)
				c.change(t, f)
				if process == "another process" {
					if err := f.runs.Close(); err != nil {
						t.Fatal(err)
					}
					h.options.Policy = f.m.Policy()
					f.m = h.open()
					f.reopen()
				}
				if _, err := f.runs.Signal(t.Context(), child, "go", durable.Message{Data: []byte("1")}); err != nil {
					t.Fatal(err)
				}
				if c.state == durable.Parked { // it sleeps on, until what it called has ended
					if r := f.ends(child); r.State != c.child || !strings.Contains(r.Outcome.Message, c.want) {
						t.Errorf("the child is %s: %s", r.State, r.Outcome)
					}
				}
				r := f.ends(run)
				if r.State != c.state || !strings.Contains(string(r.Output)+r.Reason, c.want) {
					t.Errorf("it is %s: %s %s %s", r.State, r.Output, r.Reason, r.Outcome)
				}
				if r := f.ends(child); r.State != c.child {
					t.Errorf("the child is %s: %s %s", r.State, r.Reason, r.Outcome)
				}
				if n := len(f.m.superseded); n != 0 {
					t.Errorf("%d releases that others replaced stay in memory", n)
				}
				f.m.mu.RLock()
				defer f.m.mu.RUnlock()
				if n := len(f.m.children); n != 0 {
					t.Errorf("%d calls count as awake", n)
				}
			})
		}
	}
}

// TestChildTaken takes the authority of a call away that another one made, while it is awake.
func TestChildTaken(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, m *Manager)
		want   string
	}{
		{"the outermost caller is revoked", func(t *testing.T, m *Manager) {
			if _, err := m.Revoke(t.Context(), own, "top", person); err != nil {
				t.Fatal(err)
			}
		}, "top was revoked"},
		{"the policy changes", func(t *testing.T, m *Manager) {
			p, err := policy.Parse([]byte(`{"ceiling": {"permissions": {"kv": true}}}`))
			if err != nil {
				t.Fatal(err)
			}
			m.SetPolicy(p)
		}, "the operator's policy has changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFamily(t, newHome(t))
			add(t, f.m, answers("base", `await (async () => { for (;;) { await env.store.increment("n", 1); await env.clock.sleep(1); } })()`, kvBinding))
			add(t, f.m, calls("middle", `await env.helpers.base_get({})`, "base_*"))
			add(t, f.m, calls("top", `await env.helpers.middle_get({})`, "middle_*"))
			run := f.start(Call{Viewer: agent, Tool: "top_get"})
			middle := f.child(run)
			base := f.child(middle)
			for f.state(base) != durable.Running {
				<-time.After(2 * time.Millisecond)
			}
			c.change(t, f.m)
			for { // it goes with the one that called it
				r, err := f.runs.Result(t.Context(), base)
				if errors.As(err, new(*durable.UnknownError)) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if r.State.Final() {
					if r.State != durable.Failed || !strings.Contains(r.Outcome.Message, c.want) {
						t.Errorf("%s: %s %s", r.State, r.Outcome, r.Reason)
					}
					break
				}
				<-time.After(time.Millisecond)
			}
			if r := f.ends(run); r.State == durable.Done {
				t.Errorf("it returned %s", r.Output)
			}
		})
	}
}

func (f *family) state(run string) durable.State {
	f.t.Helper()
	r, err := f.runs.Get(f.t.Context(), run)
	if err != nil {
		f.t.Fatal(err)
	}
	return r.State
}

// child waits for the only child of a run.
func (f *family) child(run string) string {
	f.t.Helper()
	for {
		children, err := f.runs.Children(f.t.Context(), run)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(children) == 1 {
			return children[0].Name
		}
		<-time.After(2 * time.Millisecond)
	}
}

// TestChildNesting has durable calls be as deep in one another as the policy allows.
func TestChildNesting(t *testing.T) {
	for _, nesting := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(nesting), func(t *testing.T) {
			h := newHome(t)
			h.policyOf(fmt.Sprintf(`{"limits": {"nesting": %d}}`, nesting))
			f := newFamily(t, h)
			add(t, f.m, answers("a", `1`, ""))
			for i, name := range []string{"b", "c", "d"} {
				add(t, f.m, calls(name, fmt.Sprintf(`1 + await env.helpers.%c_get({})`, 'a'+i), fmt.Sprintf("%c_*", 'a'+i)))
			}
			call := Call{Viewer: agent, Tool: "d_get"}
			plain, err := f.m.Call(t.Context(), call)
			r := f.ends(f.start(call))
			if string(r.Output) != string(plain.Output) || (err == nil) != (nesting == 3) || err != nil && !strings.Contains(r.Outcome.Message, "nesting") {
				t.Errorf("a durable call returned %s, %s; another one %s, %v", r.Output, r.Outcome, plain.Output, err)
			}
		})
	}
}

// TestChildIsWrittenDown checks what the audit log and the statistics say of calls that durable calls made: one each, with the one that called it.
func TestChildIsWrittenDown(t *testing.T) {
	h := newHome(t)
	f := newFamily(t, h)
	add(t, f.m, answers("base", `await env.clock.sleep(30), 1`, ""))
	add(t, f.m, calls("top", `await env.helpers.base_get({}) + await env.helpers.base_get({})`, "base_*"))
	if r := f.ends(f.start(Call{Viewer: agent, Tool: "top_get", Via: ViaMCP})); string(r.Output) != "2" {
		t.Fatalf("%s %s", r.Output, r.Outcome)
	}
	if err := f.runs.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.m.Close(); err != nil { // it writes what is left
		t.Fatal(err)
	}
	f.m = h.open()
	f.reopen()
	entries, err := f.m.Audit(t.Context(), 100)
	var found []string
	for _, e := range entries {
		if e.Kind == callKind {
			found = append(found, fmt.Sprint(e.By, " ", e.Via, " ", e.Extension, " ", e.Outcome))
		}
	}
	slices.Sort(found)
	if want := []string{"agent:a mcp top ok", "agent:a tool:agent:a/top_get base ok", "agent:a tool:agent:a/top_get base ok"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("got %q, %v", found, err)
	}
}
