// Values as text for a reader, in the manner of Node.js. Nothing that a value does during inspection (throwing
// getters, traps, endless chains) may make it fail: at worst, a part of the text reports it.

import { Headers } from "./headers";
import { mappedFrames } from "./stack";

const maxDepth = 4;
const maxItems = 100;
const maxText = 10_000;
const width = 72;
const custom = Symbol.for("nodejs.util.inspect.custom");

/** How much text may still be written, and the objects under inspection. */
interface State {
  left: number;
  path: object[];
  circular: Map<object, number>;
}

/** The text of a value, at most about 10,000 characters. */
export function inspect(value: unknown): string {
  return cut(show(value, { left: maxText, path: [], circular: new Map() }), maxText);
}

/** Text of at most `limit` characters. */
export function cut(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}... ${text.length - limit} more characters`;
}

function show(value: unknown, state: State): string {
  switch (typeof value) {
    case "string":
      return quote(cut(value, Math.max(state.left, 100)));
    case "number":
      return Object.is(value, -0) ? "-0" : `${value}`;
    case "bigint":
      return `${value}n`;
    case "symbol":
      return value.toString();
    case "undefined":
    case "boolean":
      return `${value}`;
    default:
      if (value === null) return "null";
  }
  try {
    const text = showObject(value as object, state);
    state.left -= text.length;
    return text;
  } catch {
    return "[cannot be shown]";
  }
}

/** A string in quotes: single ones if it has none, else double ones, else backticks. */
function quote(text: string): string {
  const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes("`") && !text.includes("${") ? "`" : "'";
  const body = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
  return mark + (mark === "'" ? body.replaceAll("'", "\\'") : mark === '"' ? body.replaceAll('"', '\\"') : body) + mark;
}

function showObject(object: object, state: State): string {
  const at = state.path.indexOf(object);
  if (at >= 0) {
    if (!state.circular.has(object)) state.circular.set(object, state.circular.size + 1);
    return `[Circular *${state.circular.get(object)}]`;
  }
  const name = className(object);
  if (state.path.length > maxDepth || state.left <= 0) return Array.isArray(object) ? "[Array]" : `[${name ?? "Object: null prototype"}]`;
  state.path.push(object);
  try {
    const own = (object as any)[custom];
    let text: string;
    if (typeof own === "function") {
      const said = own.call(object, maxDepth - state.path.length, {}, inspect);
      text = typeof said === "string" ? said : show(said, state);
    } else text = showParts(object, name, state);
    const mark = state.circular.get(object);
    return mark === undefined ? text : `<ref *${mark}> ${text}`;
  } finally {
    state.path.pop();
  }
}

/** The name of the class an object is an instance of; undefined without a prototype. */
function className(object: object): string | undefined {
  for (let proto = Object.getPrototypeOf(object); proto; proto = Object.getPrototypeOf(proto)) {
    const maker = Object.getOwnPropertyDescriptor(proto, "constructor")?.value;
    if (typeof maker === "function" && typeof maker.name === "string" && maker.name) return cut(maker.name, 100);
  }
  return undefined;
}

function showParts(object: any, name: string | undefined, state: State): string {
  if (typeof object === "function") return withProperties(showFunction(object), object, state);
  if (Error.isError(object)) return showError(object as Error, state);
  if (Array.isArray(object)) return list(name === "Array" ? "" : `${name}(${object.length}) `, items(object, state), object, state);
  if (ArrayBuffer.isView(object) && !(object instanceof DataView))
    return list(`${name}(${(object as Uint8Array).length}) `, items(object as unknown as ArrayLike<unknown>, state), {}, state);
  if (object instanceof ArrayBuffer) return `ArrayBuffer { byteLength: ${object.byteLength} }`;
  if (object instanceof Map) {
    const pairs = take(object.entries(), object.size).map(([key, item]) => `${show(key, state)} => ${show(item, state)}`);
    return braces(`${name}(${object.size}) `, [...pairs, ...more(object.size), ...properties(object, state)]);
  }
  if (object instanceof Set) {
    const values = take(object.values(), object.size).map((item) => show(item, state));
    return braces(`${name}(${object.size}) `, [...values, ...more(object.size), ...properties(object, state)]);
  }
  if (object instanceof Date) return withProperties(Number.isNaN(object.getTime()) ? "Invalid Date" : object.toISOString(), object, state);
  if (object instanceof RegExp) return withProperties(RegExp.prototype.toString.call(object), object, state);
  if (typeof URL === "function" && object instanceof URL) return `URL ${quote(object.href)}`;
  if (object instanceof Promise || object instanceof WeakMap || object instanceof WeakSet) return `${name} {}`;
  for (const primitive of [Number, String, Boolean, BigInt, Symbol])
    if (object instanceof primitive) return `[${primitive.name}: ${show(object.valueOf(), state)}]`;
  if (typeof object.entries === "function" && typeof object[Symbol.iterator] === "function" && isWeb(object))
    return braces(`${name} `, [...object.entries()].slice(0, maxItems).map(([key, item]) => `${quote(key)} => ${show(item, state)}`));
  const tag = object[Symbol.toStringTag];
  const label = typeof tag === "string" && tag && tag !== name ? `${name ?? "Object"} [${cut(tag, 100)}] ` : "";
  const prefix = label || (name === "Object" ? "" : name === undefined ? "[Object: null prototype] " : `${name} `);
  return braces(prefix, properties(object, state));
}

/** Collections that do not store their names and values as properties. */
function isWeb(object: object): boolean {
  return object instanceof Headers || object instanceof URLSearchParams;
}

function showFunction(value: Function): string {
  const name = Object.getOwnPropertyDescriptor(value, "name")?.value;
  const known = typeof name === "string" && name ? cut(name, 100) : "";
  if (/^class\b/.test(Function.prototype.toString.call(value))) {
    const parent = Object.getPrototypeOf(value)?.name;
    return `[class ${known || "(anonymous)"}${parent ? ` extends ${cut(`${parent}`, 100)}` : ""}]`;
  }
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  return `[${kind}${known ? `: ${known}` : " (anonymous)"}]`;
}

function showError(error: Error, state: State): string {
  const own = Object.getOwnPropertyDescriptor(error, "stack")?.value;
  const stack = typeof own === "string" ? own : (mappedFrames(error) ?? "");
  const head = heading(error);
  let text = stack.trim() ? `${head}\n${cut(stack.trimEnd(), 4000)}` : `[${head}]`;
  if (stack.startsWith(head)) text = cut(stack.trimEnd(), 4000);
  const hidden = ["cause", "errors"].filter((key) => Object.hasOwn(error, key));
  const parts = [
    ...properties(error, state, new Set(["stack", "message", "name", "cause", "errors"])),
    ...hidden.map((key) => `[${key}]: ${show((error as any)[key], state)}`),
  ];
  return parts.length ? `${text} ${braces("", parts, true)}` : text;
}

/** "Name: message". */
export function heading(error: Error): string {
  const name = cut(`${error.name}`, 200);
  const message = cut(`${error.message}`, 4000);
  return message ? `${name}: ${message}` : name;
}

function take<T>(iterator: IterableIterator<T>, size: number): T[] {
  const taken: T[] = [];
  for (const item of iterator) {
    if (taken.length >= Math.min(size, maxItems)) break;
    taken.push(item);
  }
  return taken;
}

function items(array: ArrayLike<unknown>, state: State): string[] {
  const texts: string[] = [];
  const length = Math.min(array.length, maxItems);
  for (let at = 0; at < length && state.left > 0; at++) {
    let holes = 0;
    while (at + holes < length && !Object.hasOwn(array, at + holes)) holes++;
    if (holes) texts.push(`<${holes} empty item${holes > 1 ? "s" : ""}>`);
    at += holes;
    if (at < length) texts.push(show(array[at], state));
  }
  return [...texts, ...more(array.length)];
}

function more(size: number): string[] {
  return size > maxItems ? [`... ${size - maxItems} more item${size > maxItems + 1 ? "s" : ""}`] : [];
}

function properties(object: object, state: State, except?: Set<string>): string[] {
  const texts: string[] = [];
  const indexed = Array.isArray(object);
  for (const key of Reflect.ownKeys(object)) {
    if (typeof key === "string" && (except?.has(key) || (indexed && (key === "length" || /^\d+$/.test(key))))) continue;
    const descriptor = Reflect.getOwnPropertyDescriptor(object, key);
    if (!descriptor?.enumerable) continue;
    if (texts.length >= maxItems || state.left <= 0) {
      texts.push("...");
      break;
    }
    const label = typeof key === "symbol" ? `[${key.toString()}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? key : quote(cut(key, 200));
    const { get, set } = descriptor;
    const accessor = get && set ? "[Getter/Setter]" : get ? "[Getter]" : "[Setter]";
    texts.push(`${label}: ${get || set ? accessor : show(descriptor.value, state)}`);
  }
  return texts;
}

function withProperties(text: string, object: object, state: State): string {
  const parts = properties(object, state);
  return parts.length ? braces(`${text} `, parts, true) : text;
}

function list(prefix: string, texts: string[], object: object, state: State): string {
  const parts = [...texts, ...properties(object, state)];
  return parts.length ? lay(prefix, "[", "]", parts) : `${prefix}[]`;
}

function braces(prefix: string, parts: string[], always = false): string {
  return parts.length || always ? lay(prefix, "{", "}", parts) : `${prefix}{}`;
}

/** On one line if it fits, else with one part per line. Many short parts are grouped into lines. */
function lay(prefix: string, open: string, close: string, parts: string[]): string {
  const length = parts.reduce((sum, part) => sum + part.length + 2, prefix.length);
  if (length <= width && !parts.some((part) => part.includes("\n"))) return `${prefix}${open} ${parts.join(", ")} ${close}`;
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const fits = open === "[" && parts.length > 6 && last !== undefined && last.length + part.length + 2 <= width;
    if (fits && part.length <= 16 && !part.includes("\n")) lines[lines.length - 1] += `, ${part}`;
    else lines.push(part);
  }
  return `${prefix}${open}\n${lines.map((line) => `  ${line.replaceAll("\n", "\n  ")}`).join(",\n")}\n${close}`;
}
