// A host of stile:extension on jco, for the conformance suite: the simplest one that is right. This thread has the authority: it reads the
// protocol, holds the handles and makes the operations. Each call runs in a worker of its own, which waits for this thread.
import { transpileBytes } from "@bytecodealliance/jco-transpile";
import Ajv from "ajv/dist/2020.js";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";
import { Call } from "./authority.mjs";

const PROTOCOL = 1;
const folder = mkdtempSync(join(tmpdir(), "stile-jco-"));
const components = new Map();
const running = new Map();
const ajv = new Ajv({ strict: false, logger: false });

const answer = (message) => process.stdout.write(JSON.stringify(message) + "\n");

/** Translates a component once. */
async function load(file) {
  if (!components.has(file)) {
    const made = (async () => {
      const { files, imports } = await transpileBytes(readFileSync(file), { name: "component", instantiation: "sync", noTypescript: true });
      const dir = join(folder, String(components.size));
      for (const [name, data] of files instanceof Array ? files : Object.entries(files)) {
        const path = join(dir, name);
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, data);
      }
      writeFileSync(join(dir, "package.json"), '{"type":"module"}');
      return { dir, imports };
    })();
    components.set(file, made);
  }
  return components.get(file);
}

/** Checks what a component says about its tools. */
function checked(tools) {
  const names = new Set();
  for (const { name, inputSchema, outputSchema } of tools) {
    if (!/^[a-z][a-z0-9_]{0,63}$/.test(name)) throw new Error("a tool has a bad name");
    if (names.has(name)) throw new Error(`two tools are called ${name}`);
    names.add(name);
    JSON.parse(inputSchema);
    if (outputSchema !== undefined) JSON.parse(outputSchema);
  }
  return tools;
}

/** Runs one step of a component, describe or call, in a worker; resolves with how it ended. */
function step(call, dir, what) {
  return new Promise((resolve) => {
    const shared = new SharedArrayBuffer(4);
    const flag = new Int32Array(shared);
    const worker = new Worker(new URL("./worker.mjs", import.meta.url), { workerData: { shared, dir, what }, execArgv: [] });
    let busySince = performance.now();
    let busy = 0;
    let waiting = false;
    let before = process.cpuUsage();
    // Other processes may have kept the worker waiting, and other threads of this one may have worked.
    const used = () => {
      const { user, system } = process.cpuUsage(before);
      return Math.min(busy + (waiting ? 0 : performance.now() - busySince), (user + system) / 1000);
    };
    const end = (result) => {
      clearInterval(watch);
      clearTimeout(late);
      call.end = () => {};
      resolve(result);
      void worker.terminate();
    };
    call.end = end;
    // The worker runs whenever it does not wait for this thread.
    const watch = setInterval(() => {
      if (used() > call.cpu) end({ outcome: "limit", limit: "cpu" });
    }, 10);
    const late = setTimeout(() => end({ outcome: "limit", limit: "wall" }), call.wall - (performance.now() - call.began));
    worker.on("message", async (message) => {
      if (message.ended) return end(message.ended);
      if (message.begins) return void ((busySince = performance.now()), (before = process.cpuUsage())); // loading is the host's work
      waiting = true;
      busy += performance.now() - busySince;
      const reply = await call.operate(message);
      if (call.limit) return end({ outcome: "limit", limit: call.limit });
      waiting = false;
      busySince = performance.now();
      worker.postMessage(reply);
      Atomics.store(flag, 0, 1);
      Atomics.notify(flag, 0);
    });
    worker.on("error", (error) => end({ outcome: "trap", message: String(error) }));
  });
}

async function run(id, request) {
  const call = new Call(request);
  running.set(id, call);
  const finish = (result) => {
    running.delete(id);
    call.close();
    answer({ id, result: { ...result, operations: call.operations } });
  };
  const limits = request.limits ?? {};
  call.cpu = limits.cpu ?? 5000;
  call.wall = limits.wall ?? 60000;
  call.began = performance.now();
  if (Buffer.byteLength(request.input) > (limits.input ?? 1 << 20)) return finish({ outcome: "limit", limit: "input" });
  let component;
  try {
    component = await load(request.component);
  } catch (error) {
    return finish({ outcome: "refused", message: String(error) });
  }
  const described = await step(new Call({ env: {} }, call), component.dir, { describe: true });
  if (described.outcome !== "ok") return finish(described);
  let tool;
  try {
    tool = checked(described.tools).find(({ name }) => name === request.tool);
    if (!tool) return finish({ outcome: "unknown-tool" });
    const input = JSON.parse(request.input);
    const valid = ajv.compile(JSON.parse(tool.inputSchema));
    if (!valid(input)) return finish({ outcome: "invalid-input", message: ajv.errorsText(valid.errors) });
  } catch (error) {
    return finish({ outcome: "refused", message: String(error) });
  }
  const result = await step(call, component.dir, { tool: request.tool, input: request.input, env: call.env.handle });
  if (result.outcome === "ok") {
    if (Buffer.byteLength(result.output) > (limits.output ?? 1 << 20)) return finish({ outcome: "limit", limit: "output" });
    try {
      const output = JSON.parse(result.output);
      if (tool.outputSchema !== undefined && !ajv.compile(JSON.parse(tool.outputSchema))(output)) throw new Error("the result does not match its schema");
    } catch (error) {
      return finish({ outcome: "failed", message: String(error) });
    }
  } else if (result.error) {
    return finish(call.failure(result.error));
  }
  finish(result);
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, op, protocol, call, of, binding, reason } = JSON.parse(line);
  const target = running.get(of);
  switch (op) {
    case "hello":
      if (protocol !== PROTOCOL) return answer({ id, error: `this host speaks version ${PROTOCOL} of the protocol` });
      return answer({ id, hello: { protocol: PROTOCOL, name: "jco", version: "0.15.0", kinds: ["blob", "clock", "console", "http", "kv", "random", "workspace"] } });
    case "call":
      return void run(id, call).catch((error) => answer({ id, result: { outcome: "fault", message: String(error?.stack ?? error) } }));
    case "revoke":
    case "cancel":
      if (!target) return answer({ id, error: `call ${of} is not under way` });
      if (op === "revoke") target.revoke(binding, reason);
      else target.end({ outcome: "cancelled" });
      return answer({ id });
    default:
      return answer({ id, error: `there is no op ${op}` });
  }
}).on("close", () => {
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
});
