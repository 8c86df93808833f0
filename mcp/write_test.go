package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tiktoken-go/tokenizer"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/model"
)

// What is wrong with a draft is said with its place; what was there stays.
func TestWriteProblems(t *testing.T) {
	h := newHome(t, preApproved)
	c := h.client()
	does[writeOutput](c, "extension_write", draft("answer", "42", nil))
	with := func(change func(d, manifest object)) object {
		d := draft("answer", "43", nil)
		manifest := maps.Clone(d["manifest"].(object))
		d["manifest"] = manifest
		change(d, manifest)
		return d
	}
	for _, p := range []struct {
		name  string
		draft object
		stage string
		says  []string
	}{
		{"a name", with(func(_, m object) { m["name"] = "Not A Name" }), "validate", []string{"manifest.json:", "name"}},
		{"an unknown field", with(func(_, m object) { m["powers"] = "all" }), "validate", []string{"powers"}},
		{"no source", with(func(d, _ object) { delete(d, "source") }), "validate", []string{"there is no source file"}},
		{"a way out", with(func(d, _ object) { delete(d, "source"); d["files"] = object{"../evil.ts": "export {}"} }), "validate", []string{"../evil.ts"}},
		{"a name of ours", with(func(_, m object) { m["name"], m["tools"] = "extension", []string{"get"} }), "validate", []string{"reserved for Stile"}},
		{"syntax", with(func(d, _ object) {
			d["source"] = "import { extension } from \"stile\";\nexport default extension({ tools: { get: { description: \"d\", run: () => ( } } });"
		}), "", []string{"tool.ts:2:"}},
		{"another tool", with(func(_, m object) { m["tools"] = []string{"other"} }), "", []string{"other"}},
		{"top level", with(func(d, _ object) { d["source"] = "throw new Error('early');" }), "", []string{"early"}},
		{"a test", with(func(_, m object) { m["tests"] = []object{{"tool": "get", "input": object{}, "expect": 44}} }), "test", []string{"44", "43"}},
		{"both", with(func(d, _ object) { d["files"] = object{"tool.ts": "1"} }), "-", []string{"source or files, not both"}},
		{"a scope", with(func(d, _ object) { d["scope"] = "everybody" }), "-", []string{"agent, user or shared"}},
		{"a manifest that is no JSON", with(func(d, _ object) { d["manifest"] = "name: answer" }), "validate", []string{"manifest"}},
	} {
		t.Run(p.name, func(t *testing.T) {
			r := c.tool("extension_write", p.draft)
			f := failed(t, r)
			if p.stage == "-" && (f.Kind != "input" || len(f.Problems) > 0) || p.stage != "-" && (f.Kind != "source" || len(f.Problems) == 0) {
				t.Errorf("got %+v", f)
			}
			if p.stage != "" && p.stage != "-" && f.Stage != p.stage {
				t.Errorf("it failed at %s", f.Stage)
			}
			for _, want := range p.says {
				if !strings.Contains(text(r), want) {
					t.Errorf("it does not say %q:\n%s", want, text(r))
				}
			}
		})
	}
	c.says("answer_get", "42")
}

// A manifest can be the text of one, and sources can be several.
func TestWriteFiles(t *testing.T) {
	h := newHome(t, preApproved)
	c := h.client()
	p := &sdk.CallToolParams{Name: "extension_write", Arguments: object{
		"manifest": `{"name": "two", "version": "1.0.0", "description": "d", "tools": ["get"], "permissions": {"kv": true}, "tests": [{"name": "gets", "tool": "get", "input": {}, "expect": 7}]}`,
		"files":    object{"index.ts": `import { extension } from "stile"; import { n } from "./n"; export default extension({ tools: { get: { description: "d", run: () => n } } });`, "n.ts": "export const n: number = 7;"},
	}}
	r, err := c.CallTool(t.Context(), p)
	if err != nil || r.IsError {
		t.Fatal(text(r), err)
	}
	var w writeOutput
	if err := json.Unmarshal([]byte(text(r)), &w); err != nil {
		t.Fatal(err)
	}
	if w.State != "active" || w.Scope != "agent:alice" || len(w.Tests) != 1 || !w.Tests[0].Passed || w.Uses["kv"] == nil || len(w.TookMS) != len(extension.Stages(true)) {
		t.Errorf("got %+v", w)
	}
	c.says("two_get", "7")
	if again := does[writeOutput](c, "extension_write", p.Arguments); !again.Unchanged {
		t.Errorf("the same again is new: %+v", again)
	}
	s := does[sourceOutput](c, "extension_source", object{"extension": "two"})
	if s.Digest != w.Digest || s.Files["n.ts"] != "export const n: number = 7;" || s.Entry != "index.ts" || !strings.Contains(s.Manifest, `"gets"`) || s.Author != "agent:alice" {
		t.Errorf("got %+v", s)
	}
}

// A manifest is kept as it was sent, but for lines, so that problems have places and nothing in it is doubled.
func TestManifestIsKept(t *testing.T) {
	h := newHome(t, preApproved)
	c := h.client()
	const source = `import { extension } from "stile"; export default extension({ tools: { get: { description: "d", run: () => 1 } } });`
	w := does[writeOutput](c, "extension_write", object{"source": source, "manifest": json.RawMessage(`{"name":"kept","description":"a < b","version":"1.0.0","tools":["get"]}`)})
	s := does[sourceOutput](c, "extension_source", object{"extension": "kept", "version": w.Digest})
	if s.Manifest != "{\n  \"name\": \"kept\",\n  \"description\": \"a < b\",\n  \"version\": \"1.0.0\",\n  \"tools\": [\n    \"get\"\n  ]\n}" {
		t.Errorf("got %s", s.Manifest)
	}
	f := failed(t, c.tool("extension_write", object{"source": source, "manifest": json.RawMessage(`{"name":"kept","version":"1.0.0","description":"d","tools":["get"],"name":"else"}`)}))
	if len(f.Problems) != 1 || f.Problems[0].Line != 8 {
		t.Errorf("a doubled field is taken, or has no place: %+v", f)
	}
}

// A binding that the code uses and the manifest does not ask for is a problem of the draft, unless the code asks whether it is there.
func TestUnasked(t *testing.T) {
	write := func(code string) object {
		return object{
			"source": `import { extension } from "stile";
export default extension({ tools: { get: { description: "d", run: (_: unknown, env: any) => ` + code + ` } } });`,
			"manifest": json.RawMessage(`{"name":"lacking","description":"d","version":"1.0.0","tools":["get"]}`),
		}
	}
	c := newHome(t, preApproved).client()
	if f := failed(t, c.tool("extension_write", write("[env.store, env.console]"))); f.Stage != "report" || len(f.Problems) != 1 || !strings.HasPrefix(f.Problems[0].Text, "env.store is used, and the manifest does not ask for it") {
		t.Errorf("got %+v", f)
	}
	w := does[writeOutput](c, "extension_write", write(`"store" in env ? [env.store] : []`))
	if len(w.Unasked) != 1 || !strings.HasSuffix(w.Unasked[0], " uses env.store, which the manifest does not ask for") {
		t.Errorf("got %q", w.Unasked)
	}
}

// The description is all that an agent reads before it writes, in every conversation.
func TestWriteDescription(t *testing.T) {
	words, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := words.Count(writeDescription); err != nil || n > 2300 {
		t.Errorf("the description has %d tokens, %v", n, err)
	} else {
		t.Logf("%d tokens", n)
	}
}

// The stages are told to whoever asks for progress.
func TestProgress(t *testing.T) {
	h := newHome(t, preApproved)
	here, there := sdk.NewInMemoryTransports()
	go func() { _ = h.server.Serve(context.WithoutCancel(t.Context()), alice, here) }()
	told := make(chan *sdk.ProgressNotificationParams, 100)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params },
	}).Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	p := &sdk.CallToolParams{Name: "extension_write", Arguments: draft("answer", "42", nil)}
	p.SetProgressToken("here")
	if r, err := c.CallTool(t.Context(), p); err != nil || r.IsError {
		t.Fatal(text(r), err)
	}
	for i, stage := range extension.Stages(true) {
		if got := soon(t, told, string(stage)); got.Message != string(stage) || got.Progress != float64(i) || got.Total != float64(len(extension.Stages(true))) || got.ProgressToken != "here" {
			t.Errorf("got %+v", got)
		}
	}
}

// An agent finds what there is, sees no more than that, and takes away only what is its own.
func TestKeeping(t *testing.T) {
	h := newHome(t, `{"approve": [{"scopes": ["own", "shared"]}]}`)
	a, b := h.client(), h.person(lifecycle.Viewer{Agent: "bob"}, "test", nil)
	d := draft("rates", "1", nil)
	d["source"] = strings.Replace(d["source"].(string), "Gets a value", "Exchange rates of currencies", 1)
	rates := does[writeOutput](a, "extension_write", d)
	d = draft("common", "2", nil)
	d["scope"] = "shared"
	d["manifest"].(object)["tags"] = []string{"trivia", "deep-thought"}
	does[writeOutput](a, "extension_write", d)
	waits := does[writeOutput](a, "extension_write", draft("waits", "3", object{"kv": true}))

	list := does[listOutput](a, "extension_list", nil)
	var seen []string
	for _, x := range list.Extensions {
		seen = append(seen, fmt.Sprintf("%s %s %s", x.Scope, x.Name, x.State))
	}
	if want := []string{"agent:alice rates active", "agent:alice waits pending", "shared common active"}; !slices.Equal(seen, want) {
		t.Errorf("got %q", seen)
	}
	if list.Extensions[1].Pending == nil || list.Extensions[1].Pending.Release != waits.Release {
		t.Errorf("got %+v", list.Extensions[1])
	}
	if list = does[listOutput](a, "extension_list", object{"limit": 1}); len(list.Extensions) != 1 || list.Message == "" {
		t.Errorf("got %+v", list)
	}
	if found := does[listOutput](a, "extension_list", object{"query": "currency exchange"}); len(found.Tools) == 0 || found.Tools[0].Name != "rates_get" {
		t.Errorf("got %+v", found)
	}
	if found := does[listOutput](a, "extension_list", object{"query": `"; DROP TABLE release; --*`}); len(found.Tools) != 0 || found.Message == "" {
		t.Errorf("got %+v", found)
	}
	tags := []string{"deep-thought", "trivia"}
	if list = does[listOutput](a, "extension_list", object{"tag": "trivia"}); len(list.Extensions) != 1 || list.Extensions[0].Name != "common" || !slices.Equal(list.Extensions[0].Tags, tags) {
		t.Errorf("got %+v", list)
	}
	if found := does[listOutput](a, "extension_list", object{"query": "trivia"}); len(found.Tools) != 1 || found.Tools[0].Name != "common_get" || !slices.Equal(found.Tools[0].Tags, tags) {
		t.Errorf("got %+v", found)
	}
	if found := does[listOutput](a, "extension_list", object{"query": "get rates common", "tag": "trivia", "limit": 1}); len(found.Tools) != 1 || found.Tools[0].Name != "common_get" {
		t.Errorf("got %+v", found)
	}
	for _, tag := range []string{"deep", "Trivia", "trivia ", "\x1b[2J", `" OR 1=1 --`, strings.Repeat("a", 1000)} {
		if list = does[listOutput](a, "extension_list", object{"tag": tag}); len(list.Extensions) != 0 || list.Message == "" {
			t.Errorf("%q: got %+v", tag, list)
		}
	}
	if list = does[listOutput](b, "extension_list", nil); len(list.Extensions) != 1 || list.Extensions[0].Name != "common" {
		t.Errorf("another agent sees %+v", list)
	}

	for _, c := range []struct {
		tool      string
		arguments object
	}{
		{"extension_source", object{"extension": "rates"}},
		{"extension_source", object{"extension": "rates", "version": rates.Digest}},
		{"extension_source", object{"extension": "common", "version": rates.Digest}},
		{"extension_source", object{"extension": "common", "version": "%"}},
		{"extension_source", object{"extension": "common", "version": strings.Repeat("0", 64)}},
		{"extension_test", object{"extension": "rates", "version": rates.Digest[:8]}},
		{"extension_remove", object{"extension": "rates"}},
	} {
		if f := failed(t, b.tool(c.tool, c.arguments)); f.Kind != "input" || strings.Contains(f.Message, "agent:alice") {
			t.Errorf("%s of another agent: %+v", c.tool, f)
		}
	}
	for _, agent := range []*client{a, b} {
		if f := failed(t, agent.tool("extension_remove", object{"extension": "common"})); f.Kind != "refused" {
			t.Errorf("an agent takes away what is shared: %+v", f)
		}
	}
	if got := does[removeOutput](a, "extension_remove", object{"extension": "rates", "reason": "done"}); got.State != "removed" {
		t.Errorf("got %+v", got)
	}
	if a.offers("rates_get") {
		t.Error("it is there though it was removed")
	}
	if s := does[sourceOutput](a, "extension_source", object{"extension": "rates", "version": rates.Digest[:8]}); s.State != "removed" || s.Digest != rates.Digest {
		t.Errorf("got %+v", s)
	}
}

// TestDeepManifests sends manifests and tests that nest: a problem names the nesting, as they are not made larger by spaces first.
func TestDeepManifests(t *testing.T) {
	h := newHome(t, `{}`)
	c := h.client()
	does[writeOutput](c, "extension_write", draft("answer", "42", nil))
	deep := json.RawMessage(strings.Repeat("[", 500) + strings.Repeat("1,", 5000) + "1" + strings.Repeat("]", 500))
	for tool, arguments := range map[string]object{
		"extension_write": {"source": "1", "manifest": object{"name": "deep", "tests": deep}},
		"extension_test":  {"extension": "answer", "tests": []any{deep}},
	} {
		if r := c.tool(tool, arguments); !r.IsError || !strings.Contains(text(r), "nested too deep") {
			t.Errorf("%s: %.300s", tool, text(r))
		}
	}
}

// Tests run again, and others than those that are there.
func TestTest(t *testing.T) {
	h := newHome(t, `{}`)
	c := h.client()
	d := draft("answer", "input.n === 1 ? 42 : 43", nil)
	d["manifest"].(object)["tests"] = []object{{"name": "one", "tool": "get", "input": object{"n": 1}, "expect": 42}}
	w := does[writeOutput](c, "extension_write", d)
	if got := does[testsOutput](c, "extension_test", object{"extension": "answer"}); got.Passed != 1 || got.Failed != 0 || got.Digest != w.Digest {
		t.Errorf("got %+v", got)
	}
	got := does[testsOutput](c, "extension_test", object{"extension": "answer", "version": w.Digest[:12], "tests": []object{
		{"tool": "get", "input": object{"n": 1}, "expect": 42}, {"tool": "get", "input": object{}, "expect": 42},
	}})
	if got.Passed != 1 || got.Failed != 1 || got.Tests[1].Problem == nil {
		t.Errorf("got %+v", got)
	}
	for name, tests := range map[string]any{"another tool": []object{{"tool": "x", "input": object{}, "expect": 1}}, "no test": []any{1}} {
		if f := failed(t, c.tool("extension_test", object{"extension": "answer", "tests": tests})); f.Kind != "source" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// How tools do is counted, also for what nobody needs.
func TestStats(t *testing.T) {
	h := newHome(t, `{}`)
	c := h.client()
	does[writeOutput](c, "extension_write", draft("answer", "input.n ?? (() => { throw new Error('none') })()", nil))
	c.tool("answer_get", object{"n": 1})
	c.tool("answer_get", nil)
	h.outcome("get") // written down
	s := does[statsOutput](c, "extension_stats", nil)
	if len(s.Tools) != 1 || s.Tools[0].Calls != 2 || s.Tools[0].Failures != 1 || s.Tools[0].ErrorRate != 0.5 || !strings.Contains(s.Tools[0].LastError, "none") || len(s.Prunable) != 0 {
		t.Errorf("got %+v", s)
	}
}

// A generator is offered when there is one; what it writes is like what an agent writes.
func TestGenerate(t *testing.T) {
	h := newHome(t, `{}`)
	fails := errors.New("model: HTTP status 529\u202e")
	h.with(func(o *Options) {
		o.Generate = func(ctx context.Context, r GenerateRequest) (Generated, error) {
			r.Progress("one")
			if r.Viewer != alice {
				t.Errorf("for %+v", r.Viewer)
			}
			if r.Description == "fails" {
				return Generated{}, fails
			}
			if !r.New {
				return Generated{Existing: []lifecycle.Found{{Name: "answer_get", Description: "d"}}}, nil
			}
			w, err := h.manager.Write(ctx, lifecycle.Draft{
				Scope: r.Scope, Author: r.Author, Via: r.Via, Manifest: []byte(`{"name": "made", "version": "1.0.0", "description": "d", "tools": ["get"]}`),
				Files: map[string][]byte{"tool.ts": []byte(`import { extension } from "stile"; export default extension({ tools: { get: { description: "d", run: () => 1 } } });`)},
			})
			tokens := model.Tokens{Input: 12, Output: 3}
			return Generated{Written: w, Spent: Spent{Rounds: []Round{{Tokens: tokens}}, Tokens: tokens}}, err
		}
	})
	c := h.client()
	if got := does[writeOutput](c, "extension_generate", object{"description": "x"}); got.State != "existing" || len(got.Tools) != 1 {
		t.Errorf("got %+v", got)
	}
	if got := does[writeOutput](c, "extension_generate", object{"description": "x", "new": true}); got.State != "active" || got.Scope != "agent:alice" ||
		got.Generation == nil || got.Generation.Tokens.Input != 12 || len(got.Generation.Rounds) != 1 {
		t.Errorf("got %+v", got)
	}
	c.says("made_get", "1")
	if f := failed(t, c.tool("extension_generate", object{"description": "fails"})); f.Message != `model: HTTP status 529\u202e` {
		t.Errorf("got %+v", f)
	}
	r, err := h.manager.Find(t.Context(), alice, "made")
	if err != nil || r.Author != "agent:alice" || r.Scope != (extension.Scope{Kind: extension.Agent, Owner: "alice"}) {
		t.Errorf("got %+v, %v", r, err)
	}
}
