// structuredClone.
import { Blob, copyBlob } from "./blob";
import { dictionary, required } from "./dictionary";
import { isPlatform } from "./global";

const errors: Record<string, ErrorConstructor> = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

/** How objects of a class that a part of the prelude defines are cloned, and moved by a transfer. */
export interface Kind {
  is(value: object): boolean;
  clone?(value: any): object;
  move?(value: any): object;
}

/** Those of the parts that an image has. */
export const kinds: Kind[] = [];

function refuse(value: unknown, how: string): DOMException {
  const what = typeof value === "object" ? Object.prototype.toString.call(value) : String(value);
  return new DOMException(`${what.slice(0, 100)} could not be ${how}`, "DataCloneError");
}

export function structuredClone<T>(value: T, options?: { transfer?: Iterable<object> } | null): T {
  required(arguments.length, 1, "structuredClone");
  return transferring(value, dictionary(options, "structuredClone").transfer ?? [])[0];
}

/** Clones a value, and moves objects. Returns the clone, and what the objects became. */
export function transferring<T>(value: T, transfer: Iterable<object>): [T, object[]] {
  const seen = new Map<unknown, unknown>();
  const moved = new Set<object>();
  for (const object of transfer) {
    const can = object instanceof ArrayBuffer ? !object.detached : kinds.some((kind) => kind.move && kind.is(object));
    if (!can || moved.has(object)) throw refuse(object, "transferred");
    moved.add(object);
  }
  const result = clone(value, seen, moved);
  return [result as T, [...moved].map((object) => clone(object, seen, moved) as object)];
}

// https://html.spec.whatwg.org/multipage/structured-data.html#structuredserializeinternal
function clone(value: unknown, seen: Map<unknown, unknown>, moved: Set<object>): unknown {
  if (typeof value === "symbol" || typeof value === "function") throw refuse(value, "cloned");
  if (typeof value !== "object" || value === null) return value;
  if (seen.has(value)) return seen.get(value);
  const remember = <V>(copy: V): V => {
    seen.set(value, copy);
    return copy;
  };
  const own = (copy: Record<string, unknown>) => {
    for (const key of Object.keys(value)) define(copy, key, clone((value as any)[key], seen, moved));
    return copy;
  };
  switch (Object.prototype.toString.call(value)) {
    case "[object Boolean]":
    case "[object Number]":
    case "[object String]":
    case "[object BigInt]":
      return remember(Object(value.valueOf()));
    case "[object Date]":
      return remember(new Date((value as Date).getTime()));
    case "[object RegExp]":
      return remember(new RegExp((value as RegExp).source, (value as RegExp).flags));
    case "[object Array]":
      return own(remember(new Array((value as unknown[]).length)) as any);
  }
  const known = kinds.find((kind) => kind.is(value));
  if (known) {
    const make = moved.has(value) ? known.move : known.clone;
    if (!make) throw refuse(value, "cloned");
    return remember(make(value));
  }
  if (value instanceof Blob) return remember(copyBlob(value, new Blob()));
  if (value instanceof ArrayBuffer) return remember(moved.has(value) ? value.transfer() : value.slice(0));
  if (ArrayBuffer.isView(value)) {
    // A view of a growing buffer has no fixed length of its own; the clone keeps its present one.
    const { byteOffset, byteLength } = value;
    const length = value instanceof DataView ? byteLength : (value as Uint8Array).length;
    const buffer = clone(value.buffer, seen, moved);
    return remember(new (kind(value))(buffer as ArrayBuffer, byteOffset, length));
  }
  if (value instanceof Map) {
    const copy = remember(new Map());
    for (const [key, item] of [...value]) copy.set(clone(key, seen, moved), clone(item, seen, moved));
    return copy;
  }
  if (value instanceof Set) {
    const copy = remember(new Set());
    for (const item of [...value]) copy.add(clone(item, seen, moved));
    return copy;
  }
  if (Error.isError(value)) return remember(cloneError(value as Error, seen, moved));
  if (isPlatform(value) || value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef)
    throw refuse(value, "cloned");
  return own(remember({}));
}

function cloneError(error: Error, seen: Map<unknown, unknown>, moved: Set<object>): Error {
  const copy = new (Object.hasOwn(errors, error.name) ? errors[error.name] : Error)(error.message);
  if (Object.hasOwn(error, "stack")) hide(copy, "stack", `${error.stack}`);
  if (Object.hasOwn(error, "cause")) hide(copy, "cause", clone(error.cause, seen, moved));
  return copy;
}

type View = new (buffer: ArrayBuffer, offset: number, length: number) => unknown;

/** The built-in constructor of a view, also if its class is a subclass. */
function kind(view: ArrayBufferView): View {
  if (view instanceof DataView) return DataView;
  const name = (view as unknown as { [Symbol.toStringTag]: string })[Symbol.toStringTag];
  return (globalThis as unknown as Record<string, View>)[name];
}

// Assignment would set the prototype for a key "__proto__".
function define(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

function hide(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, configurable: true });
}
