package toolchain_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// TestRecursion calls functions deep down in built code and in code that comes with a call: as deep as the documents say, and without an end.
// No end of a stack ends more than the call, and the next call finds everything as before.
func TestRecursion(t *testing.T) {
	_, tools := newToolchain(t, host.Options{})
	_, evaluator := newEvaluator(t, host.Limits{})
	const deep = `const deep = (n: number): number => n === 0 ? 0 : 1 + deep(n - 1);
const deepAsync = async (n: number): Promise<number> => n === 0 ? 0 : 1 + (await deepAsync(n - 1));
`
	place := regexp.MustCompile(`: maximum call stack size exceeded in \S.* \((tool|code)\.ts:\d+:\d+\)$`)
	for _, c := range []struct {
		name, code string
		want       string // or a stack that is full, and the place
	}{
		{"a function", `return deep(5000);`, "5000"},
		{"an async function", `return deepAsync(1000);`, "1000"},
		{"callbacks of sort", `const f = (n: number): number => n === 0 ? 0 : [1, 2].sort(() => f(n - 1)).length; return f(500);`, "2"},
		{"caught", `const up = (n: number): number => up(n + 1) + 1; try { up(0); } catch (e) { return [e instanceof RangeError, deep(5000)]; }`, "[true,5000]"},
		{"caught in async code", `const up = async (n: number): Promise<number> => (await up(n + 1)) + 1; try { await up(0); } catch (e) { return [e instanceof RangeError, deep(5000)]; }`, "[true,5000]"},
		{"a function without an end", `const up = (n: number): number => up(n + 1) + 1; return up(0);`, ""},
		{"after 1,000 errors", `for (let i = 0; i < 1000; i++) try { throw new Error("x"); } catch {} const up = (n: number): number => up(n + 1) + 1; try { up(0); } catch {} deep(5000); return up(0);`, ""},
		{"in a hook for stacks", `(Error as any).prepareStackTrace = (): number => { const f = (): number => 1 + f(); return f(); }; const up = (n: number): number => up(n + 1) + 1; return up(0);`, ""},
		{"the stack of the error", `const up = (n: number): number => up(n + 1) + 1; try { up(0); } catch (e) { return /^RangeError: Maximum call stack size exceeded\n    at up \((tool|code).ts:\d+:\d+\)\n/.test((e as Error).stack!); }`, "true"},
		{"getters", `const o = { get x(): number { return this.x + 1; } }; return o.x;`, ""},
		{"a proxy", `const p: any = new Proxy({}, { get: (_, name) => p[name] }); return p.x;`, ""},
		{"a proxy of itself as prototype", `const p: any = new Proxy({}, {}); Object.setPrototypeOf(p, p); return p.x;`, "any"},
		{"toString", `const o: any = { toString() { return "" + o; } }; return "" + o;`, ""},
		{"constructors", `class A { constructor() { new A(); } } return new A();`, ""},
		{"generators", `function* g(): any { yield* g(); } return [...g()];`, ""},
		{"bound functions", `let f: any = () => 1; for (let i = 0; i < 20000; i++) f = f.bind(null); return f();`, "any"},
		{"chains of proxies", `let p: any = {}; for (let i = 0; i < 20000; i++) p = new Proxy(p, {}); return p.x ?? "none";`, "any"},
		{"JSON.parse", `return JSON.parse("[".repeat(200000) + "]".repeat(200000)).length;`, "any"},
		{"JSON.stringify", `let a: any = []; for (let i = 0; i < 20000; i++) a = [a]; return JSON.stringify(a).length;`, "any"},
		{"toJSON", `const o: any = { toJSON: () => JSON.stringify(o) }; return JSON.stringify(o);`, ""},
		{"structuredClone", `let a: any = []; for (let i = 0; i < 20000; i++) a = [a]; structuredClone(a); return 1;`, "any"},
		{"flat", `let a: any = []; for (let i = 0; i < 20000; i++) a = [a]; return a.flat(Infinity).length;`, "any"},
		{"join", `let a: any = []; for (let i = 0; i < 20000; i++) a = [a]; return String(a).length;`, "any"},
		{"a regular expression", `return new RegExp("(?:".repeat(100000) + ")".repeat(100000)).test("");`, "any"},
		{"a match", `return /^(?:(?:a|b)*c?)*$/.test("ab".repeat(10000));`, "any"},
		{"replace", `const f = (s: string): string => s.replace(/a/, () => f(s)); return f("a");`, ""},
		{"eval", `return eval("(".repeat(100000) + "1" + ")".repeat(100000));`, "any"},
		{"new Function", `return new Function("return " + "[".repeat(100000) + "]".repeat(100000))().length;`, "any"},
		{"many arguments", `return Math.max(...Array(60000).fill(1));`, "any"},
		{"instanceof", `const o: any = { [Symbol.hasInstance]: (x: any) => x instanceof o }; return 1 instanceof o;`, ""},
	} {
		check := func(t *testing.T, out []byte, err error) {
			t.Helper()
			_, guest := errors.AsType[*host.GuestError](err)
			limit, limited := errors.AsType[*host.LimitError](err)
			switch {
			case c.want == "any" && (err == nil || guest || limited):
			case c.want == "" && limited && limit.Limit == "stack" && place.MatchString(limit.Error()):
			case c.want == string(out) && err == nil:
			default:
				t.Errorf("got %.100s, %v", out, err)
			}
		}
		t.Run(c.name, func(t *testing.T) {
			built, err := tools.Build(t.Context(), tool(deep, c.code))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = built.Close() }()
			r, err := built.Do(t.Context(), host.Request{Tool: "t", Input: []byte("{}")})
			check(t, r.Output, err)
			r, err = evaluator.Do(t.Context(), toolchain.Body(toolchain.Program{Name: "code.ts", Text: deep + c.code}), host.Request{Tool: toolchain.BodyTool})
			check(t, r.Output, err)
		})
	}

	// At top level there is less room: the native stack of the engine that makes images is smaller.
	for _, c := range []struct{ name, around, want string }{
		{"a function", deep + `const top = deep(1000);`, "1000"},
		{"caught", `const up = (n: number): number => up(n + 1) + 1; let top = 0; try { up(0); } catch (e) { top = e instanceof RangeError ? 1 : 2; }`, "1"},
		{"an async function", deep + `const top = await deepAsync(500);`, "500"},
		{"caught in async code", `const up = async (n: number): Promise<number> => (await up(n + 1)) + 1; let top = 0; try { await up(0); } catch (e) { top = e instanceof RangeError ? 1 : 2; }`, "1"},
		{"without an end", `const up = (n: number): number => up(n + 1) + 1; const top = up(0);`, ""},
		{"JSON.parse", `const top = JSON.parse("[".repeat(200000) + "]".repeat(200000)).length;`, ""},
	} {
		t.Run("top level: "+c.name, func(t *testing.T) {
			built, err := tools.Build(t.Context(), tool(c.around, "return [top, ((n: number): number => { const f = (n: number): number => n === 0 ? 0 : 1 + f(n - 1); return f(n); })(5000)];"))
			if c.want == "" {
				if err == nil {
					t.Fatal("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = built.Close() }()
			if r, err := built.Do(t.Context(), host.Request{Tool: "t", Input: []byte("{}")}); err != nil || string(r.Output) != "["+c.want+",5000]" {
				t.Errorf("got %s, %v", r.Output, err)
			}
		})
	}
}
