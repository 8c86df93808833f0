package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/extension/policy"
)

// StartRun implements [Runs].
func (f *family) StartRun(ctx context.Context, whose, key string, input []byte, prepare func() (Run, error)) (string, error) {
	return f.runs.StartFor(ctx, whose, key, input, func() (durable.Spec, error) {
		run, err := prepare()
		return specOf(run, input), err
	})
}

// AwaitRun implements [Runs].
func (f *family) AwaitRun(ctx context.Context, whose, id string) (bool, error) {
	return f.runs.AwaitFor(ctx, whose, id)
}

// WaitRun implements [Runs].
func (f *family) WaitRun(ctx context.Context, whose, id string) error {
	return f.runs.WaitFor(ctx, whose, id)
}

// RunEnded implements [Runs].
func (f *family) RunEnded(ctx context.Context, whose, id string) (tools.Ended, bool, error) {
	r, ok, err := f.runs.ResultFor(ctx, whose, id)
	if err != nil || !ok {
		return tools.Ended{}, false, err
	}
	return tools.Ended{Output: r.Output, Failure: r.Failure("base_get")}, true, nil
}

// RunStatus implements [Runs].
func (f *family) RunStatus(ctx context.Context, whose, id string) (s runs.Status, err error) {
	r, err := f.runs.StatusFor(ctx, whose, id)
	return runs.Status{State: map[durable.State]runs.State{durable.Asleep: runs.Asleep, durable.Done: runs.Done, durable.Cancelled: runs.Cancelled}[r.State], Since: uint64(r.Changed.UnixMilli()), Mailboxes: r.Mailboxes}, err
}

// SignalRun implements [Runs].
func (f *family) SignalRun(ctx context.Context, whose, id, mailbox, from string, data []byte, key string) (bool, error) {
	return f.runs.SignalFor(ctx, whose, id, mailbox, durable.Message{Data: data, Key: key, From: from})
}

// CancelRun implements [Runs].
func (f *family) CancelRun(ctx context.Context, whose, id string) error {
	return f.runs.CancelFor(ctx, whose, id)
}

// starts is an extension whose tool "get" returns value, and may start tools that fit the patterns.
func starts(name, value string, patterns ...string) Draft {
	d := draft(name, value, "")
	d.Manifest = fmt.Appendf(nil, `{"name": %q, "version": "1.0.0", "description": "A test", "tools": ["get"], "bindings": {"run": {"runs": {"start": ["%s"]}}}}`, name, strings.Join(patterns, `", "`))
	return d
}

// told returns the code and text of an error.
const told = `.catch((e) => [e.code, e.message, e.remedy ?? ""].join(": "))`

// TestStart starts runs from durable calls, which sleep until these end, and from others.
func TestStart(t *testing.T) {
	h := newHome(t)
	f := newFamily(t, h)
	add(t, f.m, answers("base", `(await env.store.increment("n", 1), await env.mail.receive("go"), input.fail ? (() => { throw new Error("no bread") })() : { article: input.article, n: await env.store.get("n") })`, kvBinding+mailBinding))
	w := write(t, f.m, starts("top", `await (async () => {
		if (input.outcome) return await env.run.start("base_get", input.order, { key: "k" }).then(s => s.result())`+told+`;
		const started = await env.run.start(input.name ?? "base_get", input.order, input.key && { key: input.key });
		return input.wait ? { id: started.id, result: await started.result()`+told+` } : started.id;
	})()`+told, "base_*"))
	approve(t, f.m, w.Release)
	if text := strings.Join(f.m.releases[w.Release.ID].manifest.Bindings[0].Grant.Describe(), "\n"); !strings.Contains(text, "may start runs of base_get of base in") {
		t.Errorf("the person who approves it reads:\n%s", text)
	}
	plain := func(viewer Viewer, input string) (answer string) {
		t.Helper()
		r, err := f.m.Call(t.Context(), Call{Viewer: viewer, Tool: "top_get", Input: []byte(input)})
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(r.Output, &answer) != nil {
			answer = string(r.Output)
		}
		return answer
	}
	// A run outlives the call that started it. A key finds it again.
	first := plain(agent, `{"key": "k", "order": {"article": 1}}`)
	if again := plain(agent, `{"key": "k", "order": { "article":1 }}`); again != first || len(first) != 16 {
		t.Errorf("the key finds %s and %s", first, again)
	}
	if got := plain(agent, `{"key": "k", "order": {"article": 2}}`); !strings.HasPrefix(got, "invalid: ") {
		t.Errorf("another input with the key: %s", got)
	}
	if got := plain(agent, `{"order": {}}`); got == first || len(got) != 16 {
		t.Errorf("without a key: %s", got)
	}
	// A denial teaches.
	if got := plain(agent, `{"name": "other_get"}`); !strings.Contains(got, "denied") || !strings.Contains(got, `{"runs":{"start":["base_*","other_get"]}}`) {
		t.Errorf("a tool that no pattern names: %s", got)
	}
	if got := plain(agent, `{"name": "base_none"}`); !strings.HasPrefix(got, "not-found: ") {
		t.Errorf("a tool that is not there: %s", got)
	}
	for _, input := range []string{`{"key": " "}`, `{"key": "` + strings.Repeat("k", 257) + `"}`} {
		if got := plain(agent, input); strings.HasPrefix(got, "invalid: ") != (len(input) > 100) {
			t.Errorf("%.20s: %s", input, got)
		}
	}
	// A durable call sleeps until the run has ended, over the end of the process, and gets what that returned or threw.
	for _, c := range []struct{ order, want string }{{`{"article": 7}`, `"article":7`}, {`{"fail": 1}`, "no bread"}} {
		run := f.start(Call{Viewer: agent, Tool: "top_get", Input: []byte(`{"wait": true, "order": ` + c.order + `}`)})
		f.sleeps(run)
		all, err := f.runs.List(t.Context(), "", 1)
		if err != nil || all[0].Name == run {
			t.Fatalf("it started none: %v", err)
		}
		if err := f.runs.Close(); err != nil {
			t.Fatal(err)
		}
		f.reopen()
		if _, err := f.runs.Signal(t.Context(), all[0].Name, "go", durable.Message{Data: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		if r := f.ends(run); !strings.Contains(string(r.Output), c.want) || !strings.Contains(string(r.Output), all[0].Name) {
			t.Errorf("%s %s %s %s", r.State, r.Reason, r.Output, r.Outcome)
		}
	}
	// A call that is not durable waits for it, too.
	if _, err := f.runs.Signal(t.Context(), first, "go", durable.Message{Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if got := plain(agent, `{"outcome": true, "order": {"article": 1}}`); !strings.Contains(got, `"article":1`) {
		t.Errorf("got %s", got)
	}
}

// sleeps waits until a run sleeps.
func (f *family) sleeps(run string) {
	f.t.Helper()
	for {
		r, err := f.runs.Result(f.t.Context(), run)
		if err != nil || r.State.Final() {
			f.t.Fatalf("%s %s %s %v %s", r.State, r.Reason, r.Outcome, err, r.Output)
		}
		if r.State == durable.Asleep {
			return
		}
		<-time.After(2 * time.Millisecond)
	}
}

// TestStartReaches has an extension ask where a run is, send it signals, and end it, in a later call and with a later version. Other extensions, and others who call this one, reach it not.
func TestStartReaches(t *testing.T) {
	h := newHome(t)
	f := newFamily(t, h)
	add(t, f.m, answers("base", `await env.mail.receive("go")`, `"mail": {"signals": true}`))
	const code = `await (async () => {
		const run = input.run ? env.run.started(input.run) : await env.run.start("base_get", {}, { key: "k" });
		switch (input.do) {
			case "status": return await run.status();
			case "result": return await run.result();
			case "signal": return await run.signal("go", { n: 1 }, { key: "once" });
			case "cancel": return (await run.cancel(), "told");
		}
		return run.id;
	})()` + told
	for _, name := range []string{"top", "other"} {
		add(t, f.m, starts(name, code, "base_*"))
	}
	does := func(tool string, viewer Viewer, input string) string {
		t.Helper()
		r, err := f.m.Call(t.Context(), Call{Viewer: viewer, Tool: tool, Input: []byte(input)})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Trim(string(r.Output), `"`)
	}
	run := does("top_get", agent, `{}`)
	f.sleeps(run)
	add(t, f.m, starts("top", `/* 2 */ `+code, "base_*"))
	if again := does("top_get", agent, `{}`); again != run {
		t.Errorf("the next version finds %s, want %s", again, run)
	}
	of := func(do string) string { return `{"run": "` + run + `", "do": "` + do + `"}` }
	if got := does("top_get", agent, of("status")); !strings.Contains(got, `"state":"asleep","since":"20`) || !strings.Contains(got, `"mailboxes":["go"]`) {
		t.Errorf("its status is %s", got)
	}
	for _, do := range []string{"status", "result", "signal", "cancel"} {
		for _, c := range []Call{{Viewer: agent, Tool: "other_get"}, {Viewer: Viewer{User: "tim", Agent: "a"}, Tool: "top_get"}} {
			if got := does(c.Tool, c.Viewer, of(do)); !strings.HasPrefix(got, "not-found: ") {
				t.Errorf("%s of another's run, by %s of %v: %s", do, c.Tool, c.Viewer, got)
			}
		}
	}
	for _, want := range []string{"true", "unavailable: "} {
		if got := does("top_get", agent, of("signal")); !strings.HasPrefix(got, want) {
			t.Errorf("the signal returns %s, want %s", got, want)
		}
		f.ends(run)
	}
	if got := does("top_get", agent, of("result")); !strings.HasPrefix(got, `{"data":{"n":1},"from":"the tool top_get"`) {
		t.Errorf("it received %s", got)
	}
	if got := does("top_get", agent, of("status")); !strings.Contains(got, `"state":"done"`) {
		t.Errorf("its status is %s", got)
	}
	// A durable call does the same.
	durably := func(input string) durable.Result {
		return f.ends(f.start(Call{Viewer: agent, Tool: "other_get", Input: []byte(input)}))
	}
	run = strings.Trim(string(durably(`{}`).Output), `"`)
	f.sleeps(run)
	if r := durably(of("cancel")); string(r.Output) != `"told"` {
		t.Errorf("%s %s %s", r.State, r.Outcome, r.Output)
	}
	if r := f.ends(run); r.State != durable.Cancelled {
		t.Errorf("it is %s", r.State)
	}
	if r := durably(of("result")); !strings.Contains(string(r.Output), "its run was cancelled") {
		t.Errorf("%s %s %s", r.State, r.Outcome, r.Output)
	}
}

// TestStartWithoutRuns starts a run in a program that keeps none.
func TestStartWithoutRuns(t *testing.T) {
	m := newHome(t).open()
	add(t, m, draft("base", "1", ""))
	add(t, m, starts("top", `await env.run.start("base_get")`+told, "base_*"))
	if r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "top_get"}); err != nil || !strings.Contains(string(r.Output), "unavailable: unavailable: this program keeps no runs") {
		t.Errorf("got %s, %v", r.Output, err)
	}
}

// TestStartIsApart has other extensions use the same key, and the id of a run that is not theirs.
func TestStartIsApart(t *testing.T) {
	f := newFamily(t, newHome(t))
	add(t, f.m, answers("base", `(await env.mail.receive("go"), "secret")`, `"mail": {"signals": true}`))
	for _, name := range []string{"top", "other"} {
		add(t, f.m, starts(name, `(await env.run.start("base_get", {}, { key: "k" })).id`, "base_*"))
	}
	ids := map[string]bool{}
	for _, c := range []Call{{Viewer: agent, Tool: "top_get"}, {Viewer: agent, Tool: "other_get"}, {Viewer: Viewer{User: "tim", Agent: "a"}, Tool: "top_get"}} {
		for range 2 {
			r, err := f.m.Call(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			ids[string(r.Output)] = true
		}
	}
	if len(ids) != 3 {
		t.Errorf("two extensions, and two who call one of them, have the runs %v", ids)
	}
	for id := range ids {
		id = strings.Trim(id, `"`)
		if _, ok, err := f.runs.ResultFor(t.Context(), "another", id); ok || err == nil {
			t.Errorf("another one gets the result of %s: %v", id, err)
		}
		if _, _, err := f.runs.Start(t.Context(), durable.Spec{Key: "started:x"}); err == nil {
			t.Error("a person's key begins like one of these")
		}
	}
}

// TestStartedAuthority changes the authority of a run, and of the extension that started it, while it sleeps.
func TestStartedAuthority(t *testing.T) {
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
	for _, c := range []struct {
		name   string
		change func(t *testing.T, f *family)
		want   string // the result, or why it failed
	}{
		{"nothing", func(*testing.T, *family) {}, `"data":1`},
		{"the starter is replaced", func(t *testing.T, f *family) { add(t, f.m, draft("top", "2", "")) }, `"data":1`},
		{"the starter is revoked", revoke("top"), "top was revoked"},
		{"the starter is removed", func(t *testing.T, f *family) {
			if _, err := f.m.Remove(t.Context(), own, "top", Decision{By: "agent:a"}); err != nil {
				t.Fatal(err)
			}
		}, "top was removed"},
		{"the caller of the starter is revoked", revoke("above"), "above was revoked"},
		{"the started one is revoked", revoke("base"), "base was revoked"},
		{"the started one is replaced by more", func(t *testing.T, f *family) {
			add(t, f.m, answers("base", `2`, `"mail": {"signals": true}, "web": {"http": [{"host": "example.com"}]}`))
		}, `"data":1`},
		{"the policy allows no starts", policyOf(`{"ceiling": {"bindings": {"b": {"tools": ["*"]}, "m": {"signals": true}, "r": {"runs": true}}}}`), "the operator's policy has changed: top must not call base_get"},
		{"the policy allows other starts", policyOf(`{"ceiling": {"bindings": {"b": {"tools": ["*"]}, "m": {"signals": true}, "r": {"runs": {"start": ["other_*"]}}}}}`), "the operator's policy has changed: top must not call base_get"},
		{"the policy allows this start", policyOf(`{"ceiling": {"bindings": {"b": {"tools": ["*"]}, "m": {"signals": true}, "r": {"runs": {"start": ["base_*"]}}}}}`), `"data":1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFamily(t, newHome(t))
			add(t, f.m, answers("base", `await env.mail.receive("go")`, `"mail": {"signals": true}`))
			add(t, f.m, starts("top", `(await env.run.start("base_get")).id`, "base_*"))
			add(t, f.m, calls("above", `await env.helpers.top_get({})`, "top_*"))
			r, err := f.m.Call(t.Context(), Call{Viewer: agent, Tool: "above_get"})
			if err != nil {
				t.Fatal(err)
			}
			run := strings.Trim(string(r.Output), `"`)
			f.sleeps(run)
			c.change(t, f)
			if _, err := f.runs.Signal(t.Context(), run, "go", durable.Message{Data: []byte("1")}); err != nil {
				t.Fatal(err)
			}
			if r := f.ends(run); (r.State == durable.Done) != strings.HasPrefix(c.want, `"`) || !strings.Contains(r.Outcome.Message+string(r.Output), c.want) {
				t.Errorf("%s %s %s %s", r.State, r.Reason, r.Outcome, r.Output)
			}
		})
	}
}

// TestStartBomb starts more runs than an extension may have.
func TestStartBomb(t *testing.T) {
	f := newFamily(t, newHome(t))
	add(t, f.m, answers("base", `await env.mail.receive("go")`, `"mail": {"signals": true}`))
	add(t, f.m, starts("top", `await (async () => { for (let i = 0; i < 101; i++) { const e = await env.run.start("base_get").then(() => "", e => i + " " + e.code); if (e) return e; } })()`, "base_*"))
	for _, want := range []string{`"100 exhausted"`, `"0 exhausted"`} {
		if r, err := f.m.Call(t.Context(), Call{Viewer: agent, Tool: "top_get"}); err != nil || string(r.Output) != want {
			t.Errorf("got %s, %v", r.Output, err)
		}
	}
}

// TestStartTree has runs start others, which start others. Each extension has its number, however many of its runs there are, and none is started by what it has started.
func TestStartTree(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"nesting": 3}}`)
	f := newFamily(t, h)
	const bomb = `await (async () => { for (let n = 0; ; n++) { const e = await env.run.start(%q).then(() => "", e => e.code + ": " + e.message); if (e) return n + " " + e; } })()`
	add(t, f.m, answers("leaf", `await env.mail.receive("go")`, `"mail": {"signals": true}`))
	add(t, f.m, starts("low", `(`+fmt.Sprintf(bomb, "leaf_get")+`, await env.clock.sleep("1 day"))`, "leaf_*"))
	add(t, f.m, starts("top", fmt.Sprintf(bomb, "low_get"), "low_*"))
	if r, err := f.m.Call(t.Context(), Call{Viewer: agent, Tool: "top_get"}); err != nil || !strings.Contains(string(r.Output), " exhausted: ") {
		t.Fatalf("got %s, %v", r.Output, err)
	}
	for {
		all, err := f.runs.ListAll(t.Context(), "", 10_000)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(all, func(r durable.Info) bool { return r.State != durable.Asleep }) {
			<-time.After(5 * time.Millisecond)
			continue
		}
		if len(all) != 2*durable.MaxStarted {
			t.Errorf("there are %d runs", len(all))
		}
		break
	}
}

// TestStartNests has runs start each other, deeper than the policy allows, and in a circle.
func TestStartNests(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"nesting": 2}}`)
	f := newFamily(t, h)
	add(t, f.m, draft("leaf", "1", ""))
	code := func(tool string) string { return `await env.run.start("` + tool + `").then(s => s.result())` + told }
	add(t, f.m, starts("low", code("leaf_get"), "leaf_*"))
	add(t, f.m, starts("middle", code("low_get"), "low_*"))
	add(t, f.m, calls("high", `await env.helpers.middle_get({})`, "middle_*"))
	if r := f.ends(f.start(Call{Viewer: agent, Tool: "middle_get"})); string(r.Output) != `1` {
		t.Errorf("got %s %s", r.Output, r.Outcome)
	}
	if r := f.ends(f.start(Call{Viewer: agent, Tool: "high_get"})); !strings.Contains(string(r.Output), "nesting") {
		t.Errorf("too deep: %s %s", r.Output, r.Outcome)
	}
	if r, err := f.m.Call(t.Context(), Call{Viewer: agent, Tool: "high_get"}); err != nil || !strings.Contains(string(r.Output), "nesting") { // though it is not durable
		t.Errorf("too deep: %s %v", r.Output, err)
	}
}

// TestStartCircle has two extensions start each other: nobody can approve that.
func TestStartCircle(t *testing.T) {
	f := newFamily(t, newHome(t))
	add(t, f.m, draft("b", "1", ""))
	add(t, f.m, starts("a", `1`, "b_*"))
	if _, err := f.m.Write(t.Context(), starts("b", `1`, "a_*")); err == nil || !strings.Contains(err.Error(), "in turn") {
		t.Errorf("got %v", err)
	}
}

// TestStartWaitsBeside has a tool do something else while it waits for a run: here, what the run waits for.
func TestStartWaitsBeside(t *testing.T) {
	f := newFamily(t, newHome(t))
	add(t, f.m, answers("base", `(await env.mail.receive("go")).data`, `"mail": {"signals": true}`))
	add(t, f.m, starts("top", `await (async () => {
		const run = await env.run.start("base_get");
		const [result] = await Promise.all([run.result(), env.clock.sleep(input.ms).then(() => run.signal("go", 7))]);
		return result;
	})()`, "base_*"))
	for _, ms := range []string{"0", "100"} {
		c := Call{Viewer: agent, Tool: "top_get", Input: []byte(`{"ms": ` + ms + `}`)}
		if r, err := f.m.Call(t.Context(), c); err != nil || string(r.Output) != "7" {
			t.Errorf("after %s ms: %s, %v", ms, r.Output, err)
		}
		if r := f.ends(f.start(c)); string(r.Output) != "7" {
			t.Errorf("durable, after %s ms: %s %s", ms, r.Output, r.Outcome)
		}
	}
}
