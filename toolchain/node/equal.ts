// util.isDeepStrictEqual.
import types from "./util-types";

export function isDeepStrictEqual(a: unknown, b: unknown): boolean {
  return equal(a, b, new Map());
}

function equal(a: any, b: any, seen: Map<object, Set<object>>): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const same = seen.get(a);
  if (same?.has(b)) return true; // a cycle
  if (same) same.add(b);
  else seen.set(a, new Set([b]));
  if (types.isDate(a)) {
    if (!types.isDate(b) || !Object.is(a.getTime(), b.getTime())) return false;
  } else if (types.isRegExp(a)) {
    if (`${a}` !== `${b}` || a.lastIndex !== b.lastIndex) return false;
  } else if (types.isNativeError(a)) {
    if (a.name !== b.name || a.message !== b.message) return false;
  } else if (types.isBoxedPrimitive(a)) {
    if (!types.isBoxedPrimitive(b) || !Object.is(a.valueOf(), b.valueOf())) return false;
  } else if (ArrayBuffer.isView(a) || types.isArrayBuffer(a)) {
    const [left, right] = [a, b].map((of) => (ArrayBuffer.isView(of) ? new Uint8Array(of.buffer, of.byteOffset, of.byteLength) : new Uint8Array(of)));
    if (left.length !== right.length || left.some((byte, at) => byte !== right[at])) return false;
    if (!types.isFloat32Array(a) && !types.isFloat64Array(a)) return true; // its keys are its bytes
  } else if (types.isMap(a)) {
    if (!types.isMap(b) || a.size !== b.size) return false;
    const left: [unknown, unknown][] = [];
    for (const [key, value] of a) {
      if (!b.has(key)) left.push([key, value]);
      else if (!equal(value, b.get(key), seen)) return false;
    }
    const right = [...b].filter(([key]) => !a.has(key));
    if (!match(left, right, ([k, v], [l, w]) => equal(k, l, seen) && equal(v, w, seen))) return false;
  } else if (types.isSet(a)) {
    if (!types.isSet(b) || a.size !== b.size) return false;
    if (!match([...a].filter((value) => !b.has(value)), [...b].filter((value) => !a.has(value)), (v, w) => equal(v, w, seen))) return false;
  }
  const keys = own(a);
  return keys.length === own(b).length && keys.every((key) => Object.prototype.propertyIsEnumerable.call(b, key) && equal(a[key], b[key], seen));
}

function own(object: object): (string | symbol)[] {
  return Reflect.ownKeys(object).filter((key) => Object.prototype.propertyIsEnumerable.call(object, key));
}

/** Whether each of some values has a partner of its own. */
function match<T>(left: T[], right: T[], same: (a: T, b: T) => boolean): boolean {
  if (left.length !== right.length) return false;
  for (const value of left) {
    const at = right.findIndex((other) => same(value, other));
    if (at < 0) return false;
    right.splice(at, 1);
  }
  return true;
}
