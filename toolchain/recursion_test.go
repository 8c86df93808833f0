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
	const nest = `const nest = (n: number): any => { let a: any = []; for (let i = 0; i < n; i++) a = [a]; return a; };
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
		{"a getter without positions", `class A { get x(): number { return this.x; } } return new A().x;`, ""},
		{"a getter of a literal without positions", `const o = { get x(): number { return this.x; } }; return o.x;`, ""},
		{"a method without positions", `const o = { x() { return this.y; }, get y(): any { return this.x(); } }; return o.x();`, ""},
		{"getters", `const o = { get x(): number { return this.x + 1; } }; return o.x;`, ""},
		{"a proxy", `const p: any = new Proxy({}, { get: (_, name) => p[name] }); return p.x;`, ""},
		{"a proxy of itself as prototype", `const p: any = new Proxy({}, {}); Object.setPrototypeOf(p, p); return p.x;`, "any"},
		{"toString", `const o: any = { toString() { return "" + o; } }; return "" + o;`, ""},
		{"constructors", `class A { constructor() { new A(); } } return new A();`, ""},
		{"generators", `function* g(): any { yield* g(); } return [...g()];`, ""},
		{"bound functions", `let f: any = () => 1; for (let i = 0; i < 20000; i++) f = f.bind(null); return f();`, "any"},
		{"chains of proxies", `let p: any = {}; for (let i = 0; i < 20000; i++) p = new Proxy(p, {}); return p.x ?? "none";`, "any"},
		{"JSON.parse", `return JSON.parse("[".repeat(1000000));`, ""},
		{"JSON.stringify", nest + `return JSON.stringify(nest(200000));`, ""},
		{"toJSON", `const o: any = { toJSON: () => JSON.stringify(o) }; return JSON.stringify(o);`, ""},
		{"a match", `return /^(?:(?:a|b)*c?)*$/.test("ab".repeat(10000));`, "any"},
		{"Array.prototype.flat", nest + `return nest(200000).flat(Infinity);`, ""},
		{"replace", `const f = (s: string): string => s.replace(/a/, () => f(s)); return f("a");`, ""},
		{"many arguments", `return Math.max(...Array(60000).fill(1));`, "any"},
		{"instanceof", `const o: any = { [Symbol.hasInstance]: (x: any) => x instanceof o }; return 1 instanceof o;`, ""},
		// What the engine does without calling a function of the script.
		{"deep values", nest + `const proxies = (n: number): any => { let p: any = {}; for (let i = 0; i < n; i++) p = new Proxy(p, {}); return p; };
		const r = (text: string, n: number): string => text.repeat(n);
		const bad: string[] = [];
		for (const [name, error, f] of [
			["JSON.parse of lists", RangeError, () => JSON.parse(r("[", 1000000))],
			["JSON.parse of objects", RangeError, () => JSON.parse(r('{"a":', 100000) + "1" + r("}", 100000))],
			["JSON.parse with a function", RangeError, () => JSON.parse(r("[", 50000) + r("]", 50000), (_, v) => v)],
			["JSON.stringify", RangeError, () => JSON.stringify(nest(200000))],
			["JSON.stringify of a deep object", RangeError, () => { let a: any = {}; for (let i = 0; i < 200000; i++) a = { a }; return JSON.stringify(a); }],
			["structuredClone", RangeError, () => structuredClone(nest(200000))],
			["flat", RangeError, () => nest(200000).flat(Infinity)],
			["join", RangeError, () => String(nest(200000))],
			["groups", SyntaxError, () => new RegExp(r("(?:", 100000) + r(")", 100000))],
			["lookahead", SyntaxError, () => new RegExp(r("(?=", 100000) + r(")", 100000))],
			["classes of characters", SyntaxError, () => new RegExp(r("[", 100000) + r("]", 100000), "v")],
			["brackets", RangeError, () => eval(r("(", 100000) + "1" + r(")", 100000))],
			["lists", RangeError, () => eval(r("[", 100000) + r("]", 100000))],
			["index", RangeError, () => eval(r("x[", 100000) + "0" + r("]", 100000))],
			["calls", RangeError, () => eval(r("String(", 100000) + r(")", 100000))],
			["not", RangeError, () => eval(r("!", 100000) + "1")],
			["powers", RangeError, () => eval(r("1**", 100000) + "1")],
			["new", RangeError, () => eval(r("new ", 100000) + "x")],
			["conditions", RangeError, () => eval(r("1?", 100000) + "1" + r(":1", 100000))],
			["assignments", RangeError, () => eval("var x;" + r("x=", 100000) + "1")],
			["arrow functions", RangeError, () => eval(r("a=>", 100000) + "1")],
			["functions", SyntaxError, () => new Function("return " + r("function(){return ", 10000) + "1" + r("}", 10000))],
			["classes", RangeError, () => eval(r("(class{a=", 10000) + "1" + r("})", 10000))],
			["templates", RangeError, () => eval(r("\x60${", 10000) + "1" + r("}\x60", 10000))],
			["blocks", RangeError, () => eval(r("{", 100000) + r("}", 100000))],
			["a proxy's prototype", RangeError, () => Object.getPrototypeOf(proxies(100000))],
			["to set it", RangeError, () => Object.setPrototypeOf(proxies(100000), null)],
			["isExtensible", RangeError, () => Object.isExtensible(proxies(100000))],
			["preventExtensions", RangeError, () => Object.preventExtensions(proxies(100000))],
			["a proxy's keys", RangeError, () => Object.keys(proxies(100000))],
			["in", RangeError, () => "x" in proxies(100000)],
			["defineProperty", RangeError, () => Object.defineProperty(proxies(100000), "x", {})],
			["delete", RangeError, () => delete proxies(100000).x],
			["new of proxies", RangeError, () => { let p: any = class {}; for (let i = 0; i < 100000; i++) p = new Proxy(p, {}); return new p(); }],
		] as [string, any, () => unknown][]) {
			try {
				f();
				bad.push(name + " returns");
			} catch (e) {
				if (!(e instanceof error)) bad.push(name + ": " + e);
			}
		}
		return bad;`, "[]"},
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
		{"JSON.parse, caught", `let top = 0; try { JSON.parse("[".repeat(1000000)); } catch (e) { top = e instanceof RangeError ? 1 : 2; }`, "1"},
		{"JSON.stringify, caught", nest + `let top = 0; try { JSON.stringify(nest(100000)); } catch (e) { top = e instanceof RangeError ? 1 : 2; }`, "1"},
		{"eval, caught", `let top = 0; try { (0, eval)("(".repeat(100000) + "1" + ")".repeat(100000)); } catch (e) { top = e instanceof RangeError ? 1 : 2; }`, "1"},
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
