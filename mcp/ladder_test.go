package mcp

import (
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
)

// The rung of an agent is the operator's decision. Tools above it are not offered, and a call of one names the rung.
func TestRungs(t *testing.T) {
	h := newHome(t, `{"ladder": [
		{"agents": ["low"], "permissions": {"workspace": "read"}},
		{"agents": ["bare"], "rung": "isolate"},
		{"agents": ["reader"], "rung": "isolate", "permissions": {"workspace": "read"}},
		{"rung": "npm", "permissions": {"workspace": "read-write"}}
	]}`)
	agent := func(name string) *client { return h.person(lifecycle.Viewer{User: "tom", Agent: name}, "test", nil) }
	low, bare, alice, bob := agent("low"), agent("bare"), agent("alice"), agent("bob")
	for _, c := range []struct {
		*client
		code, workspace bool
	}{{low, false, true}, {bare, true, false}, {alice, true, true}} {
		if names := c.tools(); slices.Contains(names, "code_run") != c.code || slices.Contains(names, "workspace_read") != c.workspace {
			t.Errorf("got %v", names)
		}
	}
	for _, refused := range []struct {
		*client
		name       string
		input      object
		kind, says string
	}{
		{low, "code_run", object{"code": "return 1"}, "refused", "code_run needs the rung isolate (1), and this ladder goes up to workspace (0)"},
		{bare, "workspace_read", object{"path": "a"}, "refused", `workspace_read needs a binding "workspace", which this ladder does not have`},
		{low, "workspace_write", object{"path": "a", "text": "b"}, "denied", "this handle can only read"},
	} {
		r := refused.tool(refused.name, refused.input)
		if f := failed(t, r); f.Kind != refused.kind || !strings.Contains(text(r), refused.says) {
			t.Errorf("%s: got %+v", refused.name, f)
		}
		if strings.Contains(text(r), "manifest") || strings.Contains(text(r), ".ts:") {
			t.Errorf("it advises what a model cannot do, or shows a stack of ours:\n%s", text(r))
		}
	}
	// Files last, and each agent has its own.
	if got := text(alice.tool("workspace_write", object{"path": "a/b.txt", "text": "one\ntwo\n"})); !strings.HasPrefix(got, "wrote a/b.txt: 2 lines") {
		t.Errorf("got %s", got)
	}
	if got := text(agent("alice").tool("workspace_read", object{"path": "a/b.txt"})); !strings.Contains(got, "     2\ttwo") {
		t.Errorf("got %s", got)
	}
	if got := text(bob.tool("workspace_list", object{})); got != "/ is empty" {
		t.Errorf("another agent reads %s", got)
	}
	if got := does[codeOutput](alice, "code_run", object{"code": `const input = { path: "a/b.txt", from: 2 }, read = await tools.workspace.read(input); return [await env.workspace.read("a/b.txt"), read === await tools.workspace_read(input) ? read : "they differ"].join();`}); !strings.HasPrefix(got.Result.(string), "one\ntwo\n,a/b.txt, version ") {
		t.Errorf("got %v", got.Result)
	}
	// Advice of what a manifest could ask for would lead nowhere.
	reader := agent("reader")
	for _, code := range []string{`await env.workspace.write("a", "b");`, `await tools.workspace.write({ path: "a", text: "b" });`} {
		r := reader.tool("code_run", object{"code": code})
		if f := failed(t, r); f.Kind != "denied" || !strings.Contains(text(r), "this handle can only read") || strings.Contains(text(r), "manifest") {
			t.Errorf("%s: got %s", code, text(r))
		}
	}
	// A new policy takes effect at once, also for handles that are open.
	p, err := policy.Parse([]byte(`{"ladder": [{"agents": ["alice"], "permissions": {"workspace": "read"}}, {"agents": ["bob"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	h.manager.SetPolicy(p)
	if r := alice.tool("workspace_write", object{"path": "a/b.txt", "text": "three"}); failed(t, r).Kind != "denied" {
		t.Errorf("got %s", text(r))
	}
	if r := alice.tool("code_run", object{"code": "return 1"}); !strings.Contains(text(r), "needs the rung isolate") {
		t.Errorf("got %s", text(r))
	}
	if slices.Contains(alice.tools(), "code_run") || slices.Contains(bob.tools(), "workspace_list") {
		t.Error("what the policy took away is still offered")
	}
	if got := text(alice.tool("workspace_read", object{"path": "a/b.txt"})); !strings.Contains(got, "     2\ttwo") {
		t.Errorf("got %s", got)
	}
}

// A lower rung ends what the agent has open, even if its bindings stay. A higher one ends nothing.
func TestLowerRung(t *testing.T) {
	h := newHome(t, `{"ladder": [{"rung": "isolate", "permissions": {"workspace": "read"}}]}`)
	rungs, err := h.manager.Rungs(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	open, ok := rungs.Env["workspace"].(*host.Grant)
	if !ok {
		t.Fatalf("got %T", rungs.Env["workspace"])
	}
	for _, step := range []struct {
		rung string
		ends bool
	}{{"isolate", false}, {"sandbox", false}, {"isolate", true}} {
		p, err := policy.Parse([]byte(`{"ladder": [{"rung": "` + step.rung + `", "permissions": {"workspace": "read"}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		h.manager.SetPolicy(p)
		if ended := open.Usage().Ended; (ended != nil) != step.ends {
			t.Errorf("%s: the capability has ended: %v", step.rung, ended)
		}
	}
}
