package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/ladder"
	"github.com/stilehost/stile/toolchain"
)

func TestCodeRun(t *testing.T) {
	h := newHome(t, `{}`).with(func(o *Options) { o.Limits.CPU = 500 * time.Millisecond })
	c := h.client()
	for _, run := range []struct {
		name, code string
		input      any
		result     string
	}{
		{"a number", "return 6 * 7;", nil, "42"},
		{"types and input", "const ns: number[] = input.ns;\nreturn ns.reduce((a: number, b: number) => a + b, 0);", object{"ns": []int{1, 2, 3}}, "6"},
		{"no input", "return input;", nil, "<nil>"},
		{"a list as input", "return input.length;", []int{1, 2}, "2"},
		{"await", "await new Promise((done) => setTimeout(done, 1)); return typeof Date.now();", nil, "number"},
		{"no return", "1 + 1;", nil, "<nil>"},
		{"a comment at the end", "return 1; // one", nil, "1"},
		{"nothing of another call", "globalThis.left = (globalThis.left ?? 0) + 1; return globalThis.left;", nil, "1"},
		{"again", "globalThis.left = (globalThis.left ?? 0) + 1; return globalThis.left;", nil, "1"},
	} {
		t.Run(run.name, func(t *testing.T) {
			arguments := object{"code": run.code}
			if run.input != nil {
				arguments["input"] = run.input
			}
			if got := does[codeOutput](c, "code_run", arguments); fmt.Sprint(got.Result) != run.result {
				t.Errorf("got %v", got.Result)
			}
		})
	}
	if got := does[codeOutput](c, "code_run", object{"code": `console.log("a", 1); console.error("b"); return 1;`}); strings.Join(got.Logs, "|") != "info: a 1|error: b" {
		t.Errorf("got %q", got.Logs)
	}
	const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	shown := c.tool("code_run", object{"code": `console.log("drawn"); return new Blob([Uint8Array.from(atob("` + dot + `"), (c) => c.charCodeAt(0))], { type: "image/png" })`})
	image, isImage := shown.Content[0].(*sdk.ImageContent)
	if !isImage || base64.StdEncoding.EncodeToString(image.Data) != dot || image.MIMEType != "image/png" {
		t.Errorf("got %+v", shown.Content)
	}
	if beside, err := json.Marshal(shown.StructuredContent); err != nil || !strings.Contains(string(beside), `"logs":["info: drawn"]`) || strings.Contains(string(beside)+text(shown), dot) {
		t.Errorf("beside it is %s, %q, %v", beside, text(shown), err)
	}
	file := c.tool("code_run", object{"code": `return new Blob(["a,b"], { type: "text/csv" })`})
	if link, ok := file.Content[0].(*sdk.ResourceLink); !ok || link.MIMEType != "text/csv" {
		t.Errorf("got %+v", file.Content)
	}
	for _, run := range []struct {
		name, code, kind string
		says             []string
	}{
		{"syntax", "const a = 1;\nlet b = = 2;", "source", []string{"code.ts:2:9"}},
		{"an end that is missing", "if (true) {\nreturn 1;", "source", []string{"code.ts:2:10: Expected"}},
		{"thrown", "const f = () => {\n  throw new TypeError('no');\n};\nf();", "failed", []string{"TypeError: no", "code.ts:2:13", "code.ts:4:1"}},
		{"an import", `const { z } = await import("zod");`, "source", []string{"cannot be imported"}},
		{"the network", `return (await fetch("https://example.com")).status;`, "failed", []string{`fetch of https://example.com needs the http binding "network"; code_run cannot have it: write an extension, and ask for it in the manifest`}},
		{"a binding", `return env.notes.read("a");`, "failed", []string{"env.notes is not bound (bound: ", "; code_run cannot have it: write an extension, and ask for it in the manifest"}},
		{"words like a hint's", `throw new Error("x; bind it with --bind y");`, "failed", []string{"x; bind it with --bind y"}},
		{"a loop", `for (;;);`, "limit", []string{"cpu (500ms)"}},
		{"nothing", " ", "input", []string{"code is empty; send the body of a function"}},
		{"out of its body", "} } } } }); throw new Error('out'); ({ a: () => { void { b: { c: { d: 1", "source", []string{"code.ts:1:"}},
		{"its log", "console.log('here'); throw new Error('no');", "failed", []string{"It logged:\n    info: here"}},
	} {
		t.Run(run.name, func(t *testing.T) {
			r := c.tool("code_run", object{"code": run.code})
			if f := failed(t, r); f.Kind != run.kind {
				t.Errorf("got %+v", f)
			}
			for _, want := range run.says {
				if !strings.Contains(text(r), want) {
					t.Errorf("it does not say %q:\n%s", want, text(r))
				}
			}
			if strings.Contains(text(r), "--bind") != strings.Contains(run.code, "--bind") {
				t.Errorf("it advises a flag that a model has not:\n%s", text(r))
			}
		})
	}
	h.with(func(o *Options) {
		o.Ladder = ladder.NewKit(ladder.KitOptions{Host: sharedHost, Toolchain: func(context.Context) (*toolchain.Toolchain, error) {
			return nil, fmt.Errorf("open /home/tom/secret: no such file")
		}})
	})
	if r := h.client().tool("code_run", object{"code": "return 1"}); failed(t, r).Kind != "host" || strings.Contains(text(r), "/home") {
		t.Errorf("a fault of the host is told: %s", text(r))
	}
	if h.with(func(o *Options) { o.Ladder = nil }).client().offers("code_run") {
		t.Error("it is there though nothing runs it")
	}
}

// Code calls the tools that its agent can call, and no others. It can catch their failures.
func TestCodeTools(t *testing.T) {
	h := newHome(t, preApproved)
	c := h.client()
	does[writeOutput](c, "extension_write", tools("my-count", object{"kv": true}, object{
		"add":  `env.kv.set("n", String(input.n)).then(() => env.kv.get("n")).then((n: string) => Number(n) + 1)`,
		"fail": `(() => { throw new Error("no") })()`,
	}))
	other := h.person(lifecycle.Viewer{User: "tom", Agent: "bob"}, "test", nil)
	for code, want := range map[string]string{
		`return [await tools.my_count.add({ n: 6 }), await env.tools.call("my_count_add", { n: 1 })].join();`: "7,2",
		`try { await tools.my_count.fail({}); return "?"; } catch (e) { return String(e); }`:                  "my_count_fail: tool failed: no",
		`try { await tools.my_count.gone({}); return "?"; } catch (e) { return String(e); }`:                  `tools.search("") lists the tools that you can call`,
		`return (await tools.search("")).map((t) => t.name).join();`:                                          "my_count_fail",
	} {
		if got := fmt.Sprint(does[codeOutput](c, "code_run", object{"code": code}).Result); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", code, got)
		}
		if r := other.tool("code_run", object{"code": code}); strings.Contains(text(r), want) {
			t.Errorf("another agent: %s: got %s", code, text(r))
		}
	}
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if tool.Name == "code_run" && (tool.Annotations.ReadOnlyHint || !*tool.Annotations.DestructiveHint || !*tool.Annotations.OpenWorldHint) {
			t.Errorf("it may do what tools do, and says %+v", tool.Annotations)
		}
	}
}

// The end of the logs is shown, up to a limit.
func TestLogs(t *testing.T) {
	var l logs
	for i := range 10_000 {
		l.add("info", fmt.Sprint("line ", i))
	}
	l.add("info", strings.Repeat("x", 1<<20))
	last := l.last()
	if n := len(strings.Join(last, "\n")); n > maxLogs+4 || last[0] != "..." {
		t.Errorf("got %d bytes in %d lines", n, len(last))
	}
}

// TestTurnsOfAgents has code and a write take build slots in the name of their agent, so that no agent waits for all builds that another
// one requests.
func TestTurnsOfAgents(t *testing.T) {
	h := newHome(t, `{}`)
	var users []string
	tools := h.options.Toolchain
	h.options.Toolchain = func(ctx context.Context) (*toolchain.Toolchain, error) {
		users = append(users, turns.User(ctx))
		return tools(ctx)
	}
	c := h.with(func(o *Options) {
		o.Ladder = ladder.NewKit(ladder.KitOptions{Host: sharedHost, Toolchain: h.options.Toolchain})
	}).client()
	does[codeOutput](c, "code_run", object{"code": "return 1"})
	does[writeOutput](c, "extension_write", draft("answer", "42", nil))
	if want := []string{alice.String(), alice.String()}; !slices.Equal(users, want) {
		t.Errorf("got %q, want %q", users, want)
	}
}

// TestCodeBinding has an agent write an extension that runs code. A person decides about it, whatever the policy approves otherwise, and the code has no
// more than what the person read.
func TestCodeBinding(t *testing.T) {
	h := newHome(t, preApproved)
	c := h.client()
	const source = `import { extension } from "stile";
const input = { type: "object", properties: { code: { type: "string" } } };
export default extension({ tools: {
  run: { description: "d", input, run: ({ code }: any, env: any) => env.runner.execute(code, { env: { kv: env.kv } }) },
  leak: { description: "d", input, run: ({ code }: any, env: any) => env.runner.execute(code, { env: { other: env.other } }) },
} });`
	manifest := object{
		"name": "coder", "version": "1.0.0", "description": "d", "tools": []string{"run", "leak"},
		"permissions": object{"kv": true}, "bindings": object{"other": object{"kv": true}, "runner": object{"code": object{"env": []string{"kv"}, "runs": 5}}},
	}
	w := does[writeOutput](c, "extension_write", object{"source": source, "manifest": manifest})
	if w.State != "pending" {
		t.Fatalf("it is %s", w.State)
	}
	review, err := h.manager.Review(t.Context(), w.Release)
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, b := range review.Granted {
		said += strings.Join(b.Grant.Describe(), "\n")
	}
	if !strings.Contains(said, "Nobody reviews that code") || !strings.Contains(said, "that code can do everything that these bindings may: kv") {
		t.Errorf("the person reads %s", said)
	}
	if r := c.tool("coder_run", object{"code": "return 1"}); !r.IsError {
		t.Errorf("it runs before a person has decided: %s", text(r))
	}
	h.approve(w.Release, w.Digest)
	for _, run := range []struct {
		tool, code, kind, says string
	}{
		{"run", "console.log(1); return env.kv.increment('n', 1)", "", `{"result":1,"log":[{"level":"info","text":"1"}]}`},
		{"run", "return Object.keys(env)", "", `["clock","console","kv","random"]`},
		{"run", "\nthrow new RangeError('late')", "failed", "code.ts:2:11: RangeError: late"},
		{"run", "for (;;);", "failed", "exhausted: code.ts: limit reached: cpu (1s)"},
		{"leak", "return 1", "denied", "pass other on to code"},
	} {
		r := c.tool("coder_"+run.tool, object{"code": run.code})
		if run.kind != "" {
			if got := failed(t, r); got.Kind != run.kind {
				t.Errorf("%s: got kind %s", run.code, got.Kind)
			}
		} else if r.IsError {
			t.Errorf("%s: it failed", run.code)
		}
		if !strings.Contains(text(r), run.says) {
			t.Errorf("%s: got %s", run.code, text(r))
		}
	}
	// Less authority for code needs nobody, if the policy says so for updates; more does.
	manifest["bindings"] = object{"other": object{"kv": true}, "runner": object{"code": object{"env": []string{"kv", "other"}, "runs": 5}}}
	if w := does[writeOutput](c, "extension_write", object{"source": source, "manifest": manifest}); w.State != "pending" {
		t.Errorf("with more for code it is %s", w.State)
	}
}
