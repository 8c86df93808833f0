// The files that node:fs has: those of one binding, which the manifest names. toolchain/node/files.ts is made of these operations.
import { filesBinding } from "../bindings";
import { ask, UnboundError } from "../errors";
import { bindings, handle } from "../session";

const methods = ["append", "appendBytes", "copy", "list", "makeDirectory", "makeLink", "move", "readBytes", "readLink", "remove", "replace", "setMode", "stat", "writeBytes"];
const known = new Set(methods);
const has = known.has.bind(known);

function operate(method: string, ...args: unknown[]): unknown {
  const name = filesBinding();
  if (name === undefined) throw new UnboundError('fs has no files: name a workspace binding in the manifest, as in "fs": "notes", or with --fs notes');
  if (!has(method)) throw new TypeError(`fs: there is no operation ${method}`);
  if (!bindings().has(name)) throw new UnboundError(`env.${name} is not bound (bound: ${[...bindings().keys()].join(", ") || "nothing"})`);
  return ask(() => handle(name)[method](...args));
}
Object.defineProperty(globalThis, Symbol.for("stileFiles"), { value: operate });
