// Objects for interfaces without sugar: an embedder's own. Their methods are those of the WIT resource, as promises.
import { iface, wait } from "./bindings";
import { ask } from "./errors";
import type { Raw } from "./session";

const raws = new WeakMap<object, Raw>();
const wrapped = new WeakMap<Raw, object>();

/** An object whose methods all return promises. */
export function generated(raw: Raw): object {
  const known = wrapped.get(raw);
  if (known) return known;
  const object: Record<string, unknown> = {};
  raws.set(object, raw);
  wrapped.set(raw, object);
  const methods = Object.getPrototypeOf(raw);
  for (const name of Object.getOwnPropertyNames(methods)) {
    if (name === "constructor" || name === "drop" || typeof raw[name] !== "function") continue;
    object[name] = async (...args: unknown[]) => outward(ask(() => raw[name](...args.map(inward))));
  }
  return object;
}

/** Converts a value from the host: handles become such objects, and a pollable becomes a promise. */
function outward(value: any): unknown {
  return convert(value, (object) => {
    if (object instanceof (pollable() ?? Never)) return wait(object as any);
    return typeof (object as Raw).drop === "function" ? generated(object as Raw) : undefined;
  });
}

/** Converts an author's value: such objects become handles again. */
function inward(value: any): unknown {
  return convert(value, (object) => raws.get(object));
}

class Never {}

function pollable(): (new () => object) | undefined {
  return iface("stile:capability/poll")?.resources.Pollable as any;
}

/** Replaces objects inside lists, records and variants; bytes stay as they are. */
function convert(value: any, replace: (object: object) => unknown): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  const other = replace(value);
  if (other !== undefined) return other;
  if (Array.isArray(value)) return value.map((item) => convert(item, replace));
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) copy[key] = convert(item, replace);
  return copy;
}
