// Tools that use what the image holds, and what it inherits, in every way that the engine counts references for. Each answers with all that
// it saw. n is how many pieces of garbage it makes between its rounds.
import { extension } from "stile";

const list: any[] = [1, "two", { three: 3 }, [4]];
const dict: any = { a: 1, b: { c: 2 } };
const odd: any = { p: 1, q: 2 };
delete odd.p;
odd.r = 3;
const big: any = {};
for (let i = 0; i < 300; i++) big["key" + i] = { i, s: "value " + i };
const map = new Map<any, any>();
for (let i = 0; i < 50; i++) map.set({ i }, "v" + i);
const keys = [...map.keys()];
const weakMap = new WeakMap<any, any>(), weakSet = new WeakSet(keys);
for (const k of keys) weakMap.set(k, { back: k });
const refs = keys.map((k) => new WeakRef(k));
const registry = new FinalizationRegistry(() => {});
let rope = "";
for (let i = 0; i < 3000; i++) rope += "piece" + i;
let growing = "abc".repeat(3);
const long = "x".repeat(5000) + Math.PI, wide = "é€😀".repeat(40);
let total = 0;
const closures = Array.from({ length: 20 }, (_, i) => {
  let n = i;
  return () => { n++; total += n; return n; };
});
function* counting(): any { for (let i = 0; ; i++) { const got = yield { i, list }; if (got) list.push(got); } }
const generator = counting();
generator.next();
async function* numbers() { for (let i = 0; ; i++) yield i; }
const asynchronous = numbers();
let settle: any;
const later = new Promise((done) => { settle = done; });
const chained = later.then((v: any) => { dict.later = v; return v; });
class A { #x = 1; static made = { n: 0 }; get x() { return this.#x; } set x(v) { this.#x = v; A.made.n++; } toString() { return "A" + this.#x; } }
class B extends A { y = [1]; static { A.made.n = 5; } override toString() { return "B:" + super.toString(); } }
const instance: any = new B();
const symbol = Symbol("s"), symbols: any = { [symbol]: 1, [Symbol.for("shared")]: 2 };
const large = 123456789012345678901234567890n, huge = 3n ** 400n, negative = -(2n ** 64n);
const expression = /(\w)(\d)/g, sticky = /(?<word>[a-z]+)-?/y;
const date = new Date(86400000 * 365.25 * 30);
const bytes = new Uint8Array(100).fill(7), view = new DataView(bytes.buffer), floats = Float64Array.from([3, 1, 2, NaN, -0]);
const proxy: any = new Proxy(dict, { get: (o, k) => (k === "px" ? "proxied" : o[k]), set: (o, k, v) => { o[k] = v; return true; } });
const solid = Object.freeze({ f: [1] });
const rows: any[] = [];
for (let i = 0; i < 100; i++) rows.push({ id: i, name: "n" + i });
const bound = function (this: any, a: any, b: any) { return [this, a, b]; }.bind(dict, list);
const thrown = new TypeError("made in the image", { cause: rows[0] });
const limbs = [9.5e20, 1e21, 1.7976931348623157e308, 5e-324, 0.1, 1 / 3, Math.PI, -Math.E, 123456.789, 2 ** 53, 2 ** 31, -(2 ** 31), 0, -0, 255, 1e-7];

const garbage = (n: number) => {
  for (let i = 0; i < n; i++) {
    const a: any = { pad: new Array(30).fill({ i }), list, dict }, b: any = { a, f: closures[i % 20] };
    a.b = b;
    a.w = new WeakRef(b);
    if (i % 100 === 0) registry.register(a, i);
  }
};

const parts: Record<string, (round: number) => any> = {
  arrays: (r) => {
    list.push({ r }, "r" + r, [r]); list.splice(1, 1); list.unshift(list[2]); list[list.length + 2] = r; list.length += 1;
    const copy = [...list, ...keys.slice(0, 3)].reverse().flat();
    return [list.length, copy.length, copy.indexOf(r), list.map((x) => typeof x).join(), [5, 3, 1, r].map((x) => x + 1).filter((x) => x & 1), structuredClone(list.slice(0, 3)), list.at(-1), list.includes(r), copy.toSpliced(1, 2).length];
  },
  objects: (r) => {
    dict["new" + r] = { dict }; dict.b = { c: dict.b }; delete dict["new" + (r - 1)]; dict.b.self = dict;
    odd["z" + r] = r; delete odd.q;
    for (let i = 0; i < 20; i++) odd["w" + i] = i;
    for (let i = 0; i < 20; i += 2) delete odd["w" + i];
    for (let i = 0; i < 300; i += 3) { delete big["key" + i]; big["key" + i + "_" + r] = big["key" + (i + 1)]; }
    for (const k in big) big[k] = big[k];
    const { a, ...rest } = dict;
    return [Object.keys(dict), Object.keys(odd), Object.entries(big).length, big.key1?.s, a, Object.keys(rest), Object.assign({}, odd), Object.groupBy(rows.slice(0, 5), (x: any) => x.id % 2 ? "odd" : "even")];
  },
  shapes: (r) => {
    Object.setPrototypeOf(dict, r & 1 ? instance : Object.prototype);
    for (const o of rows) { o["p" + r] = o.id; o.name += "+"; Object.defineProperty(o, "id", { value: o.id + 1, writable: true, configurable: true, enumerable: r % 2 === 0 }); }
    try { (solid as any).nope = 1; } catch (e: any) { solid.f.push(e.name); }
    const made = Object.create(rows[r], { own: { value: r, enumerable: true } });
    return [typeof dict.y, Object.getPrototypeOf(rows[r]) === Object.prototype, rows.slice(3, 6), Object.isFrozen(solid), solid.f.push(r), made.own, made.name, Object.getOwnPropertyDescriptor(made, "own"), Reflect.ownKeys(rows[7])];
  },
  strings: (r) => {
    rope += "more" + r;
    const before = rope;
    rope += "!";
    const g = growing;
    growing += "tail" + r;
    const h = growing;
    growing += "x";
    let t = "";
    for (let i = 0; i < 2000; i++) { t += "ab" + i; if (t.length > 2000) t = t.slice(1000); }
    return [before.length, rope.length, before === rope, before.slice(-6), rope.slice(-6), g, h, growing, (long + "y").length, long.at(-1), long.indexOf("3.14"), [...wide].length, wide.slice(0, 7).normalize("NFD"), t, "a-b-c".split("-"), `${r}${list[0]}`, "İß".toLowerCase(), "ß".toUpperCase(), "x".padStart(8, "ab"), encodeURIComponent(wide.slice(0, 4)), before.localeCompare(rope)];
  },
  formats: (r) => [limbs.map((x) => ["" + x, x.toString(2), x.toString(7), x.toString(36), x.toFixed(r), x.toFixed(20), x.toExponential(r + 1), x.toPrecision(r + 3), x.toLocaleString(), parseFloat("" + x), Number("0x1f") + x, x | 0, x >>> r]), "" + Math.PI, (1e21 + r).toString(), parseInt("zz", 36), Number("  12.50e3 "), (0.000001234).toString(), (25).toString(36), 1e300 * 10 ** r, JSON.stringify(limbs)],
  bigints: (r) => {
    let x = huge, f = 1n;
    for (let i = 1n; i < 60n; i++) f *= i + BigInt(r);
    x = (x << BigInt(r * 13)) ^ large;
    return [String(large * BigInt(r + 1)), x.toString(), x.toString(16), x.toString(36), f.toString(), (f / large).toString(), (f % large).toString(), (-f >> 70n).toString(), BigInt.asUintN(64, negative - BigInt(r)).toString(), BigInt.asIntN(20, huge).toString(), large > huge, Number(f), BigInt("0x" + "f".repeat(70)).toString(), (large & negative | 5n).toString(), typeof x, negative ** 3n === -(2n ** 192n), BigInt(2 ** 60).toLocaleString()];
  },
  maps: (r) => {
    for (const k of keys.slice(0, 10)) { map.delete(k); map.set(k, { k }); }
    map.set({}, keys);
    const m = new Map<any, any>();
    for (let i = 0; i < 500; i++) m.set("k" + (i % 50), { i });
    let seen = 0;
    for (const [, v] of m) { seen += v.i; if (v.i % 7 === 0) m.delete("k" + (v.i % 50)); }
    const s = new Set(keys).union(new Set([r, keys[0]]));
    return [map.size, seen, m.size, s.size, s.has(keys[0]), [...map.values()].slice(-3).map((x) => typeof x)];
  },
  weak: (r) => {
    keys.push({ i: 1000 + r } as any);
    weakMap.set(keys.at(-1), keys); weakMap.set(keys[r], { again: keys[r] }); weakSet.delete(keys[r + 20]!);
    const t: any = {};
    registry.register(t, "t" + r); registry.register(keys[0]!, "never", keys[0]!);
    if (r === 2) registry.unregister(keys[0]!);
    return [refs.filter((w) => w.deref()).length, keys.every((k) => weakMap.get(k) !== undefined), keys.filter((k) => weakSet.has(k)).length, new WeakRef(t).deref() === t];
  },
  expressions: (r) => {
    expression.lastIndex = 0; sticky.lastIndex = r;
    const m = sticky.exec("abc-def-ghi");
    return ["a1b22c333".replace(/\d+/g, (d) => "<" + d + ">"), "a1b2".replace(expression, "$2$1"), [..."x1y2".matchAll(expression)].map((x) => x.slice()), m?.groups?.word, sticky.lastIndex, "2020-01-02".match(/(?<y>\d+)-(?<m>\d+)/)?.groups, /^(?:(a)|b)*$/.exec("abab"), /\p{L}+/u.exec(wide)?.[0].length, "aXbX".split(/x/i), "a.b".replaceAll(".", "$&$&"), new RegExp("(" + "a|".repeat(20) + "b)+").test("aaab"), /(?<=\$)\d+/.exec("cost $42")?.index];
  },
  classes: (r) => {
    instance.x = r; instance.y.push(r); instance["dyn" + r] = A.made;
    class C extends B { #p = [r]; get p() { return this.#p; } static of() { return new this(); } }
    const c: any = C.of();
    c.p.push(instance);
    return [instance.x, A.made.n, instance.y, String(instance), String(c), c.p.length, c instanceof A, Object.keys(instance), bound(r).map((x: any) => typeof x), (function (this: any) { return new.target === undefined; })(), thrown.message, (thrown.cause as any).name];
  },
  generators: (r) => {
    function* inner(): any { try { yield* [r, list[0]]; } finally { dict.closed = r; } }
    const it = inner();
    it.next();
    const some = Iterator.from(counting()).filter((x: any) => x.i % 2).map((x: any) => x.i).take(4).toArray();
    const left = generator.next({ r }).value.i;
    const [first] = inner();
    return [left, it.return(9), dict.closed, some, first, [...inner()]];
  },
  symbols: (r) => {
    symbols[Symbol("t" + r)] = symbol; symbols[symbol]++;
    return [symbols[symbol], Object.getOwnPropertySymbols(symbols).map(String), Symbol.keyFor(Symbol.for("shared")), Symbol.for("new" + r).description, symbol.toString()];
  },
  typed: (r) => {
    view.setUint8(r, r); view.setFloat64(16, Math.PI * r); view.setBigInt64(32, negative);
    const sorted = floats.toSorted(), part = bytes.subarray(1, 5 + r), grown = new Uint16Array(300 + r).map((_, i) => i * r);
    return [[...bytes.slice(0, 40)], [...sorted], [...part], grown.reduce((x, y) => x + y, 0), bytes.indexOf(r), view.getFloat32(20), new Uint8Array(part.buffer).length, [...new Int8Array([200, 100 + r])], btoa(String.fromCharCode(...part)), new TextDecoder().decode(new TextEncoder().encode(wide)) === wide, [...new Float32Array([0.1, 1e40])]];
  },
  sorting: (r) => {
    const a = Array.from({ length: 200 }, (_, i) => (i * 7919 + r) % 211), b = rows.toSorted((x, y) => (y.name < x.name ? -1 : 1) * (x.id % 3));
    return [a.toSorted((x, y) => x - y), a.toSorted(), b.map((x) => x.id), ["b", undefined, "a", , 3, "10", 2n].sort(), list.slice(0, 4).sort().length, [...keys].sort((x, y) => y.i - x.i)[0]];
  },
  dates: (r) => {
    date.setDate(date.getDate() + r); date.setMonth(r * 5);
    return [date.getTime(), date.toISOString(), String(date), date.toUTCString(), date.toLocaleDateString(), new Date(2020, r, 31).toString(), Date.UTC(1999, 11, 31 + r), new Date("2021-02-29T10:00:00+02:00").getTime(), new Date(NaN).getDay(), JSON.stringify(date), date.getTimezoneOffset()];
  },
  json: (r) => {
    const text = JSON.stringify({ rows: rows.slice(r, r + 3), limbs, wide, nested: [[[{ a: null, b: [true, undefined] }]]] }, null, r);
    return [text, JSON.parse(text, (k, v) => (k === "id" ? -v : v)), JSON.stringify(rows[5], (k, v) => (k.startsWith("p") ? undefined : v)), JSON.stringify("\u2028\ud800" + wide), JSON.parse("[1e5,-0,1.5e-7,\"\\u00e9\"]")];
  },
  proxies: (r) => {
    proxy["through" + r] = { r };
    const all: string[] = [], traced = new Proxy(() => rows, { apply: (f, _, a) => { all.push("apply" + a.length); return f(); }, has: (_, k) => { all.push(String(k)); return true; } });
    return [proxy.px, proxy["through" + r].r, traced(...[1, 2]).length, "x" in traced, all, Reflect.get(proxy, "a"), Object.keys(proxy).length];
  },
  prototypes: (r) => {
    (Array.prototype as any)["extra" + r] = r; (Object.prototype as any)["ex" + r] = list;
    const seen = [([] as any)["extra" + r], ({} as any)["ex" + r] === list];
    delete (Object.prototype as any)["ex" + r];
    const push = Array.prototype.push;
    Array.prototype.push = function (...a) { seen[seen.length] = a.length; return push.apply(this, a); };
    list.push(1, 2);
    Array.prototype.push = push;
    (globalThis as any)["made" + r] = { list };
    const own = Object.getOwnPropertyNames(Array.prototype).length;
    return [...seen, own, (globalThis as any)["made" + r].list === list, (globalThis as any).made0 === undefined, delete (globalThis as any).made0];
  },
  closures: (r) => {
    const made: any[] = [];
    for (let i = 0; i < 10; i++) made.push((x = i) => { total += x; return [i, x, total, () => total]; });
    let a: any, b: any = dict;
    for (let i = 0; i < 20000; i++) { a = b; b = a; a = list; }
    const recur = (k: number): number => (k < 2 ? k : recur(k - 1) + recur(k - 2));
    return [closures.map((c) => c()), total, made.map((f, i) => f(i % 2 ? undefined : r).slice(0, 3)), a.length, recur(12), eval("1+" + r), new Function("a", "return a * 2")(r), (function () { return arguments.length; })()];
  },
  errors: (r) => {
    const all: any[] = [];
    for (const f of [() => { throw thrown; }, () => (null as any).x, () => { throw new RangeError("r" + r, { cause: dict }); }, () => JSON.parse("{" + r), () => (function deep(): any { return deep() + 1; })(), () => { throw list; }, () => new Array(-1), () => 1n + (1 as any)])
      try { f(); } catch (e: any) { all.push(e?.message ?? typeof e, e?.stack?.split("\n").length > 0, e?.name); } finally { all.push(r); }
    return [all, new AggregateError([thrown], "many").errors.length];
  },
};

const run = async ({ n }: any) => {
  const seen: any[] = [];
  for (let r = 0; r < 4; r++) {
    for (const name in parts) seen.push(name, parts[name]!(r));
    if (r === 1) { settle({ resolved: list }); seen.push(Object.keys(await chained as any)); }
    seen.push((await asynchronous.next()).value, await Promise.all([1, Promise.resolve(keys[0]), (async () => { await null; return rows[r].name; })()]));
    seen.push(await Promise.allSettled([Promise.reject(thrown), r > 0 ? chained : r, 3]).then((a) => a.map((x) => x.status)), await Promise.race([new Promise(() => {}), Promise.resolve(r)]));
    for await (const x of (async function* () { yield* [r, list[0]]; })()) seen.push(x);
    garbage(n);
    await null;
  }
  return seen;
};

export default extension({ tools: { run: { description: "Uses everything", input: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } as const, run: async (input) => JSON.stringify(await run(input), plain()) } } });

// plain leaves out what a text cannot hold: what contains itself, and types that JSON has no form for.
function plain() {
  const open: any[] = [];
  return function (this: any, _: string, v: any) {
    if (typeof v === "bigint") return v + "n";
    if (typeof v !== "object" || v === null) return v;
    while (open.length > 0 && open.at(-1) !== this) open.pop();
    if (open.includes(v) || open.length > 5) return "...";
    open.push(v);
    return v;
  };
}
