package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// calls is an extension whose tool "get" returns value, with a binding "helpers" to the tools of patterns.
func calls(name, value string, patterns ...string) Draft {
	d := draft(name, value, "")
	d.Manifest = fmt.Appendf(nil, `{"name": %q, "version": "1.0.0", "description": "A test", "tools": ["get"], "bindings": {"helpers": {"tools": ["%s"]}}}`, name, strings.Join(patterns, `", "`))
	return d
}

// answers is an extension whose tool "get" returns value, with bindings in the form of a manifest.
func answers(name, value, bindings string) Draft {
	d := draft(name, value, "")
	d.Manifest = fmt.Appendf(nil, `{"name": %q, "version": "1.0.0", "description": "A test", "tools": ["get"], "bindings": {%s}}`, name, bindings)
	return d
}

// add writes an extension and approves it.
func add(t *testing.T, m *Manager, d Draft) *Written {
	t.Helper()
	w := write(t, m, d)
	if w.Release.State == Pending {
		approve(t, m, w.Release)
	}
	return w
}

// fails calls a tool and checks that its error holds each text.
func fails(t *testing.T, m *Manager, name string, texts ...string) {
	t.Helper()
	r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: name})
	if err == nil {
		t.Fatalf("%s returned %s", name, r.Output)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want %s", name, err, text)
		}
	}
}

// waiting returns the request that waits for an extension, or zero.
func pendingOf(t *testing.T, m *Manager, name string) Release {
	t.Helper()
	e, err := m.State(t.Context(), own, name)
	if err != nil {
		t.Fatal(err)
	}
	if e.Pending == nil {
		return Release{}
	}
	return *e.Pending
}

const kvBinding = `"store": {"kv": true}`

// TestCallsTools has an extension call others as its manifest asks, and shows a person everything that those may do.
func TestCallsTools(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("base", `await env.store.set("k", "v"), 1`, kvBinding))
	add(t, m, calls("middle", `1 + await env.helpers.base_get()`, "base_*"))
	w := write(t, m, calls("top", `[await env.helpers.middle_get({}), (await env.helpers.search("gets")).map(t => t.name), typeof await env.helpers.describe("middle_get")]`, "middle_get"))
	if w.Release.State != Pending {
		t.Fatalf("it is %s", w.Release.State)
	}
	review, err := m.Review(t.Context(), w.Release.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"may call middle_get of middle in agent:a", "makes middle in agent:a act, which may only compute",
		"makes other callees call base_get of base in agent:a", "makes base in agent:a act, which may keep small values from call to call",
	}
	if got := extension.Describe(review.Granted[0]); !slices.Equal(got, want) {
		t.Errorf("a person reads %q", got)
	}
	approve(t, m, w.Release)
	says(t, m, "top_get", `[2,["middle_get"],"string"]`)
	if all := offered(t, m, agent); !slices.ContainsFunc(all, func(o Tool) bool { return o.Name == "top_get" }) {
		t.Errorf("there are %v", all)
	}
}

// TestCallsOnlyWhatIsApproved attacks a binding to tools: names outside of the patterns, tools that come later, other scopes, the extension itself,
// names that JavaScript's objects have, and bindings that are passed on.
func TestCallsOnlyWhatIsApproved(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"failuresBeforeBreak": 100}}`)
	m := h.open()
	add(t, m, answers("base", `1`, ""))
	add(t, m, answers("other", `2`, ""))
	add(t, m, calls("top", `await (env.helpers.call(input.name, {}, input.pass ? { env: { helpers: env.helpers } } : {}))`, "base_*"))
	in := func(input string) (string, error) {
		r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "top_get", Input: []byte(input)})
		return string(r.Output), err
	}
	if got, err := in(`{"name": "base_get"}`); err != nil || got != "1" {
		t.Fatalf("got %s, %v", got, err)
	}
	later := tool("base", "get,later", `import { extension } from "stile"; export default extension({ tools: {
		get: { description: "x", input: { type: "object" }, run: () => 3 }, later: { description: "x", input: { type: "object" }, run: () => 4 } } });`, "")
	add(t, m, later)
	for _, c := range []struct {
		input, want string
		denied      bool
	}{
		{`{"name": "other_get"}`, `"tools":["base_*","other_get"]`, true},
		{`{"name": "top_get"}`, "no pattern of the binding names this tool", true},
		{`{"name": "base_later"}`, "the tool came after the approval of top", true},
		{`{"name": "constructor"}`, "no pattern", true},
		{`{"name": "__proto__"}`, "no pattern", true},
		{`{"name": "base_nothing"}`, "the binding can call: base_get", false},
		{`{"name": "base_get", "pass": true}`, "accepts no others", false},
	} {
		_, err := in(c.input)
		var denied *host.DeniedError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &denied) != c.denied {
			t.Errorf("%s: got %v", c.input, err)
		}
	}
	// Written again, it asks for the tool that came later.
	w := write(t, m, calls("top", `await (env.helpers.call(input.name, {}, input.pass ? { env: { helpers: env.helpers } } : {}))`, "base_*"))
	if w.Unchanged || w.Release.State != Pending || len(w.Changes) != 1 || w.Changes[0].String() != "+ tools base_later of base in agent:a" {
		t.Fatalf("got %+v", w)
	}
	approve(t, m, w.Release)
	if got, err := in(`{"name": "base_later"}`); err != nil || got != "4" {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestCallsInScopes resolves patterns in the scope of the caller and in the shared one, and stays there.
func TestCallsInScopes(t *testing.T) {
	m := newHome(t).open()
	everywhere := func(d Draft, scope extension.Scope) Draft { d.Scope = scope; return d }
	sharedScope := extension.Scope{Kind: extension.Shared}
	others := extension.Scope{Kind: extension.Agent, Owner: "b"}
	users := extension.Scope{Kind: extension.User, Owner: "tom"}
	add(t, m, everywhere(answers("secret", `"b's"`, ""), others))
	add(t, m, everywhere(answers("mine", `"tom's"`, ""), users))
	add(t, m, everywhere(answers("base", `"shared"`, ""), sharedScope))
	for _, pattern := range []string{"secret_get", "mine_*", "nothing", "top_get"} {
		_, err := m.Write(t.Context(), calls("top", `1`, "base_get", pattern))
		var problems *extension.ProblemsError
		if !errors.As(err, &problems) || len(problems.Problems) != 1 || problems.Problems[0].Line != 1 || !strings.Contains(problems.Error(), "base_get") ||
			strings.Contains(problems.Problems[0].Fix, "secret") {
			t.Errorf("%s: got %v", pattern, err)
		}
	}
	add(t, m, calls("top", `await env.helpers.base_get()`, "*"))
	says(t, m, "top_get", `"shared"`)
	add(t, m, answers("base", `"a's"`, "")) // in the narrower scope, which the approval does not name
	says(t, m, "base_get", `"a's"`)
	says(t, m, "top_get", `"shared"`)
	if _, err := m.Revoke(t.Context(), sharedScope, "base", person); err != nil {
		t.Fatal(err)
	}
	fails(t, m, "top_get", "base in shared, which top may call, is no longer active")
	// An extension that is shared does not reach what is not.
	if _, err := m.Write(t.Context(), everywhere(calls("all", `1`, "base_get"), sharedScope)); err == nil || !strings.Contains(err.Error(), "no tool in shared fits") {
		t.Errorf("got %v", err)
	}
	if _, err := m.Promote(t.Context(), own, sharedScope, "top", "agent:a", "test"); err == nil || !strings.Contains(err.Error(), "no tool in shared fits") {
		t.Errorf("promoted: %v", err)
	}
}

// TestCalleeWidens has the callers of an extension ask again when it may do more, and not before: directly and through others.
func TestCalleeWidens(t *testing.T) {
	h := newHome(t)
	m, other := h.open(), h.open()
	add(t, m, answers("base", `1`, kvBinding))
	add(t, m, calls("middle", `await env.helpers.base_get()`, "base_get"))
	add(t, m, calls("top", `await env.helpers.middle_get()`, "middle_get"))
	says(t, other, "top_get", "1")
	add(t, m, answers("base", `2`, `"kept": {"kv": true}, "time": {"clock": true}`)) // no more than before
	says(t, m, "top_get", "2")
	says(t, other, "top_get", "2")
	if r := pendingOf(t, m, "middle"); r.ID != 0 {
		t.Fatalf("it asks again: %+v", r)
	}
	add(t, m, answers("base", `3`, kvBinding+`, "files": {"workspace": {"access": "read"}}`))
	for _, m := range []*Manager{m, other} {
		waits := pendingOf(t, m, "middle")
		if waits.ID == 0 || waits.Reason != "the extensions that it calls may do more now" {
			t.Fatalf("middle waits as %+v", waits)
		}
		fails(t, m, "middle_get", "base in agent:a may do more now than when middle was approved", fmt.Sprintf("a person must approve request %d: `stile ext approve %[1]d` shows it and asks", waits.ID))
		_, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "middle_get"})
		if denied := (*host.DeniedError)(nil); !errors.As(err, &denied) {
			t.Errorf("got %T", err)
		}
		fails(t, m, "top_get", "may do more now")
		if r := pendingOf(t, m, "top"); r.ID != 0 {
			t.Errorf("top asks again before middle may do more: %+v", r)
		}
		if again := pendingOf(t, m, "middle"); again.ID != waits.ID {
			t.Errorf("each call asks again: %+v", again)
		}
	}
	waits := pendingOf(t, m, "middle")
	review, err := m.Review(t.Context(), waits.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(review.Changes) != 1 || !strings.Contains(review.Changes[0].String(), "+ base in agent:a: workspace") || review.Code != "" {
		t.Errorf("a person reads %+v and %s", review.Changes, review.Code)
	}
	approve(t, m, waits)
	says(t, other, "middle_get", "3")
	fails(t, m, "top_get", "middle in agent:a may do more now than when top was approved")
	approve(t, m, pendingOf(t, m, "top"))
	says(t, m, "top_get", "3")
	says(t, other, "top_get", "3")
}

// TestDeniedAgain lets a denial stand: the host does not ask for the same again.
func TestDeniedAgain(t *testing.T) {
	h := newHome(t)
	m := h.open()
	add(t, m, answers("base", `1`, ""))
	add(t, m, calls("top", `await env.helpers.base_get()`, "base_get"))
	add(t, m, answers("base", `2`, kvBinding))
	d := person
	waits := pendingOf(t, m, "top")
	d.Release, d.Digest = waits.ID, waits.Digest
	if _, err := m.Deny(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	again := h.open()
	add(t, again, answers("other", `1`, ""))
	fails(t, again, "top_get", "may do more now", "write top again")
	if r := pendingOf(t, again, "top"); r.ID != 0 {
		t.Errorf("it asks again: %+v", r)
	}
	add(t, again, answers("base", `3`, "")) // as when it was approved
	says(t, again, "top_get", "3")
}

// TestCallsAgainWhileAnotherVersionWaits renews the request of a version that waits, because its person would read too little.
func TestCallsAgainWhileAnotherVersionWaits(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("base", `1`, ""))
	add(t, m, calls("top", `await env.helpers.base_get()`, "base_get"))
	next := write(t, m, calls("top", `10 * await env.helpers.base_get()`, "base_g*"))
	if next.Release.State != Pending {
		t.Fatalf("it is %s", next.Release.State)
	}
	add(t, m, answers("base", `2`, kvBinding))
	waits := pendingOf(t, m, "top")
	if waits.ID == next.Release.ID || waits.Digest != next.Release.Digest {
		t.Fatalf("got %+v after %+v", waits, next.Release)
	}
	d := person
	d.Release, d.Digest = next.Release.ID, next.Release.Digest
	var state *StateError
	if _, err := m.Approve(t.Context(), d); !errors.As(err, &state) || state.State != Withdrawn {
		t.Errorf("the old request: %v", err)
	}
	approve(t, m, waits)
	says(t, m, "top_get", "20")
}

// TestCallsInCircles refuses extensions that would call each other.
func TestCallsInCircles(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("a", `1`, ""))
	add(t, m, calls("b", `await env.helpers.a_get()`, "a_get"))
	add(t, m, calls("c", `await env.helpers.b_get()`, "b_get"))
	for _, pattern := range []string{"b_get", "c_get"} {
		if _, err := m.Write(t.Context(), calls("a", `await env.helpers.c_get()`, pattern)); err == nil || !strings.Contains(err.Error(), "these tools call a in turn") {
			t.Errorf("%s: got %v", pattern, err)
		}
	}
}

// TestCallsInCirclesOfRequests approves two requests that would call each other. Neither was a circle when it was asked for, and then neither calls.
func TestCallsInCirclesOfRequests(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("a", `1`, ""))
	add(t, m, answers("b", `1`, ""))
	first := write(t, m, calls("a", `await env.helpers.b_get()`, "b_get"))
	second := write(t, m, calls("b", `await env.helpers.a_get()`, "a_get"))
	approve(t, m, first.Release)
	approve(t, m, second.Release)
	fails(t, m, "a_get", "b in agent:a may do more now than when a was approved: write a again")
	fails(t, m, "b_get", "a in agent:a may do more now than when b was approved: write b again")
	if _, err := m.Write(t.Context(), calls("b", `await env.helpers.a_get()`, "a_get")); err == nil || !strings.Contains(err.Error(), "these tools call b in turn") {
		t.Errorf("got %v", err)
	}
}

// TestRollbackOfCaller activates a version with what it could call when it was active.
func TestRollbackOfCaller(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("base", `1`, ""))
	first := add(t, m, calls("top", `await env.helpers.base_get()`, "base_get"))
	add(t, m, answers("top", `0`, ""))
	back := func() {
		if _, err := m.Rollback(t.Context(), own, "top", first.Version.Digest, person); err != nil {
			t.Fatal(err)
		}
	}
	back()
	says(t, m, "top_get", "1")
	add(t, m, answers("top", `5`, ""))
	add(t, m, answers("base", `2`, kvBinding))
	back()
	fails(t, m, "top_get", "may do more now")
	approve(t, m, pendingOf(t, m, "top"))
	says(t, m, "top_get", "2")
}

// TestCalleeEnds ends a caller's call when the callee is revoked, or the caller is.
func TestCalleeEnds(t *testing.T) {
	h := newHome(t)
	began := make(chan struct{}, 4)
	h.options.step = func(name string) {
		if name == "call" {
			began <- struct{}{}
		}
	}
	m := h.open()
	add(t, m, tool("slow", "hold,spin,wait", waiting, `{"clock": true, "console": true}`))
	for _, ends := range []string{"slow", "top"} {
		add(t, m, calls("top", `await env.helpers.slow_wait().catch((e) => "caught " + e.message)`, "slow_wait"))
		ended := make(chan error, 1)
		go func() {
			r, err := m.Call(context.Background(), Call{Viewer: agent, Tool: "top_get"})
			if err == nil {
				err = errors.New(string(r.Output))
			}
			ended <- err
		}()
		<-began
		<-began
		if _, err := m.Revoke(t.Context(), own, ends, person); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"slow": "caught unavailable: slow_wait: the extension slow was revoked", "top": "the extension top was revoked"}[ends]
		if err := <-ended; !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", ends, err)
		}
		if ends == "slow" {
			approve(t, m, write(t, m, tool("slow", "hold,spin,wait", waiting, `{"clock": true, "console": true}`)).Release)
		}
	}
}

// TestCallsAreWrittenDown names caller and callee in the audit log, and keeps the breakers of callers apart.
func TestCallsAreWrittenDown(t *testing.T) {
	h := newHome(t)
	m := h.open()
	add(t, m, answers("base", `(() => { if (input.bad) throw new Error("bad"); return 1 })()`, ""))
	add(t, m, calls("top", `await env.helpers.base_get({ bad: !!input.bad })`, "base_get"))
	for range 6 {
		if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "top_get", Input: []byte(`{"bad": true}`)}); err == nil {
			t.Error("it did not fail")
		}
	}
	says(t, m, "base_get", "1") // not paused for the agent itself
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := h.open().Audit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(entries, func(e Entry) bool {
		return e.Kind == "call" && e.Extension == "base" && e.Tool == "get" && e.By == "agent:a" && e.Via == "tool:agent:a/top_get" && e.Outcome == "failed"
	}) {
		t.Errorf("got %+v", entries)
	}
}

// TestCallsWithinTheCaller bounds what callees take by the limits of their caller.
func TestCallsWithinTheCaller(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("spin", `(() => { for (;;); })()`, ""))
	add(t, m, answers("quick", `1`, ""))
	add(t, m, calls("top", `await Promise.allSettled(Array.from({ length: input.n ?? 8 }, () => env.helpers.call(input.tool))).then((all) => all.map((r) => r.status))`, "spin_get", "quick_get"))
	for input, want := range map[string]string{`{"tool": "spin_get"}`: "cpu", `{"tool": "quick_get", "n": 64}`: "pending"} {
		limits := host.DefaultLimits()
		limits.CPU, limits.Pending = limits.CPU/10, 16
		_, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "top_get", Input: []byte(input), Limits: limits})
		if limit := (*host.LimitError)(nil); !errors.As(err, &limit) || limit.Limit != want {
			t.Errorf("%s: got %v", input, err)
		}
	}
}

// TestCalleeWidensBeforeAKill has a call ask again if the process that widened its callee died before it could.
func TestCalleeWidensBeforeAKill(t *testing.T) {
	h := newHome(t)
	m := h.open()
	add(t, m, answers("base", `1`, ""))
	add(t, m, calls("top", `await env.helpers.base_get()`, "base_get"))
	wider := write(t, m, answers("base", `2`, kvBinding))
	h.options.step = func(name string) {
		if name == "committed" {
			panic("killed")
		}
	}
	killed := h.open()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it lives")
			}
		}()
		approve(t, killed, wider.Release)
	}()
	if r := pendingOf(t, m, "top"); r.ID != 0 {
		t.Fatalf("got %+v", r)
	}
	fails(t, m, "top_get", "a person must approve request")
	approve(t, m, pendingOf(t, m, "top"))
	says(t, m, "top_get", "2")
}

// TestCalleeIsReplacedDuringACall lets calls of both versions end as they began.
func TestCalleeIsReplacedDuringACall(t *testing.T) {
	h := newHome(t)
	began := make(chan struct{}, 8)
	h.options.step = func(name string) {
		if name == "call" {
			began <- struct{}{}
		}
	}
	m := h.open()
	const slow = `await env.clock.sleep(input.ms ?? 0), %d`
	add(t, m, answers("base", fmt.Sprintf(slow, 1), `"clock": {"clock": true}`))
	add(t, m, calls("top", `[await env.helpers.base_get({ ms: 300 }), await env.helpers.base_get().catch((e) => e.name)]`, "base_get"))
	ended := make(chan string, 1)
	go func() {
		r, err := m.Call(context.Background(), Call{Viewer: agent, Tool: "top_get"})
		ended <- fmt.Sprint(string(r.Output), err)
	}()
	<-began
	<-began
	add(t, m, answers("base", fmt.Sprintf(slow, 2), `"clock": {"clock": true}, "store": {"kv": true}`))
	if got := <-ended; got != `[1,"DeniedError"]<nil>` {
		t.Errorf("got %s", got)
	}
}

// TestPolicyOfCalls has rules speak about the tools that patterns mean.
func TestPolicyOfCalls(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{
		"approve": [{}, {"bindings": {"any": {"tools": ["base_*"]}}}],
		"ceiling": {"permissions": {"kv": true}, "bindings": {"any": {"tools": ["base_*", "other_get"]}}}
	}`)
	m := h.open()
	add(t, m, answers("base", `1`, ""))
	add(t, m, answers("other", `2`, ""))
	add(t, m, answers("third", `3`, ""))
	for name, c := range map[string]struct {
		patterns []string
		state    State
	}{
		"one": {[]string{"base_get"}, Active}, "two": {[]string{"b*_get"}, Active}, "three": {[]string{"base_get", "other_*"}, Pending},
	} {
		if w := write(t, m, calls(name, "await env.helpers.base_get()", c.patterns...)); w.Release.State != c.state {
			t.Errorf("%v: %s", c.patterns, w.Release.State)
		}
	}
	for _, pattern := range []string{"*", "third_get"} {
		if _, err := m.Write(t.Context(), calls("four", "1", pattern)); err == nil || !strings.Contains(err.Error(), "ceiling forbids the binding helpers") {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	add(t, m, answers("base", `4`, kvBinding))
	says(t, m, "one_get", "4") // the rule names the tool, whatever that may do
	if r := pendingOf(t, m, "one"); r.ID != 0 {
		t.Errorf("it waits: %+v", r)
	}
}

// TestTestsOfCalls answers for tools in the tests of a manifest.
func TestTestsOfCalls(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("base", `1`, ""))
	tested := func(answers, expect string) error {
		d := calls("top", `await env.helpers.base_get({ x: 1 }).catch((e) => e.message)`, "base_get")
		d.Manifest = append(d.Manifest[:len(d.Manifest)-1], fmt.Sprintf(`, "tests": [{"tool": "get", "input": {}, "env": {"helpers": %s}, "expect": %s}]}`, answers, expect)...)
		_, err := m.Write(t.Context(), d)
		return err
	}
	for _, c := range []struct{ answers, expect, wrong string }{
		{`{"base_get": {"output": 7}}`, `7`, ""},
		{`{"base_get": {"error": "no"}}`, `"unavailable: base_get: no"`, ""},
		{`{}`, `7`, `"base_get": {"output": {}}`},
		{`{"other_get": {"output": 7}}`, `7`, "a name that fits base_get"},
	} {
		if err := tested(c.answers, c.expect); (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: got %v", c.answers, err)
		}
	}
}

// TestImportOfCaller shows a person that what a pack calls is not there, and denies the call.
func TestImportOfCaller(t *testing.T) {
	from := newHome(t).open()
	add(t, from, answers("base", `1`, ""))
	w := add(t, from, calls("top", `await env.helpers.base_get()`, "base_get"))
	p, err := from.Export(t.Context(), w.Version.Digest)
	if err != nil {
		t.Fatal(err)
	}
	m := newHome(t).open()
	imported := func() *Written {
		w, err := m.Import(t.Context(), p, Draft{Scope: own, Author: "agent:a", Via: "test"})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w = imported()
	review, err := m.Review(t.Context(), w.Release.ID)
	if err != nil || w.Release.State != Pending {
		t.Fatal(w.Release.State, err)
	}
	if got := extension.Describe(review.Granted[0]); len(got) != 1 || got[0] != "may call no tool that fits base_get, because there is none here" {
		t.Errorf("a person reads %q", got)
	}
	approve(t, m, w.Release)
	fails(t, m, "top_get", `tool "base_get"`)
	add(t, m, answers("base", `2`, ""))
	fails(t, m, "top_get", "the tool came after the approval")
	approve(t, m, imported().Release)
	says(t, m, "top_get", "2")
}

// TestManyCallees refuses patterns that fit more tools, reach more extensions or mean more rights than a person reads, and does not cut them short.
func TestManyCallees(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"buildsPerHour": 1000}}`)
	m := h.open()
	refused := func(pattern, want string) {
		t.Helper()
		if _, err := m.Write(t.Context(), calls("top", `1`, pattern)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", pattern, err)
		}
	}
	var names, code []string
	for i := range tools.MaxCalled + 1 {
		names = append(names, fmt.Sprintf("t%d", i))
		code = append(code, fmt.Sprintf(`t%d: { description: "x", run: () => 1 }`, i))
	}
	add(t, m, tool("many", strings.Join(names, ","), `import { extension } from "stile"; export default extension({ tools: {`+strings.Join(code, ",\n")+`} });`, ""))
	refused("many_*", "its patterns fit 501 tools; 500 are allowed")
	var rules []string
	for i := range 256 {
		rules = append(rules, fmt.Sprintf(`{"host": "h%d.example.com", "path": "/%s/**"}`, i, strings.Repeat("a", 250)))
	}
	add(t, m, answers("rich", "1", `"api": {"http": [`+strings.Join(rules, ",")+`]}`))
	refused("rich_*", "what these tools may do takes more than 64 KiB")
	for i := range tools.MaxCallees + 1 {
		add(t, m, answers(fmt.Sprintf("e%d", i), "1", ""))
	}
	refused("e*_get", "these tools reach more than 64 extensions")
	add(t, m, calls("top", `(await env.helpers.search("", 100)).length`, "e1*_get"))
	says(t, m, "top_get", "11")
}

// FuzzCallees reads records of what a release may call. One that is read is written as it was read.
func FuzzCallees(f *testing.F) {
	f.Add(`{"helpers":[{"scope":"shared","extension":"a","tools":["a_get"],"inner":["a_put"],"may":{"api":{"http":[{"host":"example.com"}]},"store":{"kv":true}}}]}`)
	f.Add(`{"helpers":[]}`)
	f.Add(`{"helpers":[{"may":{"x":{"tools":["*"]}}}]}`)
	f.Add(``)
	m, err := extension.Parse([]byte(`{"name": "x", "version": "1.0.0", "description": "x", "tools": ["x"], "bindings": {"helpers": {"tools": ["*"]}}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		bindings, err := withCallees(capabilities.Builtin, m.Bindings, text)
		if err != nil {
			return
		}
		again, err := withCallees(capabilities.Builtin, m.Bindings, calleesText(bindings))
		if err != nil {
			t.Fatal(err)
		}
		if calleesText(again) != calleesText(bindings) || !extension.Covers(bindings, again) {
			t.Errorf("%s is read as %s", text, calleesText(again))
		}
		for _, line := range extension.Describe(bindings[0]) {
			if printable.Line(line) != line {
				t.Errorf("%q is not printable", line)
			}
		}
	})
}

// TestCalleeFlips replaces a callee by versions that may do more and less, while two processes call it. No call runs a version that may do more
// than was approved.
func TestCalleeFlips(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"buildsPerHour": 1000, "failuresBeforeBreak": 10000}}`)
	managers := []*Manager{h.open(), h.open()}
	m := managers[0]
	add(t, m, answers("base", `0`, ""))
	add(t, m, calls("top", `await env.helpers.base_get()`, "base_get"))
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var ok, denied atomic.Int64
	for i := range managers {
		group.Go(func() {
			for ctx.Err() == nil {
				r, err := managers[i].Call(context.WithoutCancel(ctx), Call{Viewer: agent, Tool: "top_get"})
				no := (*host.DeniedError)(nil)
				switch {
				case err == nil && string(r.Output) == "0":
					ok.Add(1)
				case errors.As(err, &no) && strings.Contains(err.Error(), "may do more now"):
					denied.Add(1)
				default:
					t.Errorf("got %s, %v", r.Output, err)
					return
				}
			}
		})
	}
	for range 5 {
		for _, d := range []Draft{answers("base", `1`, kvBinding), answers("base", `0`, "")} {
			add(t, m, d)
			before, which := ok.Load()+denied.Load(), []*atomic.Int64{&denied, &ok}
			if strings.Contains(string(d.Manifest), "kv") {
				which = which[:1]
			} else {
				which = which[1:]
			}
			for n := which[0].Load(); !t.Failed() && (which[0].Load() == n || ok.Load()+denied.Load() < before+4); {
				runtime.Gosched()
			}
		}
	}
	stop()
	group.Wait()
}

// TestCallsPassOn hands a picture on as it is, and what a callee logs with its name. How far the callee is stays its own.
func TestCallsPassOn(t *testing.T) {
	m := newHome(t).open()
	base := answers("base", `(env.console.info("hello"), env.console.progress(1, 2, "callee"), image(Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), (c) => c.charCodeAt(0)), "image/png"))`, `"console": {"console": true}`)
	base.Files["tool.ts"] = []byte(strings.Replace(string(base.Files["tool.ts"]), "import { extension }", "import { extension, image }", 1))
	add(t, m, base)
	add(t, m, calls("top", `(env.console.progress(1, 1, "caller"), await env.helpers.base_get())`, "base_get"))
	want, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "base_get"})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lines []string
	add := func(line string) { mu.Lock(); defer mu.Unlock(); lines = append(lines, line) }
	got, err := m.Call(t.Context(), Call{
		Viewer: agent, Tool: "top_get", Log: func(_ console.Level, text string) { add(text) }, Progress: func(p console.Progress) { add(p.Message) },
	})
	if err != nil || string(got.Output) != string(want.Output) || !strings.Contains(string(got.Output), "image/png") {
		t.Errorf("got %s, %v", got.Output, err)
	}
	if !slices.Equal(lines, []string{"caller", "base_get: hello"}) {
		t.Errorf("it says %q", lines)
	}
}

// TestWaitingCallees writes an extension whose callee waits for approval: a person reads which command approves it, whoever wrote it, and an agent
// learns of no request of another.
func TestWaitingCallees(t *testing.T) {
	m := newHome(t).open()
	tom := extension.Scope{Kind: extension.User, Owner: "tom"}
	in := func(d Draft, scope extension.Scope, author string) Draft {
		d.Scope, d.Author = scope, author
		return d
	}
	base := write(t, m, in(answers("base", `1`, kvBinding), tom, "agent:a")).Release
	far := write(t, m, in(answers("far", `1`, kvBinding), own, "agent:a")).Release
	for _, test := range []struct {
		scope                 extension.Scope
		author, pattern, want string
	}{
		{tom, "user:tom", "base_*", fmt.Sprintf(`no tool in user:tom or shared fits "base_*" yet, because a version of base, which agent:a wrote, waits for approval as request %d: stile ext approve %[1]d`, base.ID)},
		{tom, "agent:a", "base_*", fmt.Sprintf(`no tool in user:tom or shared fits "base_*" yet, because a version of base waits for approval as request %d: stile ext approve %[1]d`, base.ID)},
		{tom, "agent:b", "base_*", `no tool in user:tom or shared fits "base_*"; write no binding to other tools: there are none yet`},
		{tom, "user:tom", "far_*", fmt.Sprintf(`no tool in user:tom or shared fits "far_*" yet, because a version of far, which agent:a wrote, waits for approval as request %d: stile ext approve %[1]d, then stile ext promote far --scope agent:a --to user`, far.ID)},
		{extension.Scope{Kind: extension.Shared}, "user:tom", "far_*", fmt.Sprintf(`request %d: stile ext approve %[1]d, then stile ext promote far --scope agent:a --to shared`, far.ID)},
		{tom, "agent:a", "far_*", `no tool in user:tom or shared fits "far_*"; write no binding to other tools: there are none yet`},
		{tom, "agent:b", "far_*", `no tool in user:tom or shared fits "far_*"; write no binding to other tools: there are none yet`},
	} {
		_, err := m.Write(t.Context(), in(calls("caller", `1`, test.pattern), test.scope, test.author))
		if err == nil || !strings.HasSuffix(err.Error(), test.want) && !strings.Contains(err.Error(), test.want+"\n") {
			t.Errorf("%s for %s: got %v\nwant %s", test.pattern, test.author, err, test.want)
		}
	}
	manifest := calls("caller", `1`, "base_*").Manifest
	parsed, err := extension.Parse(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ToolTypes(t.Context(), tom, parsed, manifest); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("manifest.json:1:118: bindings.helpers: no tool in user:tom or shared fits \"base_*\" yet, because a version of base, which agent:a wrote, waits for approval as request %d", base.ID)) {
		t.Errorf("types: %v", err)
	}
}
