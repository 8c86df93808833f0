// The `env` that a tool's run is given.
import { blobs } from "./blobs";
import { clock } from "./clock";
import { logger } from "./console";
import { generated } from "./generated";
import { http } from "./http";
import { kv } from "./kv";
import { random } from "./random";
import { bindings, handle, type Raw } from "./session";
import { tools } from "./tools";
import { workspace } from "./workspace";

const sugar = new Map<string, (raw: Raw) => object>([
  ["stile:capability/blob", blobs],
  ["stile:capability/http", http],
  ["stile:capability/workspace", workspace],
  ["stile:capability/kv", kv],
  ["stile:capability/clock", clock],
  ["stile:capability/random", random],
  ["stile:capability/console", logger],
  ["stile:capability/tools", tools],
]);

/** What looks at any object and takes undefined for an answer: promises and JSON. */
const probes = new Set(["then", "toJSON"]);

/** The bindings of the call as an object. Each is made when it is first used, and then kept in the proxy's target. */
export function environment(): object {
  return new Proxy(Object.create(null), handler);
}

type Made = Record<string, object>;

function binding(made: Made, name: string): object {
  return (made[name] ??= (sugar.get(bindings().get(name)!) ?? generated)(handle(name)));
}

const handler: ProxyHandler<Made> = {
  get(made, name) {
    if (typeof name === "symbol") return undefined;
    if (bindings().has(name)) return binding(made, name);
    if (probes.has(name)) return undefined;
    const names = [...bindings().keys()].join(", ") || "nothing";
    throw new TypeError(`env.${name} is not bound (bound: ${names}); add to the manifest: "bindings": { "${name}": { ... } }`);
  },
  has: (_, name) => typeof name === "string" && bindings().has(name),
  ownKeys: () => [...bindings().keys()],
  getOwnPropertyDescriptor: (made, name) =>
    typeof name === "string" && bindings().has(name)
      ? { get: () => binding(made, name), enumerable: true, configurable: true } // to list names makes no binding
      : undefined,
  set: () => false,
  defineProperty: () => false,
  deleteProperty: () => false,
};
