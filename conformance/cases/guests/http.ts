import { CapabilityError, extension } from "stile";

const input = { type: "object" } as const;

/** What an operation did: its result, or the code of its error. */
async function tried(what: () => Promise<unknown>): Promise<unknown> {
  try {
    return await what();
  } catch (error) {
    if (error instanceof CapabilityError) return { error: error.code };
    throw error;
  }
}

async function get(env: any, { binding = "net", url, narrow, ...init }: any): Promise<unknown> {
  let net = env[binding];
  for (const rules of narrow ?? []) net = net.narrow(rules);
  const response = await net.fetch(url, init);
  return { status: response.status, redirected: response.redirected, body: await response.text() };
}

export default extension({
  tools: {
    get: { description: "Fetch, and say what happened", input, run: (i: any, env) => tried(() => get(env, i)) },
    go: { description: "Fetch, and fail with what it fails with", input, run: (i: any, env) => get(env, i) },
    each: {
      description: "Fetch several, one after the other",
      input,
      run: async ({ urls, ...rest }: any, env) => {
        const all = [];
        for (const url of urls) all.push(await tried(() => get(env, { url, ...rest })));
        return all;
      },
    },
    together: {
      description: "Fetch several at once",
      input,
      run: ({ urls, ...rest }: any, env) => Promise.all(urls.map((url: string) => tried(() => get(env, { url, ...rest })))),
    },
    echo: {
      description: "Fetch JSON",
      input,
      run: (i: any, env) => tried(async () => JSON.parse(((await get(env, i)) as any).body)),
    },
    head: {
      description: "The status and some headers",
      input,
      run: ({ url, names, ...init }: any, env: any) =>
        tried(async () => {
          const response = await env.net.fetch(url, init);
          return { status: response.status, headers: names.map((name: string) => response.headers.get(name)) };
        }),
    },
    size: {
      description: "The bytes of a body, read in pieces or at once",
      input,
      run: ({ url, pieces }: any, env: any) =>
        tried(async () => {
          const response = await env.net.fetch(url);
          if (!pieces) return (await response.arrayBuffer()).byteLength;
          let size = 0;
          for await (const piece of response.body) size += piece.length;
          return size;
        }),
    },
    rules: { description: "The rules of a binding", input, run: (_: any, env: any) => env.net.rules() },
    names: { description: "The names in the env", input, run: (_: any, env: any) => Object.keys(env).sort() },
    global: {
      description: "The global fetch",
      input,
      run: async ({ url }: any) => {
        try {
          return (await fetch(url)).status;
        } catch (error: any) {
          return error.name;
        }
      },
    },
    forward: {
      description: "Send the body of one response as another request",
      input,
      run: ({ from, to }: any, env: any) =>
        tried(async () => {
          const blob = await (await env.net.fetch(from)).blob();
          return (await env.net.fetch(to, { method: "POST", body: blob })).json();
        }),
    },
  },
});
