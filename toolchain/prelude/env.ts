// The `env` that a tool's run receives.
import { generated } from "./generated";
import { iface, known } from "./bindings";
import { UnboundError } from "./errors";
import { nameWith, nearest, telling, word } from "./missing";
import { bindings, derived, handle, kindOf, pass, type Raw, select, vars } from "./session";

/** Functions that make a binding's object from its handle, by interface. generated() makes the others. */
export const sugar = new Map<string, (raw: Raw) => object>();

/** Properties that promises and JSON read from any object. They accept undefined. */
const probes = new Set(["then", "toJSON"]);

type Made = Record<string, object>;

// The object of each binding, made on first use. Objects of bindings known from the build are made with the image.
const made: Made = Object.create(null);

function binding(name: string): object {
  const kind = kindOf(name)!;
  return (made[name] ??= iface(kind)?.handle ? told((sugar.get(kind) ?? generated)(handle(name)), kind) : unused(name, kind));
}

/** Has errors name what the object of a binding lacks. That of tools is a proxy, which takes any name. */
function told(object: object, kind: string): object {
  return kind === "stile:capability/tools" ? object : telling(object, word(kind));
}

nameWith((object) => {
  const name = Object.keys(made).find((name) => made[name] === object);
  return name && `env.${name}`;
});

/** A binding of an interface that the extension was built without. It can only be passed on. */
function unused(name: string, kind: string): object {
  return new Proxy({}, {
    get(_, property) {
      if (typeof property === "symbol" || probes.has(property)) return undefined;
      throw new TypeError(`env.${name}: this extension was built without the interface ${kind}`);
    },
  });
}

/** Makes the objects of the bindings that are known from the build and imported. */
export function prepare(): void {
  for (const name of Object.keys(known())) if (iface(known()[name])?.handle) binding(name);
}

/** An env of bindings, under any name, and of objects derived from them. The handles of derived objects move to the env. */
export function passed(env: Record<string, object>): Raw {
  const entries = Object.entries(env);
  const target = select(entries.filter(([name, object]) => made[name] === object).map(([name]) => name));
  for (const [name, object] of entries) {
    if (made[name] === object) continue;
    const from = Object.keys(made).find((other) => made[other] === object);
    const source = from === undefined ? derived(object) : { kind: kindOf(from)!, from };
    if (!source) throw new TypeError(`env.${name}: only bindings can be passed on, and what narrow, subdirectory and readOnly make of them`);
    pass(target, name, source);
  }
  return target;
}

/** The handle of a binding, or of an object derived from one, to lend it to the host for one operation. */
export function lent(object: object, kind: string): Raw {
  const name = Object.keys(made).find((other) => made[other] === object);
  const source = name === undefined ? derived(object) : { kind: kindOf(name)!, raw: handle(name) };
  if (source?.kind !== kind || !source.raw) throw new TypeError(`a binding of ${kind} is wanted, or an object derived from one`);
  return source.raw;
}

const handler: ProxyHandler<Made> = {
  get(made, name) {
    if (typeof name === "symbol") return undefined;
    if (made[name]) return made[name];
    if (name === "vars") return vars();
    if (kindOf(name)) return binding(name);
    if (probes.has(name)) return undefined;
    const names = [...bindings().keys()];
    const like = nearest(name, names);
    throw new UnboundError(`env.${name} is not bound (bound: ${names.join(", ") || "nothing"})${like ? `; did you mean env.${like}?` : ""}`);
  },
  has: (_, name) => typeof name === "string" && (name === "vars" || bindings().has(name)),
  // Without vars, which cannot be passed on.
  ownKeys: () => [...bindings().keys()],
  getOwnPropertyDescriptor: (_, name) =>
    typeof name === "string" && bindings().has(name)
      ? { get: () => binding(name), enumerable: true, configurable: true } // listing names creates no binding
      : undefined,
  set: () => false,
  defineProperty: () => false,
  deleteProperty: () => false,
};

/** The bindings of a call as an object, the `env` of a tool's run. */
export const environment: Record<string, object> = new Proxy(made, handler);
