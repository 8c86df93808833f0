// The global process, for code of Node.js. Its answers are the same everywhere, and it has no versions.node, by which packages recognise
// Node.js.
import { now } from "../clock";
import { define } from "../global";

function hrtime(before?: [number, number]): [number, number] {
  const nanoseconds = BigInt(Math.round(now() * 1e6)) - (before ? BigInt(before[0]) * 1_000_000_000n + BigInt(before[1]) : 0n);
  const seconds = nanoseconds / 1_000_000_000n - (nanoseconds % 1_000_000_000n < 0n ? 1n : 0n);
  return [Number(seconds), Number(nanoseconds - seconds * 1_000_000_000n)];
}

function absent(name: string, instead: string): () => never {
  return () => {
    throw new TypeError(`process.${name} is not available: ${instead}`);
  };
}

/** A stream that logs what is written to it, without the end of a last line. */
function output(level: "info" | "error") {
  return {
    isTTY: false,
    write(text: unknown, ...rest: unknown[]): boolean {
      console[level](`${text}`.replace(/\n$/, ""));
      const done = rest.at(-1);
      if (typeof done === "function") queueMicrotask(() => done());
      return true;
    },
  };
}

// Events of a process never happen, so listeners for them are forgotten.
const listens = () => process;
const process = {
  title: "stile",
  version: "",
  versions: {},
  arch: "wasm32",
  platform: "browser",
  browser: true,
  release: {},
  features: {},
  pid: 1,
  ppid: 0,
  argv: ["stile", "/index.js"],
  argv0: "stile",
  execArgv: [],
  execPath: "stile",
  env: {} as Record<string, string>,
  exitCode: undefined,
  stdin: undefined,
  stdout: output("info"),
  stderr: output("error"),
  cwd: () => "/",
  umask: () => 0o22,
  uptime: () => now() / 1000,
  hrtime: Object.assign(hrtime, { bigint: () => BigInt(Math.round(now() * 1e6)) }),
  memoryUsage: Object.assign(() => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }), { rss: () => 0 }),
  cpuUsage: () => ({ user: 0, system: 0 }),
  nextTick: (callback: (...args: unknown[]) => void, ...args: unknown[]) => queueMicrotask(() => callback(...args)),
  emitWarning: (warning: unknown) => console.warn(warning),
  exit: absent("exit", "a tool ends when it returns or throws"),
  abort: absent("abort", "a tool ends when it returns or throws"),
  kill: absent("kill", "there are no processes"),
  chdir: absent("chdir", "give paths from the root"),
  binding: absent("binding", "an extension does not run in Node.js"),
  on: listens,
  addListener: listens,
  once: listens,
  off: listens,
  removeListener: listens,
  removeAllListeners: listens,
  prependListener: listens,
  setMaxListeners: listens,
  emit: () => false,
  listeners: () => [],
  listenerCount: () => 0,
};
define("process", process);
