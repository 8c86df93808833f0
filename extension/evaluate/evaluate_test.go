package evaluate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/code"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/extension/evaluate"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

// bench is a host whose extensions can run code.
type bench struct {
	host      *host.Host
	tools     *toolchain.Toolchain
	evaluator *evaluate.Evaluator
	kv        *kv.Store
	workspace *workspace.Store
	calls     *recordings
}

// recordings keeps what was recorded.
type recordings struct {
	mu   sync.Mutex
	all  []*host.Recording
	wasm map[string][]byte
}

func (r *recordings) Record(_ context.Context, made *host.Recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, made)
}

func (r *recordings) Keep(_ context.Context, wasm []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wasm = map[string][]byte{"": wasm}
	return nil
}

func newBench(t testing.TB, o host.Options) *bench {
	t.Helper()
	ctx := t.Context()
	o.CacheDir, o.KeyDir = cachetest.Dirs(t)
	b := &bench{calls: &recordings{}}
	var err error
	if b.host, err = host.New(ctx, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.host.Close() })
	if b.tools, err = toolchain.New(ctx, b.host, toolchain.Options{CacheDir: o.CacheDir, KeyDir: o.KeyDir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.tools.Close() })
	b.evaluator = evaluate.New(evaluate.Options{Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return b.tools, nil }, Recorder: b.calls})
	if b.kv, err = kv.Open(ctx, t.TempDir()+"/kv.db", kv.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.kv.Close() })
	if b.workspace, err = workspace.Open(ctx, t.TempDir()+"/ws.db", workspace.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.workspace.Close() })
	return b
}

// runner is the binding of a grant.
func (b *bench) runner(g code.Rights) *code.Grant { return code.New(g, b.evaluator.Run) }

// tool builds an extension whose tool "t" has this body.
func (b *bench) tool(t testing.TB, body string) *host.Component {
	t.Helper()
	text := `import { extension } from "stile";
const caught = async (what: () => unknown) => { try { return await what(); } catch (e: any) { return e.code + " | " + e.message; } };
export default extension({ tools: { t: { description: "Tests", input: { type: "object" }, run: async (input: any, env: any) => {` + body + `} },
	other: { description: "Uses kv, so that it can be passed on under other names", run: (_: any, env: any) => env.seen.get("k") } } });`
	c, err := b.tools.Build(t.Context(), toolchain.Source{FS: fstest.MapFS{"t.ts": {Data: []byte(text)}}, Entry: "t.ts"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// anyway runs the code in the input with what the tool has, and reports everything.
const anyway = `
	const pass: Record<string, object> = {};
	for (const [name, from] of Object.entries(input.pass ?? {})) pass[name] = env[from as string];
	if (input.narrow) pass.api = env.api.narrow(input.narrow);
	if (input.readOnly) pass.notes = env.notes.readOnly();
	try {
		const { result, log } = await env.runner.execute(input.code, { input: input.with, env: pass, name: input.name });
		return { result, log: log.map((l: any) => l.level + ": " + l.text) };
	} catch (e: any) {
		return { name: e.name, code: e.code, message: e.message, thrown: e.thrown, log: e.log?.map((l: any) => l.level + ": " + l.text) };
	}`

// said is what anyway returns.
type said struct {
	Result              json.RawMessage
	Name, Code, Message string
	Thrown              *abi.Failure
	Log                 []string
}

// run calls a tool with anyway's input.
func run(ctx context.Context, t testing.TB, c *host.Component, input map[string]any, env host.Env, limits host.Limits) (said, host.Result, error) {
	t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Do(ctx, host.Request{Tool: "t", Input: text, Env: env, Limits: limits})
	var s said
	if err == nil {
		if err := json.Unmarshal(r.Output, &s); err != nil {
			t.Fatal(err)
		}
	}
	return s, r, err
}

// TestCode runs code as a model would write it, and some that it should not have written.
func TestCode(t *testing.T) {
	b := newBench(t, host.Options{})
	c := b.tool(t, anyway)
	env := host.Env{
		"runner": b.runner(code.Rights{Env: []string{"notes", "seen"}, Limits: code.Limits{CPU: 300 * time.Millisecond, Memory: 16 << 20, Bytes: 64 << 10}}),
		"seen":   b.kv.Bucket("seen"), "secret": b.kv.Bucket("secret"), "notes": b.workspace.Workspace("notes"), "clock": clock.System(),
	}
	seen := map[string]string{"seen": "seen"}
	for _, tt := range []struct {
		name, code string
		more       map[string]any
		want       string // of the result, or else of code and message
		log        []string
	}{
		{"it computes", "const n: number = input.n; return n + 1", map[string]any{"with": map[string]int{"n": 1}}, "2", nil},
		{"without an input", "return input", nil, "null", nil},
		{"in JavaScript", "return 1 as number", map[string]any{"name": "a.js"}, `invalid | invalid: a.js:1:10: Expected ";" but found "as"`, nil},
		{"it returns nothing", "1", nil, "null", nil},
		{"it logs", `console.log("a", 1); console.error({ b: [2] }); return Date.now() > 0 && Math.random() < 1`, nil, "true", []string{"info: a 1", "error: { b: [ 2 ] }"}},
		{"it logs and throws", "console.log(1);\n\nconst f = (): never => { throw new RangeError(`late`); };\nf();", nil, "unavailable | unavailable: code.ts:3:36: RangeError: late", []string{"info: 1"}},
		{"it throws no error", "throw 1", nil, "unavailable | unavailable: ", nil},
		{"it is no code", "const a = 1;\nlet b = = 2;", nil, `invalid | invalid: code.ts:2:9: Unexpected "="`, nil},
		{"it is cut off", "if (true) {", nil, "invalid | invalid: code.ts:1:12: ", nil},
		{"it imports", `import fs from "fs"; return fs`, nil, "invalid | invalid: code.ts:1:8: this code cannot import", nil},
		{"it imports late", `return await import("./other")`, nil, `invalid | invalid: code.ts:1:21: "./other" cannot be imported`, nil},
		{"it is in no language", "return 1", map[string]any{"name": "a.py"}, "invalid | invalid: a.py: it is neither TypeScript nor JavaScript", nil},
		{"it uses a binding", `await env.seen.set("k", "v"); return [await env.seen.get("k"), Object.keys(env)]`, map[string]any{"pass": seen}, `["v",["clock","console","random","seen"]]`, nil},
		{"under another name", `await env.a.set("k", "w"); return env.a.get("k")`, map[string]any{"pass": map[string]string{"a": "seen"}}, `"w"`, nil},
		{"what is not passed", `return env.seen.get("k")`, nil, "unavailable | unavailable: code.ts:1:8: UnboundError: env.seen is not bound (bound: clock, console, random)", nil},
		{"the runner itself", `return env.runner.execute("return 1")`, nil, "unavailable | unavailable: code.ts:1:8: UnboundError: env.runner is not bound", nil},
		{"a binding that is not the code's", `return 1`, map[string]any{"pass": map[string]string{"seen": "secret"}}, `denied | denied: pass secret on to code: code may have only notes, seen; "bindings": { "runner": {"code":{"env":["notes","secret","seen"]`, nil},
		{"the clock, which it has anyway", `return 1`, map[string]any{"pass": map[string]string{"clock": "clock"}}, `denied | denied: pass clock on to code`, nil},
		{"the runner, passed on", `return 1`, map[string]any{"pass": map[string]string{"runner": "runner"}}, `error | "runner" cannot be passed on, because code runs only with bindings of the call that has it`, nil},
		{"the runner, passed on under another name", `return 1`, map[string]any{"pass": map[string]string{"seen": "runner"}}, `invalid | invalid: "runner" cannot be passed on, because code runs only with bindings of the call that has it`, nil},
		{"a narrowed binding", `return env.notes.write("a", "b")`, map[string]any{"readOnly": true}, "denied | denied: code.ts: write", nil},
		{"a denial that it handles", `try { await env.notes.write("a", "b"); } catch (e) { return e.name; }`, map[string]any{"readOnly": true}, `"DeniedError"`, nil},
		{"a denial that it makes up", `throw { name: "DeniedError", denial: { binding: "b", operation: "o", reason: "r", remedy: "all" } }`, nil, "unavailable | unavailable: ", nil},
		{"a result that is no JSON", "return 1n", nil, "", nil},
		{"a result that is too long", `return "x".repeat(70_000)`, nil, "exhausted | exhausted: code.ts: limit reached: output (64 KiB)", nil},
		{"code that is too long", "//" + strings.Repeat("x", 70_000), nil, "exhausted | exhausted: bytes of code and input: 65536; the option bytes of the binding raises it", nil},
		{"code under a strange name", "return 1", map[string]any{"name": "../a.ts"}, "invalid | invalid: \"../a.ts\" cannot name code", nil},
		{"a loop", "console.log(1); for (;;);", nil, "exhausted | exhausted: code.ts: limit reached: cpu (300ms)", []string{"info: 1"}},
		{"a hoard", "const a: any[] = []; for (;;) a.push(new ArrayBuffer(1 << 20));", nil, "exhausted | exhausted: code.ts: limit reached: memory (16 MiB)", nil},
		{"recursion", "const f = (): any => f() + 1; return f();", nil, "exhausted | exhausted: code.ts: limit reached: stack", nil},
		{"a promise that nothing settles", "await new Promise(() => {})", nil, "exhausted | exhausted: code.ts: limit reached: promise", nil},
		{"a pattern that never ends", `return /^(a+)+$/.test("a".repeat(60) + "b")`, nil, "exhausted | exhausted: code.ts: limit reached: cpu (300ms)", nil},
		{"code that is compiled inside", `return new Function("return " + "(".repeat(1e6))()`, nil, "", nil},
		{"brackets", strings.Repeat("(", 30_000), nil, "invalid | invalid: code.ts: it is nested deeper", nil},
		{"templates in templates", strings.Repeat("`${", 20_000), nil, "invalid | invalid: code.ts: it is nested deeper", nil},
		{"a pattern of brackets", "return /" + strings.Repeat("(", 30_000) + "/", nil, "", nil},
		{"arrows that are tried twice", strings.Repeat("a?(b):c=>", 60) + "d", nil, "invalid | ", nil},
		{"what computes constants", "return " + strings.Repeat("'x'+", 15_000) + "'x'", nil, "", nil},
		{"a runtime that it broke", `Promise.prototype.then = null as any; JSON.stringify = () => "forged"; return 1;`, nil, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			input := map[string]any{"code": tt.code}
			maps.Copy(input, tt.more)
			s, r, err := run(t.Context(), t, c, input, env, host.Limits{CPU: 20 * time.Second})
			got := string(s.Result)
			if s.Result == nil {
				got = s.Code + " | " + s.Message
			}
			if err != nil || !strings.HasPrefix(got, tt.want) || tt.want != "" && s.Result != nil && got != tt.want {
				t.Errorf("got %.1000s, %v\nwant %s", got, err, tt.want)
			}
			if tt.log != nil && !slices.Equal(s.Log, tt.log) {
				t.Errorf("it logged %q", s.Log)
			}
			if len(r.Output) > 100_000 {
				t.Errorf("%d bytes of output", len(r.Output))
			}
			// An ordinary run after it finds no trace.
			s, _, err = run(t.Context(), t, c, map[string]any{"code": "return [1].map((x) => x).length"}, env, host.Limits{})
			if err != nil || string(s.Result) != "1" {
				t.Errorf("afterwards: %+v, %v", s, err)
			}
		})
	}
	if v, err := b.kv.Bucket("secret").Get(t.Context(), "k"); err != nil || v != nil {
		t.Errorf("the other bucket has %v, %v", v, err)
	}
}

// TestAllBytes runs as much code, with as much input, as a grant can allow, and gets as much back.
func TestAllBytes(t *testing.T) {
	b := newBench(t, host.Options{})
	c := b.tool(t, `const { result } = await env.runner.execute(input.code, { input: "x".repeat(input.n) }); return result.length`)
	env := host.Env{"runner": b.runner(code.Rights{Limits: code.Limits{Bytes: 1 << 20, CPU: 20 * time.Second, Memory: 64 << 20}})}
	for _, line := range []string{"// a comment\n", "if (input === 1) console.log(input);\n"} { // the second needs a source map
		text := strings.Repeat(line, 70_000/len(line)) + "return input"
		n := 1<<20 - len(text) - len(`""`)
		r, err := c.Do(t.Context(), host.Request{Tool: "t", Input: fmt.Appendf(nil, `{"code": %q, "n": %d}`, text, n), Env: env, Limits: host.Limits{CPU: time.Minute}})
		if err != nil || string(r.Output) != fmt.Sprint(n) {
			t.Errorf("%.20q: got %.100s, %v", line, r.Output, err)
		}
	}
}

// TestDenialsAreTheCallers checks that a denial that nobody handles becomes the caller's, which the host proves, and that the tool cannot
// be given more by the caller of its code.
func TestDenialsAreTheCallers(t *testing.T) {
	b := newBench(t, host.Options{})
	c := b.tool(t, `return (await env.runner.execute(input.code, { env: { notes: env.notes.readOnly() } })).result;`)
	env := host.Env{"runner": b.runner(code.Rights{Env: []string{"notes"}}), "notes": b.workspace.Workspace("notes")}
	_, _, err := run(t.Context(), t, c, map[string]any{"code": `await env.notes.write("a", "b")`}, env, host.Limits{})
	if denied, ok := errors.AsType[*host.DeniedError](err); !ok || denied.Denial.Binding != "runner" || !strings.Contains(denied.Denial.Operation, `code.ts: write`) {
		t.Errorf("got %v", err)
	}
}

// TestOnlyNarrower checks, for any grant and anything that a tool passes on, that code has what was passed, nothing else, and nothing that the
// grant does not name.
func TestOnlyNarrower(t *testing.T) {
	b := newBench(t, host.Options{})
	c := b.tool(t, `
		const pass: Record<string, object> = {};
		for (const [name, from] of input.pass) pass[name] = env[from];
		return caught(async () => (await env.runner.execute(input.code, { env: pass })).result);`)
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(rt *rapid.T) {
		allowed := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[string]).Draw(rt, "allowed")
		passed := map[string]string{}
		var list [][2]string
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "x", "y"}), 0, 4, rapid.ID[string]).Draw(rt, "passed") {
			passed[name] = rapid.SampledFrom(names).Draw(rt, "from")
			list = append(list, [2]string{name, passed[name]})
		}
		env := host.Env{"runner": b.runner(code.Rights{Env: allowed})}
		for _, name := range names {
			bucket := b.kv.Bucket(name)
			if err := bucket.Set(t.Context(), "name", name); err != nil {
				rt.Fatal(err)
			}
			env[name] = bucket
		}
		if list == nil {
			list = [][2]string{}
		}
		text, err := json.Marshal(map[string]any{"pass": list, "code": `const has: any = {};
			for (const name of Object.keys(env)) if (env[name].get) has[name] = await env[name].get("name");
			for (const name of ["a", "b", "c", "d", "runner", "tools"]) if (!(name in env)) { try { await env[name].get("name"); has[name] = "!"; } catch {} }
			return has;`})
		if err != nil {
			rt.Fatal(err)
		}
		out, err := c.Call(t.Context(), "t", text, env)
		if err != nil {
			rt.Fatal(err)
		}
		for _, from := range passed {
			if !slices.Contains(allowed, from) {
				if !strings.HasPrefix(string(out), `"denied | denied: pass `) {
					rt.Fatalf("%v with %v: %s", allowed, passed, out)
				}
				return
			}
		}
		var has map[string]string
		if err := json.Unmarshal(out, &has); err != nil {
			rt.Fatalf("%v with %v: %s", allowed, passed, out)
		}
		if fmt.Sprint(has) != fmt.Sprint(passed) {
			rt.Fatalf("%v with %v: it has %v", allowed, passed, has)
		}
	})
}

// signal is a clock that tells when somebody first uses it.
type signal struct {
	*clock.Clock
	used func()
}

func (s *signal) Open(ctx context.Context) (any, error) {
	s.used()
	return s.Clock.Open(ctx)
}

// ended counts the runs that have ended.
type ended struct {
	mu    sync.Mutex
	began int
	over  chan error
}

func (e *ended) run(of code.Evaluator) code.Evaluator {
	return func(ctx context.Context, p code.Program, done func([]byte, error)) {
		e.mu.Lock()
		e.began++
		e.mu.Unlock()
		of(ctx, p, func(output []byte, err error) {
			e.over <- err
			done(output, err)
		})
	}
}

// TestCodeEndsWithItsCaller ends callers, grants and hosts while code waits or computes. The code ends with them.
func TestCodeEndsWithItsCaller(t *testing.T) {
	for _, tt := range []struct {
		name, body, code, want string
		limits                 host.Limits
		revoke                 string // the binding
	}{
		{"the caller returns", `void env.runner.execute(input.code, { env: { clock: env.clock } }); await new Promise((r) => setTimeout(r, 50)); return "gone"`, "for (;;);", `"gone"`, host.Limits{}, ""},
		{"the caller returns while the code waits", `env.runner.execute(input.code, { env: { clock: env.clock } }); await new Promise((r) => setTimeout(r, 50)); return "gone"`, "await new Promise((r) => setTimeout(r, 3600000))", `"gone"`, host.Limits{}, ""},
		{"the caller fails", `env.runner.execute(input.code, { env: { clock: env.clock } }); throw new Error("no")`, "await new Promise((r) => setTimeout(r, 3600000))", "tool failed: no", host.Limits{}, ""},
		{"the wall clock of the caller", `return caught(() => env.runner.execute(input.code, { env: { clock: env.clock } }))`, "await new Promise((r) => setTimeout(r, 3600000))", "limit reached: wall (300ms)", host.Limits{Wall: 300 * time.Millisecond}, ""},
		{"the processor time of the caller", `return caught(() => Promise.all([1, 2, 3].map(() => env.runner.execute(input.code))))`, "for (;;);", "limit reached: cpu (300ms)", host.Limits{CPU: 300 * time.Millisecond}, ""},
		{"the call is cancelled", `return caught(() => env.runner.execute(input.code, { env: { clock: env.clock } }))`, "await new Promise((r) => setTimeout(r, 3600000))", "context canceled", host.Limits{}, "call"},
		{"the runner is revoked", `return caught(() => env.runner.execute(input.code, { env: { clock: env.clock } }))`, "await new Promise((r) => setTimeout(r, 3600000))", "the grant was revoked: enough", host.Limits{}, "runner"},
		{"what it has is revoked", `return caught(() => env.runner.execute(input.code, { env: { clock: env.clock } }))`, "await new Promise((r) => setTimeout(r, 3600000)); return Date.now()", "revoked: enough", host.Limits{}, "clock"},
		{"the host closes", `return caught(() => env.runner.execute(input.code, { env: { clock: env.clock } }))`, "await new Promise((r) => setTimeout(r, 3600000))", "host is closed", host.Limits{}, "host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, host.Options{})
			c := b.tool(t, tt.body)
			e := &ended{over: make(chan error, 10)}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			watched, closed := &signal{clock.System(), func() {}}, make(chan error, 1)
			runner := host.NewGrant(code.New(code.Rights{Env: []string{"clock"}, Limits: code.Limits{CPU: time.Minute}}, e.run(b.evaluator.Run)), host.GrantOptions{})
			time := host.NewGrant(watched, host.GrantOptions{})
			switch tt.revoke {
			case "call":
				watched.used = cancel
			case "runner":
				watched.used = func() { runner.Revoke("enough") }
			case "clock":
				watched.used = func() { go time.Revoke("enough") }
			case "host":
				watched.used = func() { go func() { closed <- b.host.Close() }() }
			}
			r, err := c.Do(ctx, host.Request{Tool: "t", Input: fmt.Appendf(nil, `{"code": %q}`, tt.code), Env: host.Env{"runner": runner, "clock": time}, Limits: tt.limits})
			got := string(r.Output)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			// The call has returned, so what it started is over: nothing more has to happen for that.
			e.mu.Lock()
			began := e.began
			e.mu.Unlock()
			if began == 0 {
				t.Error("no code began")
			}
			for range began {
				select {
				case err := <-e.over:
					t.Logf("it ended: %v", err)
				default:
					t.Error("the code goes on")
				}
			}
			if tt.revoke == "host" {
				if err := <-closed; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestNestedCode has code call tools that run code. Cycles are refused, and the nesting is that of calls.
func TestNestedCode(t *testing.T) {
	b := newBench(t, host.Options{})
	var box *tools.Toolbox
	env := host.Env{}
	callees := map[string]host.Callee{}
	for _, name := range []string{"a", "b", "c"} {
		callees[name+"_t"] = host.Callee{Component: b.tool(t, `/* `+name+` */ return caught(async () => (await env.runner.execute(input.code, { input, env: { tools: env.tools } })).result);`), Tool: "t", Env: env}
	}
	box, err := tools.New(tools.Options{Resolve: func(name string) (tools.Func, error) { return callees[name].Start, nil }})
	if err != nil {
		t.Fatal(err)
	}
	env["tools"], env["runner"] = box, b.runner(code.Rights{Env: []string{"tools"}, Limits: code.Limits{CPU: time.Minute}})
	for _, tt := range []struct {
		name, code, want string
		limits           host.Limits
	}{
		{"twice", `return tools.call("b_t", { code: "return 7" })`, "7", host.Limits{}},
		{"the tool itself", `return tools.call("a_t", { code: "return 1" })`, "tools call each other: t -> code.ts -> a_t", host.Limits{}},
		{"the same code", `return tools.call(input.next ?? "b_t", { code: input.code, next: "c_t" })`, "tools call each other", host.Limits{}},
		{"too deep", `return tools.call("b_t", { code: "return tools.call('c_t', { code: 'return 1' })" })`, "limit reached: nesting (3)", host.Limits{Nesting: 3}},
		{"deep enough", `return tools.call("b_t", { code: "return tools.call('c_t', { code: 'return 1' })" })`, "1", host.Limits{Nesting: 5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := callees["a_t"].Component.Do(t.Context(), host.Request{Tool: "t", Input: fmt.Appendf(nil, `{"code": %q}`, tt.code), Env: env, Limits: tt.limits})
			if err != nil || !strings.Contains(string(r.Output), tt.want) {
				t.Errorf("got %s, %v, want %s", r.Output, err, tt.want)
			}
		})
	}
}

// TestOptions calls execute with options that are none.
func TestOptions(t *testing.T) {
	b := newBench(t, host.Options{})
	c := b.tool(t, `const run = (options: any) => caught(async () => (await env.runner.execute("return input", options)).result);
		return [await run(undefined), await run(null), await run({ input: null }), await run({ input: 0 }), await run(5), await run("a"), await run({ input: Object(5n) })]`)
	r, err := c.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"runner": b.runner(code.Rights{})}})
	const options = `"undefined | execute(code, options): options are an object with input, env and name"`
	want := `[null,null,null,0,` + options + `,` + options + `,"undefined | input is a BigInt, which JSON cannot carry; write Number(value), or String(value)"]`
	if err != nil || string(r.Output) != want {
		t.Errorf("got %s, %v", r.Output, err)
	}
}

// TestManyRuns starts a thousand runs at once. Whatever the call may hold for a time, all of them end.
func TestManyRuns(t *testing.T) {
	b := newBench(t, host.Options{})
	c := b.tool(t, `
		const all = await Promise.all(Array.from({ length: 1000 }, (_, i) => caught(async () => (await env.runner.execute("return input + 1", { input: i })).result)));
		return { sum: all.reduce((sum: number, n: any) => sum + (typeof n === "number" ? n : 0), 0), failed: all.filter((n: any) => typeof n !== "number").slice(0, 3) };`)
	env := host.Env{"runner": b.runner(code.Rights{Limits: code.Limits{Runs: 1000}})}
	r, err := c.Do(t.Context(), host.Request{Tool: "t", Env: env, Limits: host.Limits{CPU: 10 * time.Minute, Wall: 10 * time.Minute, Pending: 1000, Handles: 5000}})
	if err != nil || string(r.Output) != `{"sum":500500,"failed":[]}` {
		t.Errorf("got %.300s, %v", r.Output, err)
	}
	// The usual limits stop them early.
	_, err = c.Do(t.Context(), host.Request{Tool: "t", Env: env})
	if limit, ok := errors.AsType[*host.LimitError](err); !ok || limit.Limit != "pending" {
		t.Errorf("got %v", err)
	}
}

// TestCostIsTheCallers checks that what the host does for code outside of guests is the caller's: code that takes esbuild long ends the call.
func TestCostIsTheCallers(t *testing.T) {
	b := newBench(t, host.Options{})
	c := b.tool(t, `
		for (let n = 0; ; n++) await caught(() => env.runner.execute(input.code + "//" + n));`)
	env := host.Env{"runner": b.runner(code.Rights{Limits: code.Limits{Runs: 10_000}})}
	for name, text := range map[string]string{
		"text that is no code": strings.Repeat("let a = ;", 2000),
		"nested":               strings.Repeat("[", 200) + strings.Repeat("]", 200) + ";",
		"many strings":         "return [" + strings.Repeat("'x',", 7000) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := c.Do(t.Context(), host.Request{Tool: "t", Input: fmt.Appendf(nil, `{"code": %q}`, text), Env: env, Limits: host.Limits{CPU: 300 * time.Millisecond}})
			if limit, ok := errors.AsType[*host.LimitError](err); !ok || limit.Limit != "cpu" {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	}
}

type oneSecret string

func (s oneSecret) Get(context.Context, string) (string, error) { return string(s), nil }

// TestSecretsStayOutside has code send requests with a credential to a server that echoes it, narrowed and not.
func TestSecretsStayOutside(t *testing.T) {
	const secret = "sk-0123456789/abc"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-echo", r.Header.Get("authorization"))
		_, _ = fmt.Fprintf(w, "%s %s", r.URL.Path, r.Header.Get("authorization"))
	}))
	defer server.Close()
	rule, err := httpcap.ParseRule(server.URL + "/**,credential=token")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, host.Options{})
	c := b.tool(t, anyway)
	env := host.Env{"runner": b.runner(code.Rights{Env: []string{"api"}})}
	if env["api"], err = httpcap.New(httpcap.Options{Rules: []httpcap.Rule{rule}, Credentials: oneSecret(secret)}); err != nil {
		t.Fatal(err)
	}
	const look = `const r = await env.api.fetch(input); return [await r.text(), [...r.headers], env.api.rules()]`
	for _, narrow := range []any{nil, []map[string]any{{"scheme": "http", "host": "127.0.0.1", "port": server.Listener.Addr().(*net.TCPAddr).Port, "path": "/a"}}} {
		input := map[string]any{"code": look, "with": server.URL + "/a"}
		if narrow == nil {
			input["pass"] = map[string]string{"api": "api"}
		} else {
			input["narrow"] = narrow
		}
		s, r, err := run(t.Context(), t, c, input, env, host.Limits{})
		if err != nil || !strings.Contains(string(s.Result), "/a Bearer ***") || strings.Contains(string(r.Output), "0123456789") {
			t.Errorf("narrowed to %v: %s, %v", narrow, r.Output, err)
		}
		if narrow != nil {
			input["with"] = server.URL + "/b"
			if s, _, err := run(t.Context(), t, c, input, env, host.Limits{}); err != nil || s.Name != "DeniedError" {
				t.Errorf("beyond what it was narrowed to: %+v, %v", s, err)
			}
		}
	}
	for _, made := range b.calls.all {
		text, err := json.Marshal(made)
		if err != nil || strings.Contains(string(text), "0123456789") {
			t.Errorf("a recording has the secret, %v", err)
		}
	}
}

// TestReplay replays a recorded caller, whose code does not run again, and the recorded code by itself.
func TestReplay(t *testing.T) {
	b := newBench(t, host.Options{})
	c := b.tool(t, `
		const out = [];
		for (const text of input.all) out.push(await caught(async () => { const { result, log } = await env.runner.execute(text, { env: { seen: env.seen } }); return { result, log }; }));
		return out;`)
	var outer recordings
	env := host.Env{"runner": b.runner(code.Rights{Env: []string{"seen"}}), "seen": b.kv.Bucket("seen")}
	input, err := json.Marshal(map[string][]string{"all": {
		"console.log(Math.random(), Date.now()); return Math.random()", `return env.seen.increment("n", 1)`, "throw new Error('no')", "a b", "await env.seen.set('', '')",
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Do(t.Context(), host.Request{Tool: "t", Input: input, Env: env, Recorder: &outer})
	if err != nil || len(outer.all) != 1 {
		t.Fatal(len(outer.all), err)
	}
	compared, err := c.Replay(t.Context(), outer.all[0], host.ReplayOptions{})
	if err != nil || !compared.Same || string(compared.Output) != string(r.Output) {
		t.Errorf("got %+v, %v", compared, err)
	}
	if n, err := b.kv.Bucket("seen").Get(t.Context(), "n"); err != nil || *n != "1" {
		t.Errorf("the code ran again: %v, %v", n, err)
	}
	if len(b.calls.all) != 4 {
		t.Fatalf("%d runs were recorded", len(b.calls.all))
	}
	in, err := b.host.Load(t.Context(), b.calls.wasm[""])
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range b.calls.all {
		if compared, err := in.Replay(t.Context(), made, host.ReplayOptions{}); err != nil || !compared.Same {
			t.Errorf("%s: got %+v, %v", made.Code, compared, err)
		}
	}
}

// BenchmarkRun compares code that an extension runs with the same code that the evaluator of a program runs, which knows the bindings.
func BenchmarkRun(b *testing.B) {
	at := newBench(b, host.Options{})
	text := strings.Repeat("// a line of a comment, as models write them\n", 20) + "const n: number = input; return n + 1"
	known, err := at.tools.Evaluator(b.Context(), map[string]string{"clock": clock.Interface}, false)
	if err != nil {
		b.Fatal(err)
	}
	direct := func() error {
		_, err := known.Do(b.Context(), toolchain.Body(toolchain.Program{Text: text}), host.Request{Tool: toolchain.BodyTool, Input: []byte("1"), Env: host.Env{"clock": clock.System()}})
		return err
	}
	c := at.tool(b, `for (let i = 0; i < input.n; i++) await env.runner.execute(input.code, { input: 1 }); return 1`)
	env := host.Env{"runner": code.New(code.Rights{Limits: code.Limits{Runs: 10_000}}, evaluate.New(evaluate.Options{Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return at.tools, nil }}).Run)}
	through := func() error {
		_, err := c.Do(b.Context(), host.Request{Tool: "t", Input: fmt.Appendf(nil, `{"n": 10, "code": %q}`, text), Env: env, Limits: host.Limits{CPU: time.Minute}})
		return err
	}
	if err := through(); err != nil {
		b.Fatal(err)
	}
	var took [2]time.Duration
	for b.Loop() {
		began := time.Now()
		for range 10 {
			if err := direct(); err != nil {
				b.Fatal(err)
			}
		}
		took[0] += time.Since(began)
		began = time.Now()
		if err := through(); err != nil {
			b.Fatal(err)
		}
		took[1] += time.Since(began)
	}
	b.ReportMetric(float64(took[0].Microseconds())/float64(b.N)/10, "us/direct")
	b.ReportMetric(float64(took[1].Microseconds())/float64(b.N)/10, "us/run")
}
