import { CapabilityError, extension } from "stile";

const input = { type: "object" } as const;

async function tried(what: () => unknown): Promise<unknown> {
  try {
    return (await what()) ?? "done";
  } catch (error) {
    if (error instanceof CapabilityError) return { error: error.code };
    throw error;
  }
}

// A component imports the functions that its code names.
const methods: Record<string, (d: any, ...args: any[]) => any> = {
  read: (d, ...args) => d.read(...args),
  readLines: (d, ...args) => d.readLines(...args),
  readBytes: async (d, ...args) => [...(await d.readBytes(...args))],
  readBlob: async (d, ...args) => (await d.readBlob(...args)).text(),
  digest: (d, ...args) => d.digest(...args),
  write: (d, ...args) => d.write(...args),
  writeBytes: (d, path, bytes) => d.write(path, new Uint8Array(bytes)),
  replace: (d, ...args) => d.replace(...args),
  append: (d, ...args) => d.append(...args),
  edit: (d, ...args) => d.edit(...args),
  list: async (d, ...args) => (await d.list(...args)).entries.map(({ name, kind, size }: any) => `${name} ${kind} ${size}`),
  find: async (d, ...args) => (await d.find(...args)).paths,
  grep: async (d, ...args) => (await d.grep(...args)).matches.map(({ path, line, text }: any) => `${path}:${line}:${text}`),
  stat: async (d, ...args) => {
    const { kind, size } = await d.stat(...args);
    return { kind, size: Number(size) };
  },
  diff: (d, ...args) => d.diff(...args),
  setMode: (d, ...args) => d.setMode(...args),
  makeLink: (d, ...args) => d.makeLink(...args),
  readLink: (d, ...args) => d.readLink(...args),
  makeDirectory: (d, ...args) => d.makeDirectory(...args),
  move: (d, ...args) => d.move(...args),
  copy: (d, ...args) => d.copy(...args),
  remove: (d, path, recursive) => d.remove(path, { recursive }),
};

/** A list of [method, ...arguments], made on one directory one after the other. Some methods derive the directory for what follows. */
async function each(env: any, { steps, binding = "files" }: any): Promise<unknown[]> {
  let directory = env[binding];
  const results = [];
  for (const [method, ...args] of steps) {
    results.push(
      await tried(() => {
        switch (method) {
          case "subdirectory":
            directory = directory.subdirectory(...args);
            return method;
          case "readOnly":
            directory = directory.readOnly();
            return method;
        }
        return methods[method](directory, ...args);
      }),
    );
  }
  return results;
}

export default extension({
  tools: {
    each: { description: "Make steps, and say what each did", input, run: (i: any, env) => each(env, i) },
    go: { description: "Make one step, and fail with what it fails with", input, run: ({ step: [method, ...args] }: any, env: any) => methods[method](env.files, ...args) },
  },
});
