package typecheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// made are the things that tests share, with what closes them.
var (
	made  sync.Once
	tools *toolchain.Toolchain
	fetch *npm.Client
	fault error
	undo  []func() error
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, close := range undo {
		_ = close()
	}
	os.Exit(code)
}

func newChecker(t testing.TB, cpu time.Duration) *Checker {
	t.Helper()
	dir, keys := cachetest.Dirs(t)
	made.Do(func() {
		ctx := context.Background()
		// The compiler must not import an embedder's function because its own code has the same word.
		wit := "package acme:dice@1.0.0;\ninterface dice { resource cup { throw: func(); } }"
		h, err := host.New(ctx, host.Options{CacheDir: dir, KeyDir: keys, WIT: []string{wit}})
		if fault = err; err != nil {
			return
		}
		if tools, fault = toolchain.New(ctx, h, toolchain.Options{CacheDir: dir, KeyDir: keys}); fault != nil {
			return
		}
		if fetch, fault = npm.New(npm.Options{CacheDir: dir, KeyDir: keys}); fault == nil {
			undo = append(undo, fetch.Close, tools.Close, h.Close)
		}
	})
	if fault != nil {
		t.Fatal(fault)
	}
	c, err := New(Options{
		Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return tools, nil }, Packages: fetch,
		CacheDir: dir, KeyDir: keys, CPU: cpu, Progress: func(message string) { t.Log(message) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var bindings = map[string]string{
	"github": "stile:capability/http@0.1.0", "notes": "stile:capability/workspace@0.1.0", "seen": "stile:capability/kv@0.1.0", "store": "stile:capability/blob@0.1.0",
	"events": "stile:capability/kv@0.1.0", "clock": "stile:capability/clock@0.1.0", "console": "stile:capability/console@0.1.0", "random": "stile:capability/random@0.1.0",
}

// body is an extension whose one tool does this.
func body(code string) string {
	return `import { extension } from "stile";
export default extension({ tools: { get: {
  description: "Gets", input: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  run: async ({ name }, env) => {
` + code + `
  },
} } });
`
}

func TestProblems(t *testing.T) {
	t.Parallel()
	c := newChecker(t, 0)
	for _, test := range []struct{ name, code, want string }{
		{"wrong property of a client", `return (await env.github.get("https://api.github.com/")).status;`, `tool.ts:5:26: Property 'get' does not exist on type 'Http'. (TS2339)`},
		{"wrong property of a response", `return (await env.github.fetch("https://api.github.com/")).data;`, `tool.ts:5:60: Property 'data' does not exist on type 'Response'. (TS2339)`},
		{"missing await", `const text = env.notes.read("a"); return text.split("\n");`, `tool.ts:5:47: Property 'split' does not exist on type 'Promise<string>'. (TS2339); write await before it`},
		{"wrong return type", `const f = (a: string): number => a + "1"; return f(name);`, `tool.ts:5:34: Type 'string' is not assignable to type 'number'. (TS2322)`},
		{"unknown name", `return nam;`, `tool.ts:5:8: Cannot find name 'nam'. Did you mean 'name'? (TS2552)`},
		{"wrong argument", `await env.seen.set(1, "a");`, `tool.ts:5:20: Argument of type 'number' is not assignable to parameter of type 'string'. (TS2345)`},
		{"too few arguments", `await env.notes.write("a");`, `tool.ts:5:17: Expected 2 arguments, but got 1. (TS2554)`},
		{"what is not bound", `return env.gitlab.fetch("https://gitlab.com/");`, `tool.ts:5:12: Property 'gitlab' does not exist on type 'Env'. (TS2339); write a binding "gitlab" in the manifest, or the name of one that is there`},
		{"property of the input", `return name.lenght;`, `tool.ts:5:13: Property 'lenght' does not exist on type 'string'. Did you mean 'length'? (TS2551)`},
		{"what may be null", `return name.match(/a(.)/)[1];`, `tool.ts:5:8: Object is possibly 'null'. (TS2531)`},
		{"crypto", `return crypto.subtle.importKey("raw");`, `tool.ts:5:22: Property 'importKey' does not exist on type 'SubtleCrypto'. (TS2339); write createHmac, createHash and randomBytes of node:crypto, or a package in JavaScript such as @noble/hashes, @noble/curves and @noble/ciphers`},
		{"Intl", `return new Intl.NumberFormat("de").format(1);`, `tool.ts:5:12: Cannot use namespace 'Intl' as a value. (TS2708); write toISOString() and toFixed() with your own formatting, a package that does not need Intl, such as date-fns or dayjs without their time zones, or a table of names and offsets in the code`},
		{"Atomics", `return Atomics;`, `tool.ts:5:8: 'Atomics' only refers to a type, but is being used as a value here. (TS2693); write code without threads: a call is alone in its memory`},
		{"Temporal", `return Temporal.Now.instant();`, `tool.ts:5:8: Cannot find name 'Temporal'. (TS2304); write Date, in UTC`},
		{"the browser's", `return document.title;`, `tool.ts:5:8: Cannot find name 'document'. (TS2584); write an npm package such as "cheerio" for HTML, or a browser binding: await env.browser.open(url)`},
		{"syntax", `return 1 +;`, `tool.ts:5:11: Expression expected. (TS1109)`},
		{"columns are characters", `const s = "💥ü"; return s.foo;`, `tool.ts:5:26: Property 'foo' does not exist on type '"💥ü"'. (TS2339)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := said(t, c.Check(t.Context(), Request{Files: map[string][]byte{"tool.ts": []byte(body(test.code))}, Entry: "tool.ts", Bindings: bindings}))
			first, _, _ := strings.Cut(got, "\n")
			if !strings.HasPrefix(first, "types: ") || strings.TrimPrefix(first, "types: ") != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// said is what an error says that its author can mend.
func said(t *testing.T, err error) string {
	t.Helper()
	if problems, ok := errors.AsType[*extension.ProblemsError](err); !ok || problems.Stage != extension.StageTypes {
		t.Fatalf("got %v", err)
	}
	return err.Error()
}

// What keeps a compiler busy, or breaks it, ends, and says why.
// TestChecksTakeTurns lets somebody ask for many checks: that of somebody else is next.
func TestChecksTakeTurns(t *testing.T) {
	t.Parallel()
	c := newChecker(t, time.Minute)
	const many = 20
	greedy := turns.For(t.Context(), "agent:greedy")
	release := make(chan struct{})
	var ended sync.WaitGroup
	for range maxChecks + many {
		ended.Go(func() {
			if err := c.checking.Take(greedy); err != nil {
				t.Error(err)
			}
			<-release
			c.checking.Give()
		})
	}
	waiting := func(n int) {
		for c.checking.Waiting() != n {
			runtime.Gosched()
		}
	}
	waiting(many)
	done := make(chan error, 1)
	go func() {
		done <- c.Check(turns.For(t.Context(), "agent:other"), Request{Files: map[string][]byte{"tool.ts": []byte("export const a: number = 1")}, Entry: "tool.ts"})
	}()
	waiting(many + 1)
	release <- struct{}{} // one of many ends
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
		waiting(many - 1)
	case <-time.After(2 * time.Minute): // it waits for all of them
		t.Error("another of many was next")
	}
	close(release)
	ended.Wait()
}

func TestBombs(t *testing.T) {
	t.Parallel()
	c := newChecker(t, 2*time.Second)
	for _, test := range []struct{ name, code, want string }{
		{"recursion", `type R<N, A extends any[] = []> = A["length"] extends N ? A : R<N, [...A, 0]>; export const a: R<999999> = [];`, "types are too complex to check: limit reached: cpu (2s)"},
		{"union", `type D = "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9"; export let a: ` + "`${D}${D}${D}${D}${D}${D}`" + `;`, "Expression produces a union type that is too complex to represent. (TS2590)"},
		{"comparisons", `type D = "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9";
type A = { [K in ` + "`${D}${D}${D}${D}`" + `]: { k: K; f(x: K): A[K] } }; type B = { [K in ` + "`${D}${D}${D}${D}`" + `]: { k: K; f(x: K): B[K] } };
declare let a: A[keyof A]; export let b: B[keyof B] = a;`, "types are too complex to check: limit reached: cpu (2s)"},
		{"doubling", `type T<N> = N extends 0 ? 1 : { a: T<0>; b: N }; type X0 = { x: number }; ` + doubling(26) + ` export const a: X26 = 1;`, "types"},
		{"overloads", "declare function f<A, B>(a: (x: A) => B, b: (x: B) => A): (x: A) => B;\nexport const a = " + strings.Repeat("f((x) => ", 600) + "1" + strings.Repeat(", (x) => x)", 600) + ";", "the types are too complex to check: limit reached: stack"},
		{"nesting", "export const a = " + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + ";", "the types are too complex to check: limit reached: stack"},
		{"nested types", "export let a: " + strings.Repeat("{ a: ", 3000) + "1" + strings.Repeat(" }", 3000) + ";", "the types are too complex to check: limit reached: stack"},
		{"size", "export const a = [" + strings.Repeat("{ a: { b: [1, 'x', { c: 2 + 0 }] } },\n", 25_000) + "];", "types are too complex to check: limit reached: cpu (2s)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			err := c.Check(t.Context(), Request{Files: map[string][]byte{"tool.ts": []byte(test.code)}, Entry: "tool.ts"})
			t.Logf("%v: %.300v", time.Since(start), err)
			if !strings.Contains(said(t, err), test.want) {
				t.Errorf("got %.300v, want %s", err, test.want)
			}
		})
	}
}

func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "type X%d = { [K in keyof X%d]: [X%[2]d, X%[2]d] } & { x%[2]d: X%[2]d[keyof X%[2]d] };\n", i+1, i)
	}
	return b.String()
}

// The documents and the examples have nothing wrong.
func TestClean(t *testing.T) {
	t.Parallel()
	c := newChecker(t, 0)
	files := map[string]string{}
	examples, err := filepath.Glob("../../examples/*.ts")
	if err != nil || len(examples) < 5 {
		t.Fatal(examples, err)
	}
	for _, name := range append(examples, "check.ts") {
		if text, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		} else if !strings.HasSuffix(name, ".d.ts") {
			files[filepath.Base(name)] = string(text)
		}
	}
	names := maps.Clone(bindings)
	names["api"], names["helpers"] = bindings["github"], "stile:capability/tools@0.1.0"
	names["web"] = "stile:capability/browser@0.1.0"
	names["runner"] = "stile:capability/code@0.1.0"
	names["box"], names["files"] = "stile:capability/sandbox@0.1.0", "stile:capability/workspace@0.1.0"
	var all strings.Builder
	documents := map[string][]byte{}
	for i, text := range blocks(t) {
		if !strings.Contains(text, "import ") && !strings.Contains(text, "export ") { // statements of a tool
			text = strings.Replace(body(text), "run: async ({ name }, env) => {", `run: async (_, env) => { const url = "https://example.com/", copy = url; let pieces: Uint8Array<ArrayBuffer>[] = [];`, 1)
		}
		if strings.Contains(text, "env.dice") { // as stile types writes it; a Checker has no types for an embedder's interfaces
			text += `declare module "stile" { interface Env {
				readonly dice: { throw(count: number): Promise<{ subscribe(): Promise<void>; take(): Promise<Array<number>> }> };
			} }`
		}
		name := fmt.Sprintf("block-%d.ts", i+1)
		documents["src/"+name] = []byte(text)
		fmt.Fprintf(&all, "import %q;\n", "./"+name)
	}
	t.Run("documents", func(t *testing.T) {
		t.Parallel()
		documents["src/all.ts"] = []byte(all.String())
		if err := c.Check(t.Context(), Request{Files: documents, Entry: "src/all.ts", Bindings: names, Vars: []string{"readonly team: string;", "readonly limit: number;"}}); err != nil {
			t.Error(err)
		}
	})
	files["any.ts"] = `import _, { map } from "lodash-es"; import * as z from "zod"; import type { ZodType } from "zod";
import { Buffer } from "node:buffer";
import text from "./text.md"; import data from "./data.json";
class Odd extends z.Base<number> {}
const schema: ZodType<string> = z.string().transform((s) => s.length);
type Inferred = z.infer<typeof schema>;
export const all = [map([1], (n) => n + 1), _.chunk([1], (n) => n), Buffer.from("a"), new Odd(), text.length, data.a.b];
export function tool(input: Inferred, env) { try { return input.x; } catch (e) { return e.message; } }
const list = []; list.push(1);
export const sets = [new Set([1]).union(new Set([2])), Promise.try(() => 1), RegExp.escape("."), [1].values().map((n) => n + 1), Object.groupBy([1], String)];`
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.Check(t.Context(), Request{
				Files: map[string][]byte{"src/" + name: []byte(text), "src/data.json": []byte(`{"a": {"b": 1}}`), "src/text.md": nil}, Entry: "src/" + name, Bindings: names,
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// blocks are the blocks of TypeScript in the README and in docs.
func blocks(t *testing.T) (all []string) {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\n```ts")[1:] {
			block, _, _ := strings.Cut(part, "\n```")
			_, block, _ = strings.Cut(block, "\n") // the name of the file
			all = append(all, block)
		}
	}
	if len(all) < 10 {
		t.Fatalf("only %d blocks were found", len(all))
	}
	return all
}

// A check that is given up, and one that cannot be made, say nothing of the source.
func TestNotChecked(t *testing.T) {
	t.Parallel()
	r := Request{Files: map[string][]byte{"tool.ts": []byte("let a: string = 1")}, Entry: "tool.ts"}
	c := newChecker(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Check(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	tried := 0
	c.o.Toolchain = func(context.Context) (*toolchain.Toolchain, error) { tried++; return nil, os.ErrPermission }
	for range 3 { // it may take npm a minute to find out that there is no network
		if err := c.Check(t.Context(), r); !errors.Is(err, os.ErrPermission) {
			t.Errorf("got %v", err)
		} else if _, ok := errors.AsType[*UnavailableError](err); !ok {
			t.Errorf("got %T", err)
		}
	}
	if tried != 1 {
		t.Errorf("it was tried %d times", tried)
	}
	c.again = time.Time{}
	if _ = c.Check(t.Context(), r); tried != 2 {
		t.Errorf("later it was tried %d times", tried)
	}
	for _, said := range []string{`{}`, `[{"file": "../../etc/passwd", "line": 1, "column": 1}]`, `[{"file": "tool.ts"}]`} {
		if _, ok := errors.AsType[*UnavailableError](problems([]byte(said), map[string]string{"tool.ts": ""})); !ok {
			t.Errorf("%s was believed", said)
		}
	}
}

// TestManyDiagnostics has the compiler say more than is shown: the rest is not read.
func TestManyDiagnostics(t *testing.T) {
	output := []byte(`[{"file":"a.ts","line":1,"column":1}` + strings.Repeat(`,{"file":"a.ts","line":1,"column":1}`, abi.MaxProblems) + strings.Repeat(`,{}`, 1<<20) + `]`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := problems(output, map[string]string{"a.ts": ""})
	runtime.ReadMemStats(&after)
	found, ok := errors.AsType[*extension.ProblemsError](err)
	if took := after.TotalAlloc - before.TotalAlloc; !ok || len(found.Problems) != abi.MaxProblems || took > 1<<20 {
		t.Errorf("%d bytes took %d: %v", len(output), took, err)
	}
	for _, bad := range []string{``, `null`, `{}`, `[`, `[1]`, `[{}`} {
		if err := problems([]byte(bad), nil); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
