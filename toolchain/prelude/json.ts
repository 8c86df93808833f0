// Values as JSON, without loss. A value that JSON would silently omit or change is an error that names its path.
const { stringify } = JSON;
/** A native version of the replacer below for most values; see $replace in toolchain/bindings.go. It does not track the path. */
declare const host: (this: any, key: string, value: any) => unknown;
const { getPrototypeOf, getOwnPropertyDescriptor } = Object;
const { isArray } = Array;
export const record = Object.prototype;
export const array = Array.prototype;

// Classes that do not store their content as properties, and what to write instead.
const opaque: Record<string, string> = {
  Map: "write Object.fromEntries(map), or [...map]",
  Set: "write [...set]",
  WeakMap: "its entries cannot be listed",
  WeakSet: "its entries cannot be listed",
  WeakRef: "write what deref() gives",
  Promise: "await it",
  Error: "throw it, or write { name: error.name, message: error.message }",
  DOMException: "throw it, or write { name: error.name, message: error.message }",
  RegExp: "write regexp.source",
  BigInt: "write Number(value), or String(value)",
  Symbol: "write its description",
  ArrayBuffer: "write [...new Uint8Array(buffer)], or text",
  SharedArrayBuffer: "write [...new Uint8Array(buffer)], or text",
  DataView: "write numbers, or text",
  Iterator: "write [...iterator]",
  Blob: 'return image(blob), audio(blob) or file(blob, "name"), from "stile", or write await blob.text()',
  Headers: "write Object.fromEntries(headers)",
  URLSearchParams: "write Object.fromEntries(params)",
  Request: "write what you need of it, such as { method, url }",
  Response: "write await response.json() or text()",
  ReadableStream: "read it first",
};

/** The state of a conversion that tracks the path. */
interface Writing {
  name: string;
  /** The objects from the root to the current one. `keys` has the key of each in its parent. */
  path: object[];
  keys: string[];
  depth: number;
}

// A toJSON method may start another conversion meanwhile. Conversions that do not track the path have no state.
let writing: Writing | undefined;
// A cache of kindOf, by prototype.
let kinds: Map<object, string | undefined> | undefined;

// Thrown when writing without tracking the path fails.
const lost = {};

/**
 * Returns a value as JSON text; errors call the value `name`. Undefined is omitted as a property and becomes null at the top. In an
 * array it is an error, because null would be another value. Every value is read once, when JSON.stringify reaches it, so that the
 * checked value is the written one. If a value cannot be written, `other` may return another one instead, or else a second pass finds the path.
 */
export function toJson(value: unknown, name: string, other?: (value: unknown) => unknown): string {
  if (value === undefined) return "null";
  if (typeof value === "string" || typeof value === "boolean") return stringify(value);
  try {
    return write(value, name, false);
  } catch (error) {
    if (error !== lost && !(error instanceof TypeError)) throw error;
    return write(other ? other(value) : value, name, true);
  }
}

function write(value: unknown, name: string, follows: boolean): string {
  const outer = writing;
  const own = (writing = follows ? { name, path: [], keys: [], depth: 0 } : undefined);
  kinds = undefined;
  try {
    return stringify(value, own ? replacer : host) ?? "null"; // toJSON may return undefined
  } catch (error) {
    if (!own) throw error;
    // The engine's own error for a cycle. The last object closes it.
    const { path, depth } = own;
    const first = path.indexOf(path[depth - 1]);
    if (depth > 1 && error instanceof TypeError && first < depth - 1)
      throw new TypeError(`${place(own)} refers back to ${place({ ...own, depth: first + 1 })}; leave it out, or write its id`, { cause: error });
    throw error;
  } finally {
    writing = outer;
  }
}

export function replacer(this: any, key: string, value: any): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "undefined":
      return isArray(this) ? refuse(this, key, "undefined", "write null") : value;
    case "number":
      return value - value === 0 ? value : refuse(this, key, `${value}`, "write null, or text");
    case "object": {
      if (value === null) {
        const own = getOwnPropertyDescriptor(this, key)?.value;
        return own instanceof Date ? refuse(this, key, "an invalid Date", "write null, or text") : null;
      }
      if (writing) {
        const { path } = writing;
        let { depth } = writing;
        while (depth > 0 && path[depth - 1] !== this) depth--;
        path[depth] = value;
        writing.keys[depth] = key;
        writing.depth = depth + 1;
      }
      const proto = getPrototypeOf(value);
      return proto === record || proto === array || proto === null ? value : instance(this, key, value, proto);
    }
    case "bigint":
      return refuse(this, key, "a BigInt", "write Number(value), or String(value)");
    case "function":
      return refuse(this, key, "a function", "write what it returns, or leave it out");
    default:
      return refuse(this, key, "a symbol", "write its description");
  }
}

/** An object of a class. */
function instance(holder: object, key: string, value: object, proto: object): unknown {
  kinds ??= new Map();
  if (!kinds.has(proto)) kinds.set(proto, kindOf(proto));
  const kind = kinds.get(proto);
  if (kind === undefined) return value;
  if (kind === "Number") {
    const number = Number(value);
    return number - number === 0 ? number : refuse(holder, key, `${number}`, "write null, or text");
  }
  return refuse(holder, key, `${/^[AEIO]/.test(kind) ? "an" : "a"} ${kind}`, opaque[kind] ?? "write Array.from(bytes), or text");
}

function refuse(holder: object, key: string, what: string, instead: string): never {
  if (!writing) throw lost;
  const { path } = writing;
  while (writing.depth > 0 && path[writing.depth - 1] !== holder) writing.depth--;
  throw new TypeError(`${place(writing, writing.depth > 0 ? key : undefined)} is ${what}, which JSON cannot carry; ${instead}`);
}

/** The path of the last object, or of a property of it, as a JavaScript expression. */
function place({ name, path, keys, depth }: Writing, key?: string): string {
  const steps = keys.slice(1, depth);
  if (key !== undefined) steps.push(key);
  const text = steps.map((step, i) => (isArray(path[i]) ? `[${step}]` : /^[A-Za-z_$][\w$]*$/.test(step) ? `.${step}` : `[${stringify(step)}]`)).join("");
  return name + (text.length > 300 ? `${text.slice(0, 200)}...${text.slice(-80)}` : text);
}

/** The class of a prototype, or of one above it, if JSON would misrepresent its objects; undefined otherwise. */
function kindOf(proto: object): string | undefined {
  const found = new Map<object, string>([[Number.prototype, "Number"]]);
  const typed = getPrototypeOf(Uint8Array.prototype);
  for (const name of Object.keys(opaque)) {
    const { prototype } = (globalThis as any)[name] ?? {};
    if (prototype) found.set(prototype, name);
  }
  for (let above: object | null = proto, below = proto; above; below = above, above = getPrototypeOf(above)) {
    if (above === typed) return getOwnPropertyDescriptor(below, "constructor")?.value?.name ?? "Uint8Array";
    const name = found.get(above);
    if (name) return name;
  }
  return undefined;
}
