// The current call: its env, and the bindings that web APIs use.
import { iface, known, later, own, type Raw } from "./bindings";
import { ask, DeniedError, unbound } from "./errors";
import { telling, word } from "./missing";

export type { Raw };

let given = 0; // the handle of the env, 0 for none
let object: Raw | undefined; // of that handle
let bound: Map<string, string> | undefined;
let configured: object | undefined;
const handles = new Map<string, Raw>();

/** Begins a call. */
export function enter(env: number): void {
  given = env;
  object = undefined;
  bound = undefined;
  configured = undefined;
  if (handles.size) handles.clear();
}

/** The env as an object, which many calls never need. */
export function env(): Raw {
  if (given === 0) throw new Error("this is not available at top level; use it inside a tool's run");
  return (object ??= own("stile:capability/env", given));
}

/** The bindings of the call: name to interface, without its version. */
export function bindings(): Map<string, string> {
  if (given === 0) throw new Error("capabilities are not available at top level; use them inside a tool's run");
  if (bound) return bound;
  bound = new Map();
  for (const [name, kind] of env().names()) bound.set(name, kind.slice(0, kind.lastIndexOf("@")));
  return bound;
}

/** What a person configured: plain data, which no code can change. */
export function vars(): object {
  if (given === 0) throw new Error("env.vars is not available at top level; use it inside a tool's run");
  if (!configured) {
    const raw = env();
    if (!raw.vars) throw new TypeError("this extension was built without env.vars; write env.vars, so that the build sees it");
    configured = JSON.parse(raw.vars()) as object;
    for (const value of Object.values(configured)) Object.freeze(value);
    Object.freeze(configured);
  }
  return configured;
}

/** The interface of a binding, undefined when there is none. Names known from the build need no call to the host. */
export function kindOf(name: string): string | undefined {
  return known()[name] ?? bindings().get(name);
}

/** The handle of a binding. Its first use asks the host for it. */
export function handle(name: string): Raw {
  const kind = kindOf(name)!;
  // What is opened is kept in the map alone: a variable of this function would be on a page of its own.
  return later(kind, () => handles.get(name) ?? open(name, kind));
}

function open(name: string, kind: string): Raw {
  if (given === 0) throw new Error("capabilities are not available at top level; use them inside a tool's run");
  const raw = ask(() => iface(kind)!.functions.get(env(), name) as Raw);
  handles.set(name, raw);
  return raw;
}

/** An env with some of the bindings, for a called tool. */
export function select(names: string[]): Raw {
  return ask(() => env().subset(names));
}

/** A handle that can be passed on: one derived from others, or a new one of a binding. */
interface Source {
  kind: string;
  raw?: Raw;
  from?: string;
}

const made = new WeakMap<object, Source>();

/** Records that an object represents a derived handle. */
export function derive<T extends object>(kind: string, raw: Raw, object: T): T {
  made.set(object, { kind, raw });
  return telling(object, word(kind));
}

export function derived(object: object): Source | undefined {
  return made.get(object);
}

/** Puts a handle into an env that will be passed on. */
export function pass(target: Raw, name: string, { kind, raw, from }: Source): void {
  const put = iface(kind)?.functions.put;
  if (!put) throw new TypeError(`env.${name}: this extension was built without the means to pass on what it does not use itself`);
  ask(() => put(target, name, raw ?? iface(kind)!.functions.get(env(), from)));
}

/** The handle that a web API uses: the binding with the interface's name, or else the first binding of the interface. */
export function ambient(kind: string): Raw | undefined {
  const whole = `stile:capability/${kind}`;
  if (given === 0 || !iface(whole)) return undefined;
  const name = bindings().get(kind) === whole ? kind : [...bindings()].find(([, other]) => other === whole)?.[0];
  return name === undefined ? undefined : (handles.get(name) ?? open(name, whole));
}

/** The same for an operation that requires the handle. */
export function demand(kind: string, operation: string): Raw {
  if (given === 0) throw new Error(`${operation} is not available at top level; use it inside a tool's run`);
  const raw = ambient(kind);
  if (raw) return raw;
  try {
    // This fails, but the denial then comes from the host, which logs it.
    ask(() => iface(`stile:capability/${kind}`)?.functions.get(env(), kind));
  } catch (error) {
    if (error instanceof DeniedError) throw error;
  }
  throw unbound(kind, operation);
}
