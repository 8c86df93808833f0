// structuredClone.
import { Blob } from "./blob";
import { dictionary, required } from "./dictionary";
import { isPlatform } from "./global";

const errors: Record<string, ErrorConstructor> = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

export function structuredClone<T>(value: T, options?: { transfer?: Iterable<ArrayBuffer> } | null): T {
  required(arguments.length, 1, "structuredClone");
  const { transfer = [] } = dictionary(options, "structuredClone");
  const seen = new Map<unknown, unknown>();
  const transferred = [...transfer];
  for (const buffer of transferred)
    if (!(buffer instanceof ArrayBuffer)) throw new DOMException("only an ArrayBuffer can be transferred", "DataCloneError");
  const result = clone(value, seen, new Set(transferred));
  for (const buffer of transferred) if (!seen.has(buffer)) buffer.transfer();
  return result as T;
}

// https://html.spec.whatwg.org/multipage/structured-data.html#structuredserializeinternal
function clone(value: unknown, seen: Map<unknown, unknown>, moved: Set<ArrayBuffer>): unknown {
  if (typeof value === "symbol" || typeof value === "function")
    throw new DOMException(`${String(value).slice(0, 100)} could not be cloned`, "DataCloneError");
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
  if (value instanceof Blob) return remember(value);
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
    throw new DOMException(`${Object.prototype.toString.call(value)} could not be cloned`, "DataCloneError");
  return own(remember({}));
}

function cloneError(error: Error, seen: Map<unknown, unknown>, moved: Set<ArrayBuffer>): Error {
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
