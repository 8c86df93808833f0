// bindings: console
// Returns the messages that are expected, in order, as [level, text]; the test compares them with what the host was given.

class Point {
  x = 1;
  #hidden = 2;
  get y() {
    return this.#hidden;
  }
}

export default function (): [string, string][] {
  const expected: [string, string][] = [];
  const log = (text: string, ...data: unknown[]) => {
    console.log(...data);
    expected.push(["info", text]);
  };
  log("text 1 2n true null undefined Symbol(s)", "text", 1, 2n, true, null, undefined, Symbol("s"));
  log("{ a: 1, 'b-c': 'text', d: [ 1, 'x', [ 2 ] ] }", { a: 1, "b-c": "text", d: [1, "x", [2]] });
  log("[ 1, <2 empty items>, 4 ] [] {} -0", [1, , , 4], [], {}, -0);
  log(`it's [ 'a\\nb', "it's", '"' ]`, "it's", ["a\nb", "it's", '"']);
  log("Map(1) { 'k' => { v: 1 } } Set(2) { 1, 'b' }", new Map([["k", { v: 1 }]]), new Set([1, "b"]));
  log("Point { x: 1 } [class Point] [class Deep extends Point] [Function: f] [Function (anonymous)]", new Point(), Point, class Deep extends Point {}, function f() {}, () => {});
  log("[Object: null prototype] { a: 1 }", Object.assign(Object.create(null), { a: 1 }));
  log("1970-01-01T00:00:00.000Z /a/g Invalid Date", new Date(0), /a/g, new Date(NaN));
  log("Uint8Array(3) [ 1, 2, 3 ] ArrayBuffer { byteLength: 2 }", new Uint8Array([1, 2, 3]), new ArrayBuffer(2));
  log("[Number: 3] [String: 's'] Promise {}", Object(3), Object("s"), Promise.resolve());
  log("{ a: [Getter], b: [Setter], [Symbol(k)]: 1 }", { get a() { throw 1; }, set b(_: any) {}, [Symbol("k")]: 1 });
  log("{ a: { b: { c: { d: { e: [Object] } } } } }", { a: { b: { c: { d: { e: { f: 1 } } } } } });
  const circle: any = { name: "c" };
  circle.self = circle;
  log("<ref *1> { name: 'c', self: [Circular *1] }", circle);
  log("Headers { 'a' => '1' } URL 'http://a/'", new Headers({ a: "1" }), new URL("http://a"));
  log("5 of 7: 100% 3 1.5 {\"a\":1} { b: 2 } rest", "%s of %d: 100%% %i %f %j %o", "5", 7, 3.9, "1.5", { a: 1 }, { b: 2 }, "rest");
  log("%s 100%", "%s 100%");
  log("[cannot be shown]", new Proxy({}, { ownKeys() { throw new Error("trap"); } }));

  console.warn("w");
  console.error("e");
  console.debug("d");
  console.info("i");
  expected.push(["warn", "w"], ["error", "e"], ["debug", "d"], ["info", "i"]);
  console.assert(true, "not said");
  console.assert(false, "said");
  expected.push(["error", "Assertion failed: said"]);
  console.count();
  console.count();
  expected.push(["info", "default: 1"], ["info", "default: 2"]);
  console.group("g");
  console.log("in\nside");
  console.groupEnd();
  expected.push(["info", "g"], ["info", "  in\n  side"]);
  console.table([{ a: 1, b: "x" }, { a: 22 }]);
  expected.push(["info", "(index)  a   b\n0        1   'x'\n1        22"]);
  return expected;
}
