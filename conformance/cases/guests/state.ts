import { CapabilityError, extension } from "stile";

const input = { type: "object" } as const;
let calls = 0;
let kept: any;
const atStart = Math.PI;

async function tried(what: () => unknown): Promise<unknown> {
  try {
    return (await what()) ?? "done";
  } catch (error) {
    if (error instanceof CapabilityError) return { error: error.code };
    throw error;
  }
}

export default extension({
  tools: {
    count: { description: "How many calls this instance made", input, run: () => ++calls },
    pollute: {
      description: "Changes what the instance shares",
      input,
      run: (_: any, env: any) => {
        (Object.prototype as any).polluted = true;
        (globalThis as any).left = "behind";
        Array.prototype.push = () => 0;
        JSON.stringify = () => '"changed"';
        kept = env.files;
        return null;
      },
    },
    polluted: { description: "What an earlier call left", input, run: () => [({} as any).polluted ?? null, (globalThis as any).left ?? null, [].push.length, kept === undefined, calls] },
    fail: { description: "Throws", input, run: ({ name, message }: any) => { const e = new Error(message); e.name = name; throw e; } },
    fail_late: { description: "Throws after it waited", input, run: async () => { await null; await null; throw new RangeError("late"); } },
    throws: { description: "Throws what is no error", input, run: () => { throw "text"; } },
    strict: {
      description: "Wants a number from 1 to 3, and returns a text",
      input: { type: "object", properties: { n: { type: "integer", minimum: 1, maximum: 3 } }, required: ["n"], additionalProperties: false },
      output: { type: "string" },
      run: ({ n }: any): any => (n === 3 ? 3 : String(n)),
    },
    revoked: {
      description: "Fetches what revokes a binding, and reads with it before and after",
      input,
      run: async ({ url }: any, env: any) => {
        const below = env.files.subdirectory("d");
        const before = [await tried(() => env.files.read("a.txt")), await tried(() => below.read("b.txt"))];
        const told = await (await env.net.fetch(url)).text();
        return [before, told, await tried(() => env.files.read("a.txt")), await tried(() => below.read("b.txt")), await tried(() => env.files.write("c.txt", "x"))];
      },
    },
    revoked_itself: { description: "Fetches what revokes the binding that fetches", input, run: ({ url }: any, env: any) => tried(async () => (await env.net.fetch(url)).text()) },
    revoked_bucket: { description: "As revoked, with a bucket", input, run: async ({ url }: any, env: any) => {
      await env.kv.set("a", "1");
      const told = await (await env.net.fetch(url)).text();
      return [told, await tried(() => env.kv.get("a")), await tried(() => env.kv.set("a", "2"))];
    } },
    cancelled: { description: "Fetches what cancels the call, and writes a file afterwards", input, run: async ({ url }: any, env: any) => { await tried(async () => (await env.net.fetch(url)).text()); for (;;) await tried(() => env.clock.sleep(10)); } },
    put: { description: "Writes to a bucket, waits, and reads it", input, run: async ({ value, ms }: any, env: any) => { await env.kv.set("k", value); await env.clock.sleep(ms); return [await env.kv.get("k"), ++calls]; } },
    value: { description: "Reads a bucket", input, run: async (_: any, env: any) => (await env.kv.get("k")) ?? null },
    bindings: { description: "The names in the env, and what a missing one is", input, run: async (_: any, env: any) => { const missing = () => env.missing.read("a"); try { await missing(); return "found"; } catch (e: any) { return [Object.keys(env).sort(), e.name]; } } },
    ambient: {
      description: "What a call without bindings knows of the world",
      input,
      run: () => {
        const attempt = (f: () => any) => { try { return typeof f(); } catch (e: any) { return e.name; } };
        const names = ["require", "Deno", "Bun", "WebAssembly", "std", "os", "scriptArgs", "XMLHttpRequest", "WebSocket", "importScripts", "print"];
        return [Date.now(), performance.now(), attempt(() => Math.random()), attempt(() => crypto.getRandomValues(new Uint8Array(1))), names.filter((n) => n in globalThis && (globalThis as any)[n] !== undefined && n !== "navigator")];
      },
    },
    deterministic: {
      description: "What could differ between two calls and must not",
      input,
      run: () => {
        const keys = Object.keys({ b: 1, a: 2, 3: 0, 1: 0 });
        const sorted = Array.from({ length: 100 }, (_, i) => (i * 37) % 11).sort((a, b) => a - b);
        let sum = 0;
        for (let i = 1; i < 10000; i++) sum += Math.sin(i) / i + Math.exp(-i) + Math.sqrt(i) ** 0.1;
        return [keys, sorted.length, sum, atStart, new Error("x").stack, [..."déjà"].length, (0.1 + 0.2).toString(), new Set([3, 1, 2]).size, ++calls];
      },
    },
    trail: { description: "Several operations in an order", input, run: async (_: any, env: any) => { const r = await Promise.all([env.kv.set("b", "1"), env.kv.set("a", "2"), env.kv.get("b")]); return [r.map((v: any) => v ?? null), (await env.kv.list()).entries.map((e: any) => e.key)]; } },
    draws: { description: "Random numbers, and the time", input, run: (_: any, env: any) => [Math.random() === Math.random(), typeof Date.now()] },
  },
});
