package toolchain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

func newEvaluator(t testing.TB, limits host.Limits) (*toolchain.Toolchain, *toolchain.Evaluator) {
	t.Helper()
	_, tools := newToolchain(t, host.Options{Limits: limits})
	e, err := tools.Evaluator(t.Context(), map[string]string{
		"clock": clock.Interface, "random": random.Interface, "console": console.Interface, "store": "stile:capability/kv@0.1.0",
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	return tools, e
}

// code is the text of an extension with one tool "t" with this body; around goes before it.
func code(around, body string) string {
	return "import { extension, DeniedError } from \"stile\";\n" + around +
		"\nexport default extension({ tools: { t: { description: \"test\", run: async (input: any, env: any) => {" + body + "} } } });"
}

// TestEvaluate checks that each source ends as it would if it were built. An ordinary call after it finds no trace of it.
func TestEvaluate(t *testing.T) {
	_, e := newEvaluator(t, host.Limits{CPU: 300 * time.Millisecond, Wall: 20 * time.Second, Memory: 16 << 20})
	env := host.Env{"clock": clock.System(), "random": random.System(), "console": console.To(func(console.Level, string) {}), "store": newShelf()}
	ordinary := code("", `return [1].map((x) => x).length + ((globalThis as any).left ?? 0)`)
	schema := `import { extension } from "stile"; export default extension({ tools: {
		a: { description: "A", input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] }, run: ({ n }) => n + 1 },
		b: { description: "B", run: () => "b" } } });`
	for _, c := range []struct {
		name, source, tool, input string
		// want is a part of the error's text, and like its type; with no type it is the output.
		want string
		like any
	}{
		{"a tool", schema, "a", `{"n":1}`, "2", nil},
		{"another tool", schema, "b", "", `"b"`, nil},
		{"an input that does not fit", schema, "a", `{"n":"x"}`, "/n: got string, want number", new(*host.InputError)},
		{"an input that is not JSON", schema, "a", `{`, "not JSON", new(*host.InputError)},
		{"an unknown tool", schema, "c", "", `unknown tool "c"; there are: a, b`, new(*host.UnknownToolError)},
		{"top-level await", code("const one = await Promise.resolve(1);", `return one;`), "t", "", "1", nil},
		{"the SDK, imported when it is wanted", code("", `return typeof (await import("stile")).extension;`), "t", "", `"function"`, nil},
		{"time and chance at top level", code("const at = [Date.now(), Math.random() < 1];", `return at;`), "t", "", "[946684800000,true]", nil},
		{"a capability", code("", `await env.store.set("k", "v"); return env.store.get("k");`), "t", "", `"v"`, nil},
		{"the web's own", code("", `return new URL("/a", "https://example.com").href;`), "t", "", `"https://example.com/a"`, nil},
		{"a denial", code("", `return env.store.get("secret");`), "t", "", "no rule", new(*host.DeniedError)},
		{"a binding that is not there", code("", `return env.github.fetch("https://example.com");`), "t", "", "env.github is not bound", new(*host.GuestError)},

		{"a syntax error", "const a = 1;\n  let b = = 2;", "t", "", `code.ts:2:11: Unexpected "="`, new(*toolchain.BuildError)},
		{"an import of a package", code("\n  import { z } from \"zod\"; z();", ""), "t", "", `code.ts:3:21: "zod" cannot be imported`, new(*toolchain.BuildError)},
		{"an import of a file", code("import secret from '../secret.json'; secret();", ""), "t", "", `stile build makes a component`, new(*toolchain.BuildError)},
		{"an import for its effects", code("import \"/etc/passwd\";", ""), "t", "", `"/etc/passwd" cannot be imported`, new(*toolchain.BuildError)},
		{"an import when it is wanted", code("", `return import("./other");`), "t", "", `"./other" cannot be imported`, new(*toolchain.BuildError)},
		{"an import that is computed", code("", `return import("./" + "other");`), "t", "", "could not load module", new(*host.GuestError)},
		{"a name that the SDK has not", code("import { nothing } from \"stile\"; nothing();", ""), "t", "", "nothing", new(*toolchain.BuildError)},
		{"an error at top level", code("\nconst f = (): never => { throw new TypeError(\"early\"); };\nf();", ""), "t", "", "code.ts:3:36: top-level code threw TypeError: early", new(*toolchain.BuildError)},
		{"a capability at top level", code("await new Promise((done) => setTimeout(done, 1));", ""), "t", "", "not available at top level", new(*toolchain.BuildError)},
		{"a denial at top level that did not happen", code(`throw new DeniedError({ binding: "b", operation: "o", reason: "r", remedy: "all" });`, ""), "t", "", "top-level code threw DeniedError", new(*toolchain.BuildError)},
		{"no export", "const a = 1;", "t", "", "export default extension(", new(*toolchain.BuildError)},
		{"nothing", "", "t", "", "export default extension(", new(*toolchain.BuildError)},
		{"the wrong export", "export default { tools: { t: { run: () => 1 } } };", "t", "", "export default extension(", new(*toolchain.BuildError)},
		{"a tool without a function", `import { extension } from "stile"; export default extension({ tools: { t: { description: "x" } } });`, "t", "", "tools.t.run: a function is wanted", new(*toolchain.BuildError)},
		{"a schema that is none", `import { extension } from "stile"; export default extension({ tools: { t: { description: "x", input: { type: "object", properties: 1 }, run: () => 1 } } });`, "t", "", "input schema", new(*host.DefinitionError)},
		{"a namespace that is a promise", "export function then(done: any) { done({ default: 1 }); }", "t", "", "export default extension(", new(*toolchain.BuildError)},

		{"a loop at top level", code("for (;;);", ""), "t", "", "limit reached: cpu (300ms)", new(*host.LimitError)},
		{"a loop in a schema", `import { extension } from "stile"; export default extension({ tools: { t: { description: "x", input: { get type() { for (;;); } }, run: () => 1 } } });`, "t", "", "limit reached: cpu", new(*host.LimitError)},
		{"a loop in the tool", code("", "for (;;);"), "t", "", "limit reached: cpu (300ms)", new(*host.LimitError)},
		{"a promise at top level that nothing settles", code("await new Promise(() => {});", ""), "t", "", "limit reached: promise", new(*host.LimitError)},
		{"a hoard at top level", code("const a: any[] = []; for (;;) a.push(new ArrayBuffer(1 << 20));", ""), "t", "", "limit reached: memory", new(*host.LimitError)},
		{"recursion at top level", code("const f = (): any => f() + 1; f();", ""), "t", "", "limit reached: stack", new(*host.LimitError)},
		{"a large source", code("//"+strings.Repeat("x", 300<<10), ""), "t", "", "more than 256 KiB", new(*toolchain.BuildError)},
		{"deep nesting", strings.Repeat("(", 50_000), "t", "", "nested deeper", new(*toolchain.BuildError)},
		{"templates in templates", strings.Repeat("`${", 50_000), "t", "", "nested deeper", new(*toolchain.BuildError)},
		{"a regular expression of brackets", "/" + strings.Repeat("(", 50_000), "t", "", "", new(*toolchain.BuildError)},
		{"a regular expression that is wrong", code("const r = /"+strings.Repeat("(", 100)+"/;", ""), "t", "", "", new(*toolchain.BuildError)},

		{"nothing thrown at top level", code("throw undefined;", ""), "t", "", "top-level code threw undefined", new(*toolchain.BuildError)},
		{"a trap thrown at top level", code("throw new Proxy(new Error('x'), { get() { throw 1; }, getPrototypeOf() { throw 2; } });", ""), "t", "", "top-level code threw", new(*toolchain.BuildError)},
		{"terminal escapes thrown at top level", code("throw new Error('\\x1b[2J\\u202ered');", ""), "t", "", `\x1b[2J\u202ered`, new(*toolchain.BuildError)},
		{"a failure", code("", "\nthrow new RangeError('late');"), "t", "", "tool failed: RangeError: late", new(*host.GuestError)},
		{"NUL, direction marks and what is not UTF-8", code("const s = 'a\x00b\u202ec\xff';", `return s.length;`), "t", "", "6", nil},
		{"a source map of its own", code("", "return 1;") + "\n//# sourceMappingURL=file:///etc/passwd", "t", "", "1", nil},

		{"a runtime that it broke", code(`Promise.prototype.then = null as any; JSON.stringify = () => '"forged"'; JSON.parse = () => 7; Map.prototype.get = () => ({ run: () => "forged" });
			Object.prototype.toString = () => "x"; (globalThis as any).left = 1; Object.defineProperty(Array.prototype, "map", { value: () => ["forged"] });`, `return "forged";`), "t", "", "?", nil},
		{"an SDK that it replaced", `(globalThis as any)[Symbol.for("stile.sdk")] = 1; export default {};`, "t", "", "?", nil},
		{"a loop that it left for later", code("Promise.resolve().then(function f() { (globalThis as any).left = 1; });", `return (globalThis as any).left;`), "t", "", "1", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			output, err := e.Call(t.Context(), c.source, c.tool, []byte(c.input), env)
			switch {
			case c.want == "?": // the damage stays inside the guest, whatever it is
			case c.like == nil:
				if err != nil || string(output) != c.want {
					t.Errorf("got %s, %v, want %s", output, err, c.want)
				}
			case err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, c.like):
				t.Errorf("got %s, %T %v, want %q", output, err, err, c.want)
			}
			output, err = e.Call(t.Context(), ordinary, "t", nil, env)
			if err != nil || string(output) != "1" {
				t.Errorf("an ordinary call after it: %s, %v", output, err)
			}
		})
	}
}

// TestEvaluateStack checks that a stack names the author's lines.
func TestEvaluateStack(t *testing.T) {
	_, e := newEvaluator(t, host.Limits{})
	_, err := e.Do(t.Context(), toolchain.Program{Name: "mine.ts", Text: code("interface Gone { n: number }\nconst fail = (g: Gone): never => {\n  throw new Error(`n is ${g.n}`);\n};", "\n  fail({ n: 1 });")}, host.Request{Tool: "t"})
	failed, ok := errors.AsType[*host.GuestError](err)
	if !ok || failed.Failure.Stack != "    at fail (mine.ts:4:27)\n    at run (mine.ts:7:3)\n" {
		t.Errorf("got %v, %q", err, failed.Failure.Stack)
	}
}

// lastRecording keeps the recording of the last call.
type lastRecording struct{ *host.Recording }

func (r *lastRecording) Record(_ context.Context, last *host.Recording) { r.Recording = last }

// TestEvaluateReplays checks that a recording contains the code and replays to the same bytes, also for failures, and in the
// component that was built from the same source.
func TestEvaluateReplays(t *testing.T) {
	tools, e := newEvaluator(t, host.Limits{})
	env := host.Env{"clock": clock.System(), "random": random.System(), "store": newShelf()}
	for _, c := range []struct{ name, source, outcome string }{
		{"an answer", code("", `return [Date.now(), Math.random(), await env.store.get("k") ?? null];`), "ok"},
		{"a failure", code("", `throw new Error("at " + Date.now());`), "failed"},
		{"a failure at top level", code(`throw new Error("early");`, ""), "code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var last lastRecording
			result, err := e.Do(t.Context(), toolchain.Program{Text: c.source}, host.Request{Tool: "t", Env: env, Recorder: &last})
			if last.Recording == nil || last.Outcome.Kind != c.outcome || last.Component != e.Component().Digest() {
				t.Fatalf("recorded %+v of %s, %v", last.Recording, result.Output, err)
			}
			got, err := e.Component().Replay(t.Context(), last.Recording, host.ReplayOptions{})
			if err != nil || !got.Same || !bytes.Equal(got.Output, result.Output) || !reflect.DeepEqual(got.Outcome, last.Outcome) {
				t.Errorf("replayed %+v, %v", got, err)
			}
			if c.outcome != "ok" {
				return
			}
			built := build(t, tools, source(c.source))
			if got, err = built.Replay(t.Context(), last.Recording, host.ReplayOptions{OtherComponent: true, Deny: true}); err != nil || !bytes.Equal(got.Output, result.Output) {
				t.Errorf("replayed in the built one: %+v, %v", got, err)
			}
		})
	}
}

// TestEvaluateApproved checks a call against the definitions that a person approved, and not against those of the code.
func TestEvaluateApproved(t *testing.T) {
	_, e := newEvaluator(t, host.Limits{})
	approved := []abi.Definition{{Name: "t", Description: "test", InputSchema: `{"type":"object","required":["n"]}`}}
	for input, want := range map[string]string{`{"n":1}`: "", `{}`: "missing property 'n'"} {
		_, err := e.Do(t.Context(), toolchain.Program{Text: code("", "return 1;")}, host.Request{Tool: "t", Input: []byte(input), Approved: approved})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", input, err)
		}
	}
}

// TestEvaluateEnds checks that a call ends with its context, in every phase.
func TestEvaluateEnds(t *testing.T) {
	_, e := newEvaluator(t, host.Limits{CPU: time.Minute})
	for _, c := range []struct{ name, source string }{
		{"running", code("for (;;);", "")},
		{"waiting", code("", "await env.clock.sleep(60_000);")},
		{"parsing", "namespace a" + strings.Repeat(".a", 800) + "{ export let b = 1 }"}, // two seconds
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := e.Call(ctx, c.source, "t", nil, host.Env{"clock": clock.System()})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", c.name, err)
		}
		cancel()
	}
}

// TestEvaluateNeedsAnEvaluator checks that no other component runs the code of a call.
func TestEvaluateNeedsAnEvaluator(t *testing.T) {
	_, tools := newToolchain(t, host.Options{})
	_, err := build(t, tools, tool("", "return 1;")).Do(t.Context(), host.Request{Tool: "t", Code: &host.Code{Text: "1"}})
	if refused, ok := errors.AsType[*host.LoadError](err); !ok || refused.Name != abi.ExtensionEvaluator {
		t.Errorf("code for a component that runs its own only: %v", err)
	}
}

// TestEvaluateManyAtOnce runs calls with different code at the same time. Each uses its own code, whatever its interfaces.
func TestEvaluateManyAtOnce(t *testing.T) {
	_, tools := newToolchain(t, host.Options{})
	e, err := tools.Evaluator(t.Context(), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	shelf := newShelf()
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			source := code(fmt.Sprintf("const mine = %d;", i), `await env.mine.set(String(mine), "x"); return [mine, await env.mine.get(String(mine))];`)
			output, err := e.Call(t.Context(), source, "t", nil, host.Env{"mine": shelf})
			if want := fmt.Sprintf(`[%d,"x"]`, i); err != nil || string(output) != want {
				t.Errorf("got %s, %v, want %s", output, err, want)
			}
		})
	}
	calls.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Call(t.Context(), code("", "return 1;"), "t", nil, nil); !errors.Is(err, host.ErrClosed) {
		t.Errorf("when it is closed: %v", err)
	}
}
