import { CapabilityError, extension } from "stile";

const input = { type: "object" } as const;
const kept: any[] = [];

export default extension({
  tools: {
    spin: { description: "Loops", input, run: () => { for (;;); } },
    work: { description: "Loops so many times", input, run: ({ times }: any) => { let n = 0; for (let i = 0; i < times; i++) n = (n + i) % 7; return n; } },
    microtasks: { description: "Awaits for ever", input, run: async () => { for (;;) await null; } },
    regex: { description: "A pattern that backtracks", input, run: () => /^(a+)+$/.test("a".repeat(40) + "b") },
    allocate: { description: "Takes memory", input, run: ({ mib }: any) => { for (let i = 0; i < mib; i++) kept.push(new Uint8Array(1 << 20).fill(1)); return kept.length; } },
    double: { description: "Doubles a text", input, run: () => { let s = "x"; for (;;) { s += s; kept.push(s.toUpperCase()); } } },
    recurse: { description: "Recurses", input, run: () => { const deep = (n: number): number => deep(n + 1) + 1; return deep(0); } },
    output: { description: "A long result", input, run: ({ length }: any) => "x".repeat(length) },
    length: { description: "How long the input is", input, run: ({ text }: any) => text.length },
    sleep: { description: "Waits", input, run: async ({ ms }: any, env: any) => { await env.clock.sleep(ms); return "awake"; } },
    stuck: { description: "Waits for what nothing settles", input, run: () => new Promise(() => {}) },
    handles: {
      description: "Keeps handles",
      input,
      run: async ({ count }: any, env: any) => {
        for (let i = 0; i < count; i++) {
          const d = env.files.subdirectory("d");
          kept.push(d, d.list());
          await kept.at(-1);
        }
        return kept.length;
      },
    },
    pending: { description: "Waits for many", input, run: async ({ count, url }: any, env: any) => { await Promise.all(Array.from({ length: count }, () => env.net.fetch(url))); return "all"; } },
    timers: { description: "Many timers", input, run: async ({ count, ms }: any, env: any) => { await Promise.all(Array.from({ length: count }, () => env.clock.sleep(ms))); return "all"; } },
    log: { description: "Logs much", input, run: ({ lines }: any) => { for (let i = 0; i < lines; i++) console.log("x".repeat(1000)); return "logged"; } },
    blob: {
      description: "Makes blobs",
      input,
      run: async ({ count, bytes }: any, env: any) => {
        try {
          for (let i = 0; i < count; i++) kept.push(await env.store.createBlob(["x".repeat(bytes)]));
          return kept.length;
        } catch (error) {
          if (error instanceof CapabilityError) return { error: error.code };
          throw error;
        }
      },
    },
    reads: {
      description: "Reads again and again, and says what each reading did",
      input,
      run: async ({ count }: any, env: any) => {
        const results = [];
        for (let i = 0; i < count; i++) {
          try {
            results.push((await env.files.read("a.txt")).length);
          } catch (error) {
            if (!(error instanceof CapabilityError)) throw error;
            results.push(error.code);
          }
        }
        return results;
      },
    },
  },
});
