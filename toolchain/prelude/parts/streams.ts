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
    async pull(controller) {
      const bytes = await source.next();
      if (bytes) controller.enqueue(bytes);
      else {
        controller.close();
        controller.byobRequest?.respond(0);
      }
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

replaceStreams({
  is: (value) => value instanceof ReadableStream,
  make: make as any,
  used,
  content: content as any,
  tee: (stream: any) => stream.tee(),
  move: (stream: any) => stream.pipeThrough(new TransformStream()),
});

Object.defineProperty(Blob.prototype, "stream", {
  value: function stream(this: Blob) {
    const raw = blobHandle(this);
    let at = 0;
    return make({
      next: async () => {
        const size = Math.min(piece, this.size - at);
        if (!size) return undefined;
        const bytes: Bytes = raw ? hostBytes(raw, at, size) : blobBytes(this).slice(at, at + size);
        at += bytes.length;
        return bytes.length ? bytes : undefined;
      },
      cancel() {},
    });
  },
  writable: true, enumerable: true, configurable: true,
});

/** The members of a stream that is made of a TransformStream. */
abstract class Pair<I, O> {
  #pair: TransformStream<I, O>;
  constructor(pair: TransformStream<I, O>) {
    this.#pair = pair;
  }
  get readable(): ReadableStream<O> {
    return this.#pair.readable;
  }
  get writable(): WritableStream<I> {
    return this.#pair.writable;
  }
}

class TextDecoderStream extends Pair<ArrayBuffer | ArrayBufferView, string> {
  #decoder: TextDecoder;
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }) {
    const decoder = new TextDecoder(label, options);
    const put = (controller: { enqueue(text: string): void }, bytes?: ArrayBuffer | ArrayBufferView) => {
      const text = bytes === undefined ? decoder.decode() : decoder.decode(bytes as ArrayBufferView<ArrayBuffer>, { stream: true });
      if (text) controller.enqueue(text);
    };
    super(new TransformStream({
      transform: (bytes: ArrayBuffer | ArrayBufferView, controller) => {
        if (!(bytes instanceof ArrayBuffer) && !ArrayBuffer.isView(bytes)) throw new TypeError("TextDecoderStream: chunks are bytes");
        put(controller, bytes);
      },
      flush: (controller) => put(controller),
    }));
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
  get [Symbol.toStringTag](): string {
    return "TextDecoderStream";
  }
}

class TextEncoderStream extends Pair<unknown, Bytes> {
  constructor() {
    const encoder = new TextEncoder();
    let high = ""; // the first half of a pair, which may go on in the next chunk
    super(new TransformStream({
      transform: (chunk: unknown, controller) => {
        let text = high + `${chunk}`;
        high = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : "";
        if (high) text = text.slice(0, -1);
        if (text) controller.enqueue(encoder.encode(text));
      },
      flush: (controller) => {
        if (high) controller.enqueue(encoder.encode("\ufffd"));
      },
    }));
  }
  get encoding(): string {
    return "utf-8";
  }
  get [Symbol.toStringTag](): string {
    return "TextEncoderStream";
  }
}

const { ByteLengthQueuingStrategy, CountQueuingStrategy, ReadableByteStreamController, ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController, ReadableStreamDefaultReader, WritableStreamDefaultController, WritableStreamDefaultWriter } = streams;
install({
  ByteLengthQueuingStrategy, CountQueuingStrategy, ReadableByteStreamController, ReadableStream, ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController,
  ReadableStreamDefaultReader, TextDecoderStream, TextEncoderStream, TransformStream, TransformStreamDefaultController, WritableStream, WritableStreamDefaultController, WritableStreamDefaultWriter,
});
