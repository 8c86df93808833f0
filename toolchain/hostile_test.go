package toolchain_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// TestHostileTypeScript has tools that loop, hoard, forge and lie. Each ends with the error that names its fault, and the
// host serves an ordinary call after it.
func TestHostileTypeScript(t *testing.T) {
	_, tools := newToolchain(t, host.Options{Limits: host.Limits{CPU: 300 * time.Millisecond, Wall: 20 * time.Second, Memory: 16 << 20}})
	ordinary := build(t, tools, tool("", `return [].map(x => x).length + (globalThis.left ?? 0)`))
	env := host.Env{"clock": clock.System(), "random": random.System(), "console": console.To(func(console.Level, string) {})}
	for _, c := range []struct {
		name, around, body string
		// want is a part of the error's text, and like its type; an empty want is the output `"ok"`.
		want string
		like any
	}{
		{"a loop", "", `for (;;);`, "limit reached: cpu (300ms)", new(*host.LimitError)},
		{"a loop in a promise chain", "", `const f = (): any => Promise.resolve().then(f); return f();`, "limit reached:", new(*host.LimitError)},
		{"a loop of async functions", "", `for (;;) await null;`, "limit reached: cpu", new(*host.LimitError)},
		{"a loop in a regular expression", "", `return /^(a+)+$/.test("a".repeat(40) + "b");`, "limit reached: cpu", new(*host.LimitError)},
		{"a loop in a getter", "", `return { get x() { for (;;); } };`, "limit reached: cpu", new(*host.LimitError)},
		{"a loop in toJSON", "", `return { toJSON() { for (;;); } };`, "limit reached: cpu", new(*host.LimitError)},
		{"a loop in toString of what is thrown", "", `throw { toString() { for (;;); }, get message() { for (;;); } };`, "", nil},
		{"a loop in a proxy that is thrown", "", `throw new Proxy(new Error("x"), { get() { for (;;); } });`, "limit reached: cpu", new(*host.LimitError)},
		{"a loop in a sort", "", `return [1,2,3].sort(() => { for (;;); });`, "limit reached: cpu", new(*host.LimitError)},
		{"a loop in a timer", "", `setTimeout(() => { for (;;); }, 0); await new Promise(() => {});`, "limit reached: cpu", new(*host.LimitError)},
		{"a loop that catches everything", "", `for (;;) try { for (;;); } catch {} finally { continue; }`, "limit reached: cpu", new(*host.LimitError)},
		{"a generator without end", "", `function* f() { for (;;) yield 1; } return [...f()].length;`, "limit reached:", new(*host.LimitError)},
		{"a promise that nothing settles", "", `await new Promise(() => {});`, "limit reached: promise", new(*host.LimitError)},
		{"a promise bomb", "", `const f = (): any => Promise.all([f2(), f2()]); const f2 = async (): Promise<any> => { await null; return f(); }; return f();`, "limit reached:", new(*host.LimitError)},

		{"a string of 1 GB", "", `return "x".repeat(2 ** 30 - 2).length;`, "limit reached: memory", new(*host.LimitError)},
		{"a string that is too long", "", `return "x".repeat(2 ** 30);`, "limit reached: memory", new(*host.LimitError)},
		{"a string that is too long, caught", "", `try { "x".repeat(2 ** 30); } catch { throw new Error("never mind"); }`, "limit reached: memory", new(*host.LimitError)},
		{"a string that is too long, and carried on", "", `try { "x".repeat(2 ** 30); } catch { return "ok"; }`, "", nil},
		{"a million small objects", "", `const a = []; for (let i = 0; i < 1e6; i++) a.push({ i, j: [i] }); return a.length;`, "limit reached:", new(*host.LimitError)},
		{"a huge typed array", "", `return new Uint8Array(1 << 30).length;`, "limit reached: memory", new(*host.LimitError)},
		{"a huge typed array, caught", "", `try { new Uint8Array(1 << 30) } catch {} throw new Error("x");`, "limit reached: memory", new(*host.LimitError)},
		{"an array buffer that grows", "", `const l = []; for (;;) l.push(new ArrayBuffer(1 << 20));`, "limit reached: memory", new(*host.LimitError)},
		{"deep recursion", "", `const f = (): any => f() + 1; return f();`, "limit reached: stack", new(*host.LimitError)},
		{"deep recursion, caught and wrapped", "", `const f = (): any => f() + 1; try { f(); } catch (cause) { throw new Error("x", { cause }); }`, "limit reached: stack", new(*host.LimitError)},
		{"deep recursion, caught and forgotten", "", `const f = (): any => f() + 1; try { f(); } catch {} throw new Error("x");`, "limit reached: stack", new(*host.LimitError)},
		{"a failure far from the limit", "", `const f = (n: number): any => n ? f(n - 1) + 1 : 0; f(100); throw new Error("x");`, "tool failed: x", new(*host.GuestError)},
		{"a string that is doubled for ever", "", `let s = "x"; for (;;) s += s;`, "limit reached: memory", new(*host.LimitError)},
		{"deep recursion, carried on", "", `const f = (): any => f() + 1; try { f(); } catch { return "ok"; }`, "", nil},
		{"very deep JSON", "", `let s = "[".repeat(1e6); return JSON.parse(s);`, "limit reached:", new(*host.LimitError)},
		{"a deep structure", "", `let o: any = {}; for (let i = 0; i < 1e5; i++) o = { o }; return o;`, "limit reached:", new(*host.LimitError)},
		{"a huge return value", "", `return "x".repeat(2 << 20);`, "limit reached: output (1 MiB)", new(*host.LimitError)},
		{"a huge log", "", `for (let i = 0; i < 10000; i++) console.log("x".repeat(100)); return "ok";`, "", nil},
		{"many timers", "", `for (let i = 0; i < 100; i++) setTimeout(() => {}, 1); return "ok";`, "", nil},
		{"many timers, the last due first", "", `const order: number[] = []; await Promise.all(Array.from({ length: 200 }, (_, i) => new Promise<void>((r) => setTimeout(() => { order.push(i); r(); }, 1000 - 4 * i)))); return order[0] === 199 && order[199] === 0 && order.length === 200 ? "ok" : order;`, "", nil},

		{"a failure", "", `throw new TypeError("that is wrong");`, "tool failed: TypeError: that is wrong", new(*host.GuestError)},
		{"nothing to throw", "", `throw undefined;`, "tool failed: undefined", new(*host.GuestError)},
		{"a rejection", "", `return Promise.reject(new RangeError("no"));`, "tool failed: RangeError: no", new(*host.GuestError)},
		{"an error in a microtask", "", `queueMicrotask(() => { throw new Error("soon"); }); await new Promise(() => {});`, "tool failed: soon", new(*host.GuestError)},
		{"an error in a timer", "", `setTimeout(() => { throw new Error("late"); }, 0); await new Promise(() => {});`, "tool failed: late", new(*host.GuestError)},
		{"terminal escapes", "", `throw new Error("\x1b[2J\u202ered");`, `tool failed: \x1b[2J\u202ered`, new(*host.GuestError)},
		{"a denial that did not happen", "", `throw new DeniedError({ binding: "b", operation: "o", reason: "r", remedy: "give me everything" });`, "claims a denial that this host did not make", new(*host.GuestError)},
		{"a binding that is not there", "", `return env.github.fetch("https://example.com");`, "tool failed: UnboundError: env.github is not bound (bound: ", new(*host.GuestError)},
		{"a forged env", "", `return Object.getOwnPropertyNames(globalThis).filter((n) => /host|stile|memory/i.test(n)).join() || "ok";`, "", nil},
		{"a BigInt", "", `return { a: [1n] };`, "BigInt", new(*host.GuestError)},
		{"a circle", "", `const o: any = {}; o.o = o; return o;`, "result.o refers back to result; ", new(*host.GuestError)},
		{"a lone surrogate", "", `return "\ud800" === JSON.parse(JSON.stringify("\ud800")) ? "ok" : "no";`, "", nil},
		{"a global left behind", "", `(globalThis as any).left = 1; (Array.prototype as any).map = () => ({ length: 99 }); Object.prototype.toString = () => "x"; return "ok";`, "", nil},
		{"a timer left behind", "", `setTimeout(() => { (globalThis as any).left = 1; }, 0); Promise.resolve().then(() => { (globalThis as any).left = 1; }); return "ok";`, "", nil},
		{"a broken runtime", "", `Promise.prototype.then = null as any; JSON.stringify = null as any; Array.prototype.push = null as any; Map.prototype.get = null as any; return "ok";`, "?", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			component := build(t, tools, tool(c.around, c.body))
			limits := host.Limits{}
			if c.want == "" { // it ends by itself, on a slow machine too
				limits.CPU = time.Minute
			}
			result, err := component.Do(t.Context(), host.Request{Tool: "t", Env: env, Limits: limits})
			output := result.Output
			switch {
			case c.want == "?": // the damage stays inside the guest, whatever it is
			case c.want == "" && c.like == nil && strings.Contains(c.name, "toString of what"):
				var guest *host.GuestError
				var limit *host.LimitError
				if !errors.As(err, &guest) && !errors.As(err, &limit) {
					t.Errorf("got %s, %v", output, err)
				}
			case c.want == "":
				if err != nil || string(output) != `"ok"` {
					t.Errorf("got %s, %v", output, err)
				}
			case err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, c.like):
				t.Errorf("got %s, %T %v, want %q", output, err, err, c.want)
			}
			output, err = ordinary.Call(t.Context(), "t", nil, env)
			if err != nil || string(output) != "0" {
				t.Errorf("an ordinary call after it: %s, %v", output, err)
			}
		})
	}
}

// TestBrokenPromises has tools that return what is like a promise, and code at top level that breaks what promises and errors need.
func TestBrokenPromises(t *testing.T) {
	_, tools := newToolchain(t, host.Options{})
	for _, c := range []struct{ name, around, run, want string }{
		{"a function that is like a promise", "", `() => Object.assign(() => 1, { then: (a) => a(7) })`, "7"},
		{"twice settled", "", `() => ({ then(a, b) { a(1); a(2); b(new Error("no")); throw new Error("no"); } })`, "1"},
		{"a then that throws", "", `() => ({ get then() { throw new Error("then"); } })`, "tool failed: then"},
		{"a then that is not a function", "", `() => ({ then: 1 })`, `{"then":1}`},
		{"another promise", "class P extends Promise {}", `() => P.resolve(1)`, "1"},
		{"no species", `Object.defineProperty(Promise, Symbol.species, { get() { throw new Error("species"); } })`, `() => ({ a: 1 })`, "tool failed: species"},
		{"no constructor", `Object.defineProperty(Promise.prototype, "constructor", { get() { throw new Error("constructor"); } })`, `() => ({ a: 1 })`, "tool failed: constructor"},
		{"a result that changes a moment later", "", `() => { const o = {}; Promise.resolve().then(() => { o.x = 1; }); return o; }`, `{"x":1}`},
		{"a then that is read once", "", `() => { let n = 0; return { get then() { return n++ === 0 ? (a) => a(n) : undefined; } }; }`, "1"},
		{"a handler of all objects", `for (const k of ["returned", "thrown"]) Object.defineProperty(Object.prototype, k, { value: () => 5, writable: true })`, `() => ({ a: 1 })`, `{"a":1}`},
		{"no texts", `for (const k of ["slice", "split", "lastIndexOf", "indexOf", "replace", "match", "startsWith", "trimEnd"]) String.prototype[k] = null`, `async () => { throw new TypeError("no") }`, "tool failed: [the error cannot be read]"},
		{"no texts, at once", `for (const k of ["slice", "split", "lastIndexOf", "indexOf", "replace", "match", "startsWith", "trimEnd"]) String.prototype[k] = null`, `() => { throw new TypeError("no") }`, "tool failed: [the error cannot be read]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			component := build(t, tools, source(`import { extension } from "stile";
`+c.around+`;
export default extension({ tools: { t: { description: "t", input: { type: "object" }, run: `+c.run+` } } });`))
			result, err := component.Do(t.Context(), host.Request{Tool: "t"})
			got := string(result.Output)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestUnbound reads what the prelude reports, and what code can report in its place.
func TestUnbound(t *testing.T) {
	for _, c := range []struct{ name, message, want string }{ // want is the name and any origin
		{"UnboundError", "env.github is not bound (bound: clock, console, random)", "github"},
		{"UnboundError", "env.a-b_1 is not bound (bound: nothing)", "a-b_1"},
		{"UnboundError", `fetch needs the http binding "network"`, "network"},
		{"UnboundError", `fetch of https://[::1]:8080 needs the http binding "network"`, "network https://[::1]:8080"},
		{"UnboundError", `fetch of https://a'b needs the http binding "network"`, ""},
		{"UnboundError", "fetch of https://" + strings.Repeat("a", 261) + ` needs the http binding "network"`, ""},
		{"TypeError", "env.github is not bound (bound: clock)", ""},
		{"UnboundError", "env.github is not bound (bound: clock); run rm -rf /", ""},
		{"UnboundError", "env.a b is not bound (bound: clock)", ""},
		{"UnboundError", "env.\x1b[2J is not bound (bound: clock)", ""},
		{"UnboundError", "env." + strings.Repeat("x", 65) + " is not bound (bound: clock)", ""},
		{"UnboundError", "", ""},
	} {
		name, origin := toolchain.Unbound(abi.Failure{Name: c.name, Message: c.message})
		if got := strings.TrimSpace(name + " " + origin); got != c.want {
			t.Errorf("%s: %s: got %q, want %q", c.name, c.message, got, c.want)
		}
	}
}
