// The Streams standard in full, on web-streams-polyfill, which is made from the standard's reference implementation. Its ReadableStream takes
// the place of the prelude's own, which can only be iterated.
import * as streams from "web-streams-polyfill";
import { Blob, blobBytes, blobHandle, hostBytes, piece } from "../blob";
import type { Content } from "../body";
import { decode } from "../encoding";
import { install } from "../global";
import { type Source, replaceStreams } from "../stream";

const { ReadableStream, TransformStream, TransformStreamDefaultController, WritableStream } = streams;
type Bytes = Uint8Array<ArrayBuffer>;

// Only what is read is asked for.
const lazy = { highWaterMark: 0 };

function make(source: Source): ReadableStream<Bytes> {
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const put = (bytes: Bytes | undefined) => {
        if (bytes) return controller.enqueue(bytes);
        controller.close();
        controller.byobRequest?.respond(0);
      };
      const next = source.next();
      // What is there needs no promise, which Object.prototype.then could change.
      return next instanceof Promise ? next.then(put) : put(next);
    },
    cancel: () => source.cancel(),
  }, lazy);
}

async function collect(reader: ReadableStreamDefaultReader<Bytes>): Promise<Bytes> {
  const pieces: Bytes[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (!((value as unknown) instanceof Uint8Array)) {
      const wrong = new TypeError("the stream of a body has chunks other than Uint8Array");
      await reader.cancel(wrong).catch(() => {});
      throw wrong;
    }
    pieces.push(value);
    size += value.length;
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const bytes of pieces) {
    all.set(bytes, at);
    at += bytes.length;
  }
  return all;
}

const used = (stream: any): boolean => stream._disturbed;

/** The content of a body that an author gave as a stream. */
function content(stream: ReadableStream): Content {
  if (stream.locked || used(stream)) throw new TypeError("the stream is locked, or was read already");
  let reader: ReadableStreamDefaultReader<any> | undefined;
  let all: Promise<Bytes> | undefined;
  const lock = () => void (reader ??= stream.getReader());
  const bytes = () => (lock(), (all ??= collect(reader!)));
  return { source: undefined, type: undefined, stream: stream as any, lock, text: async () => decode(await bytes()), bytes, blob: async (type) => new Blob([await bytes()], { type }) };
}

/** Two streams with what is left of one, in the second as clones: who changes what one yields does not change the other. */
function tee(stream: any): [any, any] {
  const [kept, other] = stream.tee() as ReadableStream[];
  const reader = other!.getReader();
  const copied = new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(structuredClone(value));
    },
    cancel: (reason) => reader.cancel(reason),
  }, lazy);
  return [kept, copied];
}

replaceStreams({
  is: (value) => value instanceof ReadableStream,
  make: make as any,
  used,
  content: content as any,
  tee,
  move: (stream: any) => stream.pipeThrough(new TransformStream()),
});

// A method of an object, as those of a class, cannot be called with new.
const { stream } = {
  stream(this: Blob) {
    const raw = blobHandle(this);
    let at = 0;
    return make({
      next: () => {
        const size = Math.min(piece, this.size - at);
        if (!size) return undefined;
        const bytes: Bytes = raw ? hostBytes(raw, at, size) : blobBytes(this).slice(at, at + size);
        at += bytes.length;
        return bytes.length ? bytes : undefined;
      },
      cancel() {},
    });
  },
};
Object.defineProperty(Blob.prototype, "stream", { value: stream, writable: true, enumerable: true, configurable: true });

// The library's iterators inherit from an object of its own.
const iterators = Object.getPrototypeOf(new ReadableStream().values());
Object.setPrototypeOf(iterators, Object.getPrototypeOf(Object.getPrototypeOf((async function* () {}).prototype)));

class TextDecoderStream {
  #decoder: TextDecoder;
  #pair: TransformStream<ArrayBuffer | ArrayBufferView, string>;
  constructor(label = "utf-8", options: { fatal?: boolean; ignoreBOM?: boolean } | undefined = undefined) {
    const decoder = new TextDecoder(label, options);
    const put = (controller: { enqueue(text: string): void }, bytes?: ArrayBuffer | ArrayBufferView) => {
      const text = bytes === undefined ? decoder.decode() : decoder.decode(bytes as ArrayBufferView<ArrayBuffer>, { stream: true });
      if (text) controller.enqueue(text);
    };
    this.#pair = new TransformStream({
      transform: (bytes: ArrayBuffer | ArrayBufferView, controller) => {
        if (!(bytes instanceof ArrayBuffer) && !ArrayBuffer.isView(bytes)) throw new TypeError("TextDecoderStream: chunks are bytes");
        put(controller, bytes);
      },
      flush: (controller) => put(controller),
    });
    this.#decoder = decoder;
  }
  get encoding(): string {
    return this.#decoder.encoding;
  }
  get fatal(): boolean {
    return this.#decoder.fatal;
  }
  get ignoreBOM(): boolean {
    return this.#decoder.ignoreBOM;
  }
  get readable(): ReadableStream<string> {
    return this.#pair.readable;
  }
  get writable(): WritableStream<ArrayBuffer | ArrayBufferView> {
    return this.#pair.writable;
  }
}

class TextEncoderStream {
  #pair: TransformStream<unknown, Bytes>;
  constructor() {
    const encoder = new TextEncoder();
    let high = ""; // the first half of a pair, which may go on in the next chunk
    this.#pair = new TransformStream({
      transform: (chunk: unknown, controller) => {
        let text = high + `${chunk}`;
        high = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : "";
        if (high) text = text.slice(0, -1);
        if (text) controller.enqueue(encoder.encode(text));
      },
      flush: (controller) => {
        if (high) controller.enqueue(encoder.encode("\ufffd"));
      },
    });
  }
  get encoding(): string {
    void this.#pair; // for anything else, it fails
    return "utf-8";
  }
  get readable(): ReadableStream<Bytes> {
    return this.#pair.readable;
  }
  get writable(): WritableStream<unknown> {
    return this.#pair.writable;
  }
}

const { ByteLengthQueuingStrategy, CountQueuingStrategy, ReadableByteStreamController, ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController, ReadableStreamDefaultReader, WritableStreamDefaultController, WritableStreamDefaultWriter } = streams;
install({
  ByteLengthQueuingStrategy, CountQueuingStrategy, ReadableByteStreamController, ReadableStream, ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController,
  ReadableStreamDefaultReader, TextDecoderStream, TextEncoderStream, TransformStream, TransformStreamDefaultController, WritableStream, WritableStreamDefaultController, WritableStreamDefaultWriter,
});
