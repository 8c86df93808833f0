package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
)

// TestCalleesAreKeptWhole writes down and reads what a callee of each kind may do.
func TestCalleesAreKeptWhole(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"failuresBeforeBreak": 100}}`)
	m := h.open()
	add(t, m, answers("base", `1`, `"site": {"http": [{"host": "*.example.com", "methods": ["GET"], "headers": ["*"]}]}, "web": {"browser": [{"host": "a.example.com"}]},
		"files": {"workspace": {"path": "/a", "access": "read"}}, "store": {"kv": true}, "box": {"sandbox": {"image": "host", "memory": "1GiB"}},
		"runner": {"code": {"env": ["files", "clock"], "runs": 3}}`))
	add(t, m, answers("inner", `1`, `"store": {"kv": true}`))
	add(t, m, answers("mid", `1`, `"h": {"tools": ["inner_get"]}, "runner": {"code": {"env": ["h", "console"]}}`))
	w := add(t, m, calls("top", `[await env.helpers.base_get(), await env.helpers.mid_get()]`, "base_get", "mid_get"))
	says(t, m, "top_get", "[1,1]")
	says(t, h.open(), "top_get", "[1,1]")
	if r := pendingOf(t, m, "top"); r.ID != 0 {
		t.Errorf("it asks again: %+v", r)
	}
	if again := write(t, m, calls("top", `[await env.helpers.base_get(), await env.helpers.mid_get()]`, "base_get", "mid_get")); !again.Unchanged {
		t.Errorf("%s after %s: %+v", again.Release.State, w.Release.State, again.Changes)
	}
}

// TestManyFormsOfACallee has an extension reach one through many that were approved when it had other rights each time: together more than a
// manifest has.
func TestManyFormsOfACallee(t *testing.T) {
	m := newHome(t).open()
	const forms = 6
	for i := range forms {
		bindings := ""
		for j := range 12 {
			bindings += fmt.Sprintf(`, "b%d": {"http": [{"host": "h%d-%d.example.com"}]}`, j, i, j)
		}
		add(t, m, answers("base", fmt.Sprint(i), bindings[2:]))
		add(t, m, calls(fmt.Sprintf("mid%d", i), `await env.helpers.base_get()`, "base_get"))
	}
	d := calls("top", `await env.helpers.mid5_get()`, "mid*")
	w, err := m.Write(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Review(t.Context(), w.Release.ID); err != nil {
		t.Fatalf("nobody can read it: %v", err)
	}
	approve(t, m, w.Release)
	says(t, m, "top_get", "5")
}

// TestSignerOfAnotherVersion does not show a person that somebody signed what an agent wrote.
func TestSignerOfAnotherVersion(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("base", `1`, ""))
	signed := calls("top", `await env.helpers.base_get()`, "base_get")
	signed.Signer = "release@example.com"
	add(t, m, signed)
	write(t, m, calls("top", `10 * await env.helpers.base_get()`, "base_g*"))
	if r := pendingOf(t, m, "top"); r.Signer != "" {
		t.Fatalf("the draft is signed by %s", r.Signer)
	}
	add(t, m, answers("base", `2`, kvBinding))
	if r := pendingOf(t, m, "top"); r.ID == 0 || r.Signer != "" {
		t.Errorf("signed by %q, %+v", r.Signer, r)
	}
}

// TestCallsAskOnce lets code that calls two extensions in turn, both of which may do more now, ask once for each: a request takes the store's lock.
func TestCallsAskOnce(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"failuresBeforeBreak": 10000}}`)
	asked := 0
	h.options.step = func(name string) {
		if name == "ask again" {
			asked++
		}
	}
	m := h.open()
	add(t, m, answers("one", `1`, ""))
	add(t, m, answers("two", `1`, ""))
	add(t, m, calls("top", `await (async () => { let n = 0; for (let i = 0; i < 20; i++) await env.helpers.call(["one_get", "two_get"][i % 2]).catch((e) => { n++ }); return n })()`, "one_get", "two_get"))
	add(t, m, answers("one", `1`, kvBinding))
	add(t, m, answers("two", `1`, kvBinding))
	asked = 0
	says(t, m, "top_get", "20")
	says(t, m, "top_get", "20")
	if asked > 2 {
		t.Errorf("it asked %d times", asked)
	}
}

// TestManyPatternsWithoutTools names some of thousands of patterns that no tool fits, because looking for similar names takes time for each.
func TestManyPatternsWithoutTools(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("base", `1`, ""))
	var all []string
	for i := range 64 {
		var patterns []string
		for j := range 32 {
			patterns = append(patterns, fmt.Sprintf(`"base_gex%d_%d"`, i, j))
		}
		all = append(all, fmt.Sprintf(`"b%d": {"tools": [%s]}`, i, strings.Join(patterns, ",")))
	}
	_, err := m.Write(t.Context(), answers("top", `1`, strings.Join(all, ", ")))
	var problems *extension.ProblemsError
	if !errors.As(err, &problems) || len(problems.Problems) != maxUnmatched+1 || !strings.Contains(problems.Problems[maxUnmatched].Text, "nor 15 patterns after it") {
		t.Fatalf("got %v", err)
	}
}

// TestCirclesOfApprovals has two requests that were made before either was active close a circle, and a rollback close one. Neither call reaches the
// other side, and no request can ask for it.
func TestCirclesOfApprovals(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"approve": [{"bindings": {"any": {"tools": ["*"]}}}], "limits": {"failuresBeforeBreak": 100}}`)
	m := h.open()
	add(t, m, answers("a", `"a"`, ""))
	first := add(t, m, calls("b", `await env.helpers.a_get()`, "a_get"))
	add(t, m, answers("b", `"b"`, ""))
	add(t, m, calls("a", `await env.helpers.b_get()`, "b_get"))
	says(t, m, "a_get", `"b"`)
	if _, err := m.Rollback(t.Context(), own, "b", first.Version.Digest, person); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		fails(t, m, name+"_get", "may do more now than when "+name+" was approved", "write "+name+" again")
		if r := pendingOf(t, m, name); r.ID != 0 {
			t.Errorf("%s waits: %+v", name, r)
		}
	}
}

// TestAnotherOfTheName has an extension of the name of a callee that was removed do no more than was approved for the first.
func TestAnotherOfTheName(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("base", `1`, ""))
	add(t, m, calls("top", `await env.helpers.base_get()`, "base_get"))
	if _, err := m.Remove(t.Context(), own, "base", Decision{By: "agent:a", Via: "test"}); err != nil {
		t.Fatal(err)
	}
	fails(t, m, "top_get", "base in agent:a, which top may call, is no longer active")
	other := answers("base", `(await env.store.set("k", "v"), 2)`, kvBinding)
	other.Author = "agent:b"
	add(t, m, other)
	fails(t, m, "top_get", "may do more now")
	add(t, m, answers("base", `3`, ""))
	says(t, m, "top_get", "3")
}

// TestSecretsOfCallees shows a caller no more of a callee's failure than its message, on one line of its own.
func TestSecretsOfCallees(t *testing.T) {
	m := newHome(t).open()
	add(t, m, answers("base", `(() => { const hidden = "s3cr3t"; function deep() { throw new Error("it failed") } deep(); return hidden })()`, ""))
	add(t, m, calls("top", `await env.helpers.base_get().catch((e) => e.message + "|" + e.stack)`, "base_get"))
	r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "top_get"})
	if got := string(r.Output); err != nil || !strings.Contains(got, "base_get: ") || strings.Contains(got, "s3cr3t") || strings.Contains(got, "deep") {
		t.Errorf("got %s, %v", got, err)
	}
}
