// The sugar of stile:capability/http.
import { type AbortSignal, orAbort } from "../../toolchain/prelude/abort";
import { wait } from "../../toolchain/prelude/bindings";
import { Blob, blobBytes, type Part, piece, takeHandle } from "../../toolchain/prelude/blob";
import { Body, type Content } from "../../toolchain/prelude/body";
import { ask, CapabilityError } from "../../toolchain/prelude/errors";
import { abortOf, Request, type RequestInit } from "../../toolchain/prelude/request";
import { Response, response } from "../../toolchain/prelude/response";
import { ambient, derive, type Raw } from "../../toolchain/prelude/session";
import type { ReadableStream } from "../../toolchain/prelude/stream";

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
  const content = await outgoing(Body.taken(request, true), signal);
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

/** Text is sent as text, a Blob on the host as its handle, and other bytes inline if they fit, or else from the blob binding. */
async function outgoing(content: Content | undefined, signal: AbortSignal | undefined): Promise<{ tag: string; val?: unknown }> {
  if (!content) return { tag: "none" };
  if (content.stream) return uploaded(chunks(content.stream, signal), signal);
  const source = content.source ?? (await content.blob(""));
  if (typeof source === "string") return { tag: "text", val: source };
  const handle = source instanceof Blob ? takeHandle(source) : undefined;
  if (handle) return { tag: "blob", val: handle };
  return uploaded([await content.bytes()], signal);
}

/** The chunks of a stream. If the signal aborts, or the caller stops early, the stream is cancelled, even if it never answers. */
async function* chunks(stream: ReadableStream, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader() as { read(): Promise<{ value?: Uint8Array; done: boolean }>; cancel(reason: unknown): Promise<void> };
  const cancel = () => void reader.cancel(signal?.reason).catch(() => {});
  try {
    for (;;) {
      const { value, done } = await orAbort(reader.read(), signal, cancel);
      if (done) return;
      yield value!;
    }
  } finally {
    cancel();
  }
}

/** Bytes as they come. No more than a piece of them is kept here: the others go to the host, to the blob binding. */
async function uploaded(bytes: Iterable<Uint8Array> | AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<{ tag: string; val: unknown }> {
  let store: Raw | undefined;
  let writer: Raw | undefined;
  let kept: Uint8Array[] = [];
  let size = 0;
  const put = () => {
    if (!writer) {
      store = ambient("blob");
      if (!store?.create) throw new CapabilityError("too-large", `a body of more than ${piece} bytes goes through a blob binding: add "store": { "blob": true } to "bindings" of the manifest, or --bind store=blob`);
      writer = ask(() => store!.create("")) as Raw;
    }
    ask(() => writer!.append(blobBytes(new Blob(kept as Part[]))));
    kept = [];
    size = 0;
  };
  try {
    for await (const chunk of bytes) {
      signal?.throwIfAborted();
      if (!((chunk as unknown) instanceof Uint8Array)) throw new TypeError("the stream of a body has chunks other than Uint8Array");
      for (let at = 0; at < chunk.length; at += piece) {
        const part = chunk.subarray(at, at + piece);
        if (size + part.length > piece) put();
        kept.push(part);
        size += part.length;
      }
    }
    if (!writer) return { tag: "bytes", val: blobBytes(new Blob(kept as Part[])) };
    put();
    const whole = writer;
    writer = undefined;
    return { tag: "blob", val: ask(() => store!.finish(whole)) };
  } finally {
    writer?.drop();
  }
}
