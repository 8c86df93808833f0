import { CapabilityError, extension } from "stile";

const input = { type: "object" } as const;

async function tried(what: () => unknown): Promise<unknown> {
  try {
    return (await what()) ?? null;
  } catch (error) {
    if (error instanceof CapabilityError) return { error: error.code };
    throw error;
  }
}

// A component imports the functions that its code names.
const methods: Record<string, (bucket: any, ...args: any[]) => any> = {
  get: (b, ...args) => b.get(...args),
  set: (b, ...args) => b.set(...args),
  delete: (b, ...args) => b.delete(...args),
  increment: (b, ...args) => b.increment(...args),
  compareAndSet: (b, key, expected, value) => b.compareAndSet(key, expected ?? undefined, value ?? undefined),
  list: async (b, ...args) => (await b.list(...args)).entries.map(({ key, value }: any) => `${key}=${value}`),
};

export default extension({
  tools: {
    identity: { description: "Returns its input's v", input, run: ({ v }: any) => v },
    code_units: { description: "The code units of a text", input, run: ({ text }: any) => [...Array(text.length).keys()].map((i) => text.charCodeAt(i)) },
    make: { description: "Text from code units", input, run: ({ units }: any) => String.fromCharCode(...units) },
    unusual: {
      description: "Values that JSON lacks",
      input,
      run: ({ which }: any): unknown =>
        ({ undefined: undefined, hole: { a: undefined, b: 1 }, nan: { a: [NaN] }, infinity: Infinity, map: new Map(), bytes: new Uint8Array(2), function: () => 1, bigint: 1n, date: new Date(0), negative: -0 })[which as "nan"],
    },
    steps: {
      description: "Operations on a bucket, and what each did",
      input,
      run: async ({ steps, binding = "kv" }: any, env: any) => {
        const results = [];
        for (const [method, ...args] of steps) results.push(await tried(() => methods[method](env[binding], ...args)));
        return results;
      },
    },
    all_bytes: {
      description: "Every byte through a file and back",
      input,
      run: async (_: any, { files }: any) => {
        const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
        await files.write("bytes.bin", bytes);
        const back = await files.readBytes("bytes.bin");
        return back.length === 256 && back.every((b: number, i: number) => b === i);
      },
    },
    many_bytes: {
      description: "More bytes than one operation takes",
      input,
      run: async ({ length }: any, { files }: any) => {
        const bytes = Uint8Array.from({ length }, (_, i) => i * 7);
        await files.write("many.bin", bytes);
        const back = await files.readBytes("many.bin");
        return [back.length, back.every((b: number, i: number) => b === ((i * 7) & 255))];
      },
    },
    blobs: {
      description: "A blob of parts",
      input,
      run: async (_: any, { store }: any) => {
        const blob = await store.createBlob(["héllo ", new Uint8Array([119, 111, 114, 108, 100]), new Blob(["!"])], { type: "text/x-test" });
        return [blob.size, blob.type, await blob.text(), [...new Uint8Array(await blob.slice(1, 3).arrayBuffer())]];
      },
    },
    contents: {
      description: "Each case of an http content",
      input,
      run: async ({ url }: any, { net, store }: any) => {
        const sent = async (body: any) => (await (await net.fetch(url, { method: "POST", body })).json()).body;
        return [await sent(undefined), await sent("text é"), await sent(new Uint8Array([98, 121, 116, 101, 115])), await sent(await store.createBlob(["blob"], {}))];
      },
    },
    random: {
      description: "The kinds of what random returns",
      input,
      run: (_: any, { random }: any) => {
        const n = random.u64();
        return [typeof n, n >= 0n && n < 1n << 64n, random.bytes(0).length, random.bytes(65536).length];
      },
    },
  },
});
