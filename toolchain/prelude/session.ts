// The call that is being served: its env, and the bindings that web APIs use.
import { iface } from "./bindings";
import { ask, DeniedError, unbound } from "./errors";

/** A raw handle: the methods of its WIT resource, all synchronous. */
export type Raw = Record<string, (...args: any[]) => any>;

let env: Raw | undefined;
let bound: Map<string, string> | undefined;
let handles = new Map<string, Raw>();

/** Begins a call. */
export function enter(raw: Raw): void {
  env = raw;
  bound = undefined;
  handles = new Map();
}

/** The bindings of the call: name to interface, without its version. */
export function bindings(): Map<string, string> {
  if (!env) throw new Error("capabilities are not available at top level; use them inside a tool's run");
  return (bound ??= new Map(env.names().map(([name, kind]: [string, string]) => [name, kind.replace(/@.*/, "")])));
}

/** The handle of a binding. */
export function handle(name: string): Raw {
  const known = handles.get(name);
  if (known) return known;
  const kind = bindings().get(name)!;
  const found = iface(kind);
  if (!found) throw new TypeError(`env.${name}: this extension was built without the interface ${kind}`);
  const raw = ask(() => found.functions.get(env, name) as Raw);
  handles.set(name, raw);
  return raw;
}

/** An env with no bindings, for a tool that needs none of ours. */
export function nothing(): Raw {
  return ask(() => env!.subset([]));
}

/** The handle that a web API uses: the binding named like the interface, or else the first of that interface. */
export function ambient(kind: string): Raw | undefined {
  const whole = `stile:capability/${kind}`;
  if (!env || !iface(whole)) return undefined;
  const name = bindings().get(kind) === whole ? kind : [...bindings()].find(([, other]) => other === whole)?.[0];
  return name === undefined ? undefined : handle(name);
}

/** The same for an operation that cannot do without. */
export function demand(kind: string, operation: string): Raw {
  if (!env) throw new Error(`${operation} is not available at top level; use it inside a tool's run`);
  const raw = ambient(kind);
  if (raw) return raw;
  try {
    // In vain, but then the denial is the host's own, and on its record.
    ask(() => iface(`stile:capability/${kind}`)?.functions.get(env, kind));
  } catch (error) {
    if (error instanceof DeniedError) throw error;
  }
  throw unbound(kind, operation);
}
