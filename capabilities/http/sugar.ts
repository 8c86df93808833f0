// The sugar of stile:capability/http.
import { orAbort } from "../../toolchain/prelude/abort";
import { wait } from "../../toolchain/prelude/bindings";
import { Blob, piece, takeHandle } from "../../toolchain/prelude/blob";
import { Body, type Content } from "../../toolchain/prelude/body";
import { ask, CapabilityError } from "../../toolchain/prelude/errors";
import { abortOf, Request, type RequestInit } from "../../toolchain/prelude/request";
import { Response, response } from "../../toolchain/prelude/response";
import { derive, type Raw } from "../../toolchain/prelude/session";

interface Rule {
  scheme?: string;
  host: string;
  port?: number;
  methods?: string[];
  path?: string;
  headers?: string[];
}

export default function http(client: Raw) {
  return {
    fetch: async (input: string | URL | Request, init?: RequestInit | null) => send(client, new Request(input, init)),
    narrow: (rules: (string | Rule)[]) => {
      const narrowed: Raw = ask(() => client.narrow([...rules].map(whole)));
      return derive("stile:capability/http", narrowed, http(narrowed));
    },
    rules: () => ask(() => client.rules()),
  };
}

function whole(rule: string | Rule) {
  const { host, scheme = "https", port, methods = ["GET", "HEAD"], path = "/**", headers = [] }: Rule =
    typeof rule === "string" ? { host: rule } : rule;
  return { scheme, host, port, methods: [...methods], path, headers: [...headers] };
}

async function send(client: Raw, request: Request): Promise<Response> {
  const signal = abortOf(request);
  signal?.throwIfAborted();
  const content = await outgoing(Body.taken(request, true));
  signal?.throwIfAborted();
  const exchange: Raw = ask(() =>
    client.start({
      method: request.method,
      url: request.url,
      headers: [...request.headers].map(([name, value]) => ({ name, value })),
      content,
      redirect: request.redirect,
      timeout: undefined,
    }),
  );
  await orAbort(wait(exchange.subscribe({ tag: "head" })), signal, () => exchange.drop());
  return response(exchange, signal);
}

/** Text is sent as text, a Blob on the host as its handle, and other bytes inline if they fit. */
async function outgoing(content: Content | undefined): Promise<{ tag: string; val?: unknown }> {
  if (!content) return { tag: "none" };
  const source = content.source ?? (await content.blob(""));
  if (typeof source === "string") return { tag: "text", val: source };
  const handle = source instanceof Blob ? takeHandle(source) : undefined;
  if (handle) return { tag: "blob", val: handle };
  const bytes = await content.bytes();
  if (bytes.length <= piece) return { tag: "bytes", val: bytes };
  throw new CapabilityError("too-large", `a body of ${bytes.length} bytes: at most ${piece}, or text, or a Blob of the host's, which a blob binding makes`);
}
