// bindings:
import { equal, ok, throws } from "./assert";

export default function (): void {
  const value: any = {
    text: "a", number: -0, big: 10n, nothing: undefined, date: new Date(5), pattern: /a+/gi,
    map: new Map<any, any>([["k", { deep: [1, , 3] }]]), set: new Set([1, "2"]), boxed: Object(1), bytes: new Uint8Array([1, 2, 3]).subarray(1),
  };
  value.self = value;
  value.map.set(value.map, value);
  const copy = structuredClone(value);
  ok(copy !== value && copy.self === copy && copy.map.get(copy.map) === copy, "circles");
  equal(copy.date, value.date);
  equal([copy.pattern.source, copy.pattern.flags], ["a+", "gi"]);
  equal(copy.map.get("k"), { deep: [1, , 3] });
  ok(!(1 in copy.map.get("k").deep), "holes stay holes");
  equal([...copy.set], [1, "2"]);
  equal(copy.bytes, new Uint8Array([2, 3]));
  ok(copy.bytes.buffer !== value.bytes.buffer, "buffers are copied");
  ok(Object.is(copy.number, -0) && copy.big === 10n && "nothing" in copy, "primitives");
  ok(copy.boxed instanceof Number, "boxed");

  class Point { constructor(public x = 1) {} get y() { return 2; } }
  equal(structuredClone(new Point()), { x: 1 } as any, "classes are lost");
  const odd = JSON.parse('{"__proto__": {"polluted": 1}}');
  const clean = structuredClone(odd);
  ok(Object.getPrototypeOf(clean) === Object.prototype && Object.hasOwn(clean, "__proto__"), "__proto__ is only a name");

  const cause = new RangeError("inner");
  const error = structuredClone(new TypeError("outer", { cause }));
  ok(error instanceof TypeError && error.message === "outer", "errors");
  ok((error.cause as any) instanceof RangeError, "and their causes");

  for (const bad of [() => 1, Symbol("s"), { f() {} }, [Symbol.iterator], Promise.resolve(), new WeakMap(), new URL("a:b"), new Headers(), [new EventTarget()]])
    throws(() => structuredClone(bad), { name: "DataCloneError" });

  const buffer = new Uint8Array([7]).buffer;
  const moved = structuredClone({ buffer }, { transfer: [buffer] });
  equal([moved.buffer.byteLength, buffer.byteLength, buffer.detached], [1, 0, true] as any);
  let deep: any = {};
  for (let i = 0, at = deep; i < 50; i++) at = at.next = {};
  equal(structuredClone(deep), deep);
}
