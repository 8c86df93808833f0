// Runs one test of test262, as global code in the environment of an extension.
import { extension } from "stile";
import harness from "./harness.json";

interface Input {
  /** Texts of further files of the harness. */
  includes: string[];
  source: string;
  async: boolean;
  /** Nothing goes before the source. */
  raw: boolean;
  strict: boolean;
}

const global = globalThis as any;
const evaluate = global.eval;

let printed = (_line: string) => {};
global.print = (line: unknown) => printed(`${line}`);
global.$262 = {
  global,
  evalScript: (text: string) => evaluate(text),
  gc: () => {},
  detachArrayBuffer: (buffer: ArrayBuffer) => void buffer.transfer(),
  createRealm: () => {
    throw new Error("there is one realm");
  },
};
for (const text of harness) evaluate(text);

function described(error: any): string {
  try {
    return `${error?.constructor?.name}: ${error?.message ?? error}`.slice(0, 500).toWellFormed();
  } catch {
    return "something that cannot be shown";
  }
}

const iterators = Object.getPrototypeOf([][Symbol.iterator]());
const kept: [object, PropertyKey, PropertyDescriptor][] = (
  [
    [Array.prototype, Symbol.iterator],
    [iterators, "next"],
    [globalThis, "Array"],
    [globalThis, "Object"],
  ] as const
).map(([holder, name]) => [holder, name, Object.getOwnPropertyDescriptor(holder, name)!]);

const { defineProperty, deleteProperty, ownKeys } = Reflect;

/** Undoes what tests do to built-ins that the runtime of an extension uses. */
function clean(): void {
  for (let n = 0; n < kept.length; n++) {
    const holder = kept[n][0];
    defineProperty(holder, kept[n][1], kept[n][2]);
  }
  const keys = ownKeys(Array.prototype);
  for (let n = 0; n < keys.length; n++) if (typeof keys[n] === "string" && +(keys[n] as string) >= 0) deleteProperty(Array.prototype, keys[n]);
}

export default extension({
  tools: {
    run: {
      description: "run a test",
      run: async ({ includes, source, async, raw, strict }: Input) => {
        void [setTimeout, Math.random, Date.now]; // the tests use them
        const done = new Promise<string>((resolve) => {
          printed = (line) => {
            if (line.startsWith("Test262:")) resolve(line === "Test262:AsyncTestComplete" ? "" : line.slice(0, 500).toWellFormed());
          };
        });
        try {
          if (!raw) for (const text of includes) evaluate(text);
          evaluate(strict ? `"use strict";\n${source}` : source);
        } catch (error) {
          clean();
          return { thrown: described(error) };
        }
        const failed = async ? await done : "";
        clean();
        return { failed };
      },
    },
  },
});
