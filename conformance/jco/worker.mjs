// Runs a component. Every operation is sent to the thread that has the authority.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { Directory } from "./workspace.mjs";

// What jco generates decodes text with decoders of this class. Theirs replace what is not UTF-8, and the component model says to trap.
globalThis.TextDecoder = class extends TextDecoder {
  constructor(label, options) {
    super(label, { ...options, fatal: true, ignoreBOM: true });
  }
};

const flag = new Int32Array(workerData.shared);

/** Asks the other thread, and waits. */
function operate(resource, method, handle, args) {
  parentPort.postMessage({ resource, method, handle, args: args.map((arg) => lower(arg)) });
  Atomics.wait(flag, 0, 0);
  Atomics.store(flag, 0, 0);
  const { value, error } = receiveMessageOnPort(parentPort).message;
  if (error) throw error;
  return lift(value);
}

const own = Symbol("handle");

/** Replaces resources by their handles, wherever they are. */
function lower(value) {
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return value;
  if (value[own] !== undefined) return { handle: value[own] };
  if (value instanceof Array) return value.map(lower);
  return Object.fromEntries(Object.entries(value).map(([key, v]) => [key, lower(v)]));
}

function lift(value) {
  if (value?.handle === undefined) return value;
  const resource = Object.create(classes[value.type].prototype);
  resource[own] = value.handle;
  return resource;
}

const classes = {};

function define(name, ...methods) {
  classes[name] = class {};
  for (const method of methods) {
    classes[name].prototype[method] = function (...args) {
      return operate(name, method, this[own], args);
    };
  }
  classes[name].prototype[Symbol.dispose] = function () {
    operate(name, "dispose", this[own], []);
  };
  return classes[name];
}

const bound = (kind) => ({ get: (env, name) => operate("Env", "get", env[own], [kind, name]), put: (env, name, value) => operate("Env", "put", env[own], [kind, name, value]) });
const all = {
  "stile:capability/env": { Env: define("Env", "names", "subset") },
  "stile:capability/poll": { Pollable: define("Pollable", "ready", "block"), poll: (list) => Uint32Array.from(operate("Pollable", "poll", undefined, [list])), park: () => false },
  "stile:capability/types": {},
  "stile:capability/blob": { Blob: define("Blob", "size", "mediaType", "digest", "text", "bytes", "packed"), Writer: define("Writer", "append", "appendText", "appendBlob"), Store: define("Store", "create", "finish"), ...bound("blob") },
  "stile:capability/http": { Client: define("Client", "start", "narrow", "rules"), Exchange: define("Exchange", "subscribe", "head", "text", "blob"), ...bound("http") },
  "stile:capability/kv": { Bucket: define("Bucket", "get", "set", "delete", "list", "increment", "compareAndSet"), ...bound("kv") },
  "stile:capability/clock": { Clock: define("Clock", "now", "monotonic", "subscribe"), ...bound("clock") },
  "stile:capability/random": { Random: define("Random", "u64", "bytes"), ...bound("random") },
  "stile:capability/console": { Console: define("Console", "log"), ...bound("console") },
  "stile:capability/workspace": { Directory: define("Directory", ...Object.keys(Directory)), ...bound("workspace") },
  // The kind that this host does not have. Cases with other kinds may import it.
  "stile:capability/browser": { Session: define("Session"), Pending: define("Pending"), ...bound("browser") },
};

function main() {
  const { dir, what } = workerData;
  let tools;
  try {
    const compile = (name) => new WebAssembly.Module(readFileSync(join(dir, name)));
    tools = instantiate(compile, all).tools;
    if (!tools) throw new Error("it does not export stile:extension/tools");
  } catch (error) {
    return { outcome: "refused", message: String(error) };
  }
  parentPort.postMessage({ begins: true });
  try {
    if (what.describe) return { outcome: "ok", tools: tools.describe() };
    return { outcome: "ok", output: tools.call(what.tool, what.input, lift({ handle: what.env, type: "Env" })) };
  } catch (error) {
    const payload = error?.payload ?? error;
    if (payload?.tag) return { outcome: "failed", error: payload };
    return { outcome: "trap", message: String(error) };
  }
}

const { instantiate } = await import(join(workerData.dir, "component.js"));
parentPort.postMessage({ ended: main() });
