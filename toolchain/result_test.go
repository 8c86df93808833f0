package toolchain_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// A result is the output of JSON.stringify, or an error that names the path of a value that JSON would lose.
func TestResults(t *testing.T) {
	_, e := newEvaluator(t, host.Limits{})
	for _, c := range []struct{ code, want, lost string }{
		// Values that JSON can carry.
		{code: `return`, want: `null`},
		{code: `return { a: undefined, b: 1, [Symbol("s")]: 2 }`, want: `{"b":1}`},
		{code: `return [-0, 1e21, 5e-324, true, "\u2028\ud800", null]`, want: `[0,1e+21,5e-324,true,"` + "\u2028" + `\ud800",null]`},
		{code: `return { toJSON() {} }`, want: `null`},
		{code: `return [1, null, 3]`, want: `[1,null,3]`},
		{code: `return [2 ** 31, -(2 ** 31), 2 ** 53, 0.1, Number.MAX_VALUE, -Number.MAX_VALUE]`, want: `[2147483648,-2147483648,9007199254740992,0.1,1.7976931348623157e+308,-1.7976931348623157e+308]`},
		{code: `let s = "a"; for (let i = 0; i < 5; i++) s += s; return { [s]: [s + "b"] }`, want: `{"` + strings.Repeat("a", 32) + `":["` + strings.Repeat("a", 32) + `b"]}`},
		{code: `return { get a() { return null }, b: [null], c: Object.create({ d: null }), 7: null, "": null }`, want: `{"7":null,"a":null,"b":[null],"c":{},"":null}`},
		{code: `return { at: new Date(0), list: [new Date(0)] }`, want: `{"at":"1970-01-01T00:00:00.000Z","list":["1970-01-01T00:00:00.000Z"]}`},
		{code: `return new URL("https://a.example/b")`, want: `"https://a.example/b"`},
		{code: `return [new Number(1), new String("a"), new Boolean(false), Object(3)]`, want: `[1,"a",false,3]`},
		{code: `return Object.assign(Object.create(null), { a: 1 })`, want: `{"a":1}`},
		{code: `class P { x = 1; #y = 2; get z() { return 3 } } return [new P()]`, want: `[{"x":1}]`},
		{code: `class L extends Array {} return L.from([1, 2])`, want: `[1,2]`},
		{code: `class M extends Map { toJSON() { return [...this] } } return new M([[1, NaN && 2]].slice(1))`, want: `[]`},
		{code: `BigInt.prototype.toJSON = function () { return String(this) }; return [1n]`, want: `["1"]`},
		{code: `const o = { a: 1 }; return { x: o, y: [o, o] }`, want: `{"x":{"a":1},"y":[{"a":1},{"a":1}]}`},
		{code: `return { toJSON: (key) => ({ key, n: 1 }) }`, want: `{"key":"","n":1}`},
		{code: `return { error: { name: "E", message: "m" } }`, want: `{"error":{"name":"E","message":"m"}}`},
		// Values that JSON would lose.
		{code: `return { rows: [1, 2, 3, { total: 0 / 0 }] }`, lost: `result.rows[3].total is NaN, which JSON cannot carry; write null`},
		{code: `return NaN`, lost: `result is NaN`},
		{code: `return [[-Infinity]]`, lost: `result[0][0] is -Infinity`},
		{code: `return new Number(NaN)`, lost: `result is NaN`},
		{code: `return { "a b": { 'c"': Infinity } }`, lost: `result["a b"]["c\""] is Infinity`},
		{code: `return { 0: { length: 1, 0: NaN } }`, lost: `result["0"]["0"] is NaN`},
		{code: `return { m: new Map([[1, 2]]) }`, lost: `result.m is a Map, which JSON cannot carry; write Object.fromEntries(map), or [...map]`},
		{code: `return Object.assign(new Map(), { size2: 1 })`, lost: `result is a Map`},
		{code: `class M extends Map {} return [new M()]`, lost: `result[0] is a Map`},
		{code: `return new Set([1])`, lost: `result is a Set`},
		{code: `return new Map([[1, 2]]).keys()`, lost: `result is an Iterator, which JSON cannot carry; write [...iterator]`},
		{code: `return { g: (function* () { yield 1 })() }`, lost: `result.g is an Iterator`},
		{code: `return { bytes: new Uint8Array(3) }`, lost: `result.bytes is a Uint8Array, which JSON cannot carry; write Array.from(bytes), or text`},
		{code: `return [new BigInt64Array(1)]`, lost: `result[0] is a BigInt64Array`},
		{code: `return new ArrayBuffer(1)`, lost: `result is an ArrayBuffer`},
		{code: `return new DataView(new ArrayBuffer(1))`, lost: `result is a DataView`},
		{code: `return { e: new TypeError("no") }`, lost: `result.e is an Error, which JSON cannot carry; throw it`},
		{code: `return await Promise.allSettled([Promise.reject(new Error("no"))])`, lost: `result[0].reason is an Error`},
		{code: `return [new DOMException("a")]`, lost: `which JSON cannot carry; throw it`},
		{code: `return /a/g`, lost: `result is a RegExp`},
		{code: `return { later: Promise.resolve(1) }`, lost: `result.later is a Promise, which JSON cannot carry; await it`},
		{code: `return new WeakMap()`, lost: `result is a WeakMap`},
		{code: `return new Blob(["a"])`, want: `{"content":[{"type":"file","mimeType":"application/octet-stream","data":"YQ==","name":"result"}]}`},
		{code: `return [new Blob(["a"])]`, lost: `result[0] is a Blob`},
		{code: `return new Headers({ a: "b" })`, lost: `result is a Headers`},
		{code: `return new URLSearchParams("a=b")`, lost: `result is a URLSearchParams`},
		{code: `return new Response("a")`, lost: `result is a Response`},
		{code: `return { n: 1n }`, lost: `result.n is a BigInt`},
		{code: `return [Object(5n)]`, lost: `result[0] is a BigInt, which JSON cannot carry; write Number(value), or String(value)`},
		{code: `return { s: Object(Symbol()) }`, lost: `result.s is a Symbol, which JSON cannot carry; write its description`},
		{code: `return { f() {} }`, lost: `result.f is a function`},
		{code: `return { rows: [1, undefined, 3] }`, lost: `result.rows[1] is undefined, which JSON cannot carry; write null`},
		{code: `return [undefined]`, lost: `result[0] is undefined`},
		{code: `return [1, , 3]`, lost: `result[1] is undefined`},
		{code: `return { list: new Array(2) }`, lost: `result.list[0] is undefined`},
		{code: `return [{ toJSON() {} }]`, lost: `result[0] is undefined`},
		{code: `return new Proxy([1, 2], { get: (o, k) => k === "1" ? undefined : o[k] })`, lost: `result[1] is undefined`},
		{code: `return [[() => 1]]`, lost: `result[0][0] is a function`},
		{code: `return [Symbol("a")]`, lost: `result[0] is a symbol`},
		{code: `return { at: [new Date(NaN)] }`, lost: `result.at[0] is an invalid Date`},
		{code: `return [null, { a: null }, new Date(NaN)]`, lost: `result[2] is an invalid Date`},
		{code: `return { 7: new Date(NaN) }`, lost: `result["7"] is an invalid Date`},
		{code: `return new Proxy({ a: null, b: new Date(NaN) }, {})`, lost: `result.b is an invalid Date`},
		{code: `return [Object.setPrototypeOf(() => 1, Object.prototype)]`, lost: `result[0] is a function`},
		{code: `return new Proxy(() => 1, {})`, lost: `result is a function`},
		{code: `const o = { a: { b: [] } }; o.a.b.push(o.a); return o`, lost: `result.a.b[0] refers back to result.a; leave it out, or write its id`},
		{code: `const o = {}; o.o = o; return o`, lost: `result.o refers back to result; leave it out, or write its id`},
		{code: `return { toJSON: () => NaN }`, lost: `result is NaN`},
		{code: `let o = NaN; for (let i = 0; i < 200; i++) o = { deeper: o }; return o`, lost: `result.deeper.deeper.deeper`},
		{code: `return { a: { toJSON: () => { try { tools.call("x", [1n]) } catch {} return 1 } }, b: [NaN] }`, lost: `result.b[0] is NaN`},
		// Hostile objects: the checked value is the written one.
		{code: `let n = 0; return { get a() { return n++ ? NaN : 1 }, b: 2 }`, want: `{"a":1,"b":2}`},
		{code: `let n = 0; return new Proxy({ a: 1 }, { get: (o, k) => k === "a" ? (n++ ? NaN : 1) : o[k] })`, want: `{"a":1}`},
		{code: `return new Proxy(new Map(), {})`, lost: `result is a Map`},
		{code: `return new Proxy([NaN], {})`, lost: `result[0] is NaN`},
		{code: `return new Proxy({}, { getPrototypeOf: () => { throw new Error("trap") } })`, lost: `trap`},
		{code: `return { get a() { throw new Error("getter") } }`, lost: `getter`},
		{code: `let n = 0; return { get a() { throw new Error("getter " + ++n) } }`, lost: `getter 1`},
		{code: `return { get a() { throw new TypeError("getter") }, b: NaN }`, lost: `getter`},
		{code: `let n = 0; return { get a() { return n++ ? 1 : NaN } }`, want: `{"a":1}`},
		{code: `let n = 0; return { a: { toJSON: () => ({ b: n++ ? [Infinity] : NaN }) } }`, lost: `result.a.b[0] is Infinity`},
		{code: `JSON.stringify = () => "1"; Array.isArray = () => false; return { a: [NaN] }`, lost: `result.a[0] is NaN`},
		{code: `Object.prototype.toJSON = function () { return 1 }; return {}`, want: `1`},
		{code: `Map = class {}; return { a: {} }`, want: `{"a":{}}`},
	} {
		r, err := e.Do(t.Context(), toolchain.Body(toolchain.Program{Name: "code.ts", Text: c.code}), host.Request{Tool: toolchain.BodyTool})
		failed, isFailure := errors.AsType[*host.GuestError](err)
		switch {
		case c.lost != "":
			if !isFailure || !strings.Contains(failed.Failure.Message, c.lost) {
				t.Errorf("%s: got %s, %v, want an error with %q", c.code, r.Output, err, c.lost)
			}
		case err != nil || string(r.Output) != c.want:
			t.Errorf("%s: got %s, %v, want %s", c.code, r.Output, err, c.want)
		}
	}
}

// BenchmarkLargeResults compares the check of a large result with a JavaScript replacer that inspects each value.
func BenchmarkLargeResults(b *testing.B) {
	_, e := newEvaluator(b, host.Limits{})
	const rows = `const rows = Array.from({ length: 5000 }, (_, id) => ({ id, name: "row " + id, total: id / 3, tags: ["a", "b"], ok: true, none: null })); `
	for _, c := range []struct{ name, code string }{
		{"checked", rows + `return rows`},
		{"replaced", rows + `return JSON.stringify(rows, function (key, value) {
			switch (typeof value) {
				case "string": case "boolean": return value;
				case "number": if (value - value === 0) return value; break;
				case "object": if (value === null || [Object.prototype, Array.prototype].includes(Object.getPrototypeOf(value))) return value;
			}
			throw value;
		}).length`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				r, err := e.Do(b.Context(), toolchain.Body(toolchain.Program{Name: "code.ts", Text: c.code}), host.Request{Tool: toolchain.BodyTool})
				if err != nil {
					b.Fatal(err)
				}
				took += r.Usage.CPU
			}
			b.ReportMetric(float64(took)/float64(b.N)/1e6, "guest-ms")
		})
	}
}

// TestReturns ends calls in all the ways in which a tool can return or throw.
func TestReturns(t *testing.T) {
	_, e := newEvaluator(t, host.Limits{CPU: time.Second})
	for _, c := range []struct{ around, run, want, failed string }{
		{run: `() => 1`, want: `1`},
		{run: `async () => ({ a: 1 })`, want: `{"a":1}`},
		{run: `() => Promise.resolve(Promise.resolve(2))`, want: `2`},
		{run: `() => ({ then: (ok: any) => ok({ then: (ok: any) => ok(3) }) })`, want: `3`},
		{run: `() => Object.assign(() => 0, { then: (ok: any) => ok(4) })`, want: `4`},
		{run: `() => ({ then(ok: any, no: any) { ok(5); ok(6); no(new Error("late")); throw new Error("later") } })`, want: `5`},
		{run: `async function () { return (this as any).twice(3) }, twice: (n: number) => 2 * n`, failed: `unknown field twice`},
		{run: `function () { return typeof (this as any).run }`, want: `"function"`},
		{around: `class P extends Promise<any> {}`, run: `() => new P((ok) => setTimeout(ok, 1, "p"))`, failed: `clock`},
		{around: `class P extends Promise<any> {}`, run: `() => P.resolve("p")`, want: `"p"`},
		{around: `Promise.prototype.then = () => { throw new Error("then") };`, run: `async () => 7`, want: `7`},
		{around: `Promise.resolve = (() => { throw new Error("resolve") }) as any; Reflect.apply = (() => 0) as any;`, run: `async () => 8`, want: `8`},
		{around: `Function.prototype.call = Function.prototype.apply = (() => { throw new Error("apply") }) as any;`, run: `({ n }: any) => n ?? 10`, want: `10`},
		{around: `Object.defineProperty(Array.prototype, 0, { set() { throw new Error("set") }, configurable: true });`, run: `() => "eleven"`, want: `"eleven"`},
		{run: `() => { throw new RangeError("at once") }`, failed: `at once`},
		{run: `() => Promise.reject(new RangeError("a moment later"))`, failed: `a moment later`},
		{run: `() => ({ then() { throw new RangeError("by then") } })`, failed: `by then`},
		{run: `() => ({ get then() { throw new RangeError("by its getter") } })`, failed: `by its getter`},
		{run: `() => { throw { get message() { throw new Error("message") }, toString() { throw new Error("text") } } }`, failed: ``},
		{run: `() => { throw new Proxy(new Error("x"), { get() { throw new Error("trap") }, getPrototypeOf() { throw new Error("trap") } }) }`, failed: ``},
		{run: `() => new Promise(() => {})`, failed: `nothing can settle`},
		{run: `() => ({ then() {} })`, failed: `nothing can settle`},
		{run: `() => ({ toJSON() { throw new RangeError("as JSON") } })`, failed: `as JSON`},
		{run: `() => () => 1`, failed: `result is a function`},
	} {
		code := `import { extension } from "stile"; ` + c.around + ` export default extension({ tools: { t: { description: "test", run: ` + c.run + ` } } });`
		r, err := e.Do(t.Context(), toolchain.Program{Name: "code.ts", Text: code}, host.Request{Tool: "t", Input: []byte(`{}`)})
		if c.want != "" && (err != nil || string(r.Output) != c.want) || c.want == "" && (err == nil || !strings.Contains(err.Error(), c.failed)) {
			t.Errorf("%s %s: got %s, %v; want %s%s", c.around, c.run, r.Output, err, c.want, c.failed)
		}
	}
}
