// CompressionStream and DecompressionStream. fflate compresses, because it is three times as fast as pako here. pako, which is zlib in
// JavaScript, decompresses, because fflate compares no checksums.
import { Deflate, Gzip, Zlib } from "fflate/esm/browser.js";
import { inflate, inflateInit2 } from "pako/lib/zlib/inflate.js";
import ZStream from "pako/lib/zlib/zstream.js";
import { view } from "../encoding";
import { install } from "../global";

type Bytes = Uint8Array<ArrayBuffer>;
type Output = TransformStreamDefaultController<Bytes>;

/** How many bytes of output come at once. */
const output = 65_536;

/** How many bytes are decompressed before the output has to be read. They become a thousand times as many at most. */
const input = 1_024;

const NO_FLUSH = 0, FINISH = 4; // of zlib
const OK = 0, STREAM_END = 1, BUF_ERROR = -5;

function one<T>(name: string, formats: Record<string, T>, format: string): T {
  format = `${format}`;
  if (!Object.hasOwn(formats, format)) throw new TypeError(`${name}: the format ${JSON.stringify(format.slice(0, 50))} is none of deflate, deflate-raw and gzip`);
  return formats[format]!;
}

class Codec {
  #readable: ReadableStream<Bytes>;
  #writable: WritableStream<ArrayBuffer | ArrayBufferView>;

  /** Chunks are cut into pieces of `size` bytes. */
  constructor(name: string, size: number, codec: Transformer<Bytes, Bytes>) {
    const pieces = new TransformStream<ArrayBuffer | ArrayBufferView, Bytes>({
      transform: (chunk, controller) => {
        if (!(chunk instanceof ArrayBuffer) && !ArrayBuffer.isView(chunk)) throw new TypeError(`${name}: chunks are bytes`);
        const bytes = view(chunk).slice();
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.subarray(at, at + size));
      },
    });
    this.#writable = pieces.writable;
    this.#readable = pieces.readable.pipeThrough(new TransformStream(codec));
  }
  get readable(): ReadableStream<Bytes> {
    return this.#readable;
  }
  get writable(): WritableStream<ArrayBuffer | ArrayBufferView> {
    return this.#writable;
  }
}

class CompressionStream extends Codec {
  constructor(format: string) {
    const make = one("CompressionStream", { "deflate": () => new Zlib(), "deflate-raw": () => new Deflate(), "gzip": () => new Gzip({ mtime: 0 }) }, format);
    const made = make();
    const push = (bytes: Bytes, last: boolean, to: Output) => {
      made.ondata = (bytes) => void (bytes.length && to.enqueue(bytes.slice()));
      made.push(bytes, last);
    };
    super("CompressionStream", output, { transform: (bytes, to) => push(bytes, false, to), flush: (to) => push(new Uint8Array(0), true, to) });
  }
  get [Symbol.toStringTag](): string {
    return "CompressionStream";
  }
}

class DecompressionStream extends Codec {
  constructor(format: string) {
    const name = "DecompressionStream";
    const wrong = (why: string) => new TypeError(`${name}: ${why}`);
    const strm = new ZStream();
    inflateInit2(strm, one(name, { "deflate": 15, "deflate-raw": -15, "gzip": 15 + 16 }, format)); // the bits of the window, by which zlib knows a format
    let ended = false;
    const work = (bytes: Bytes, flush: number, to: Output) => {
      strm.input = bytes;
      strm.next_in = 0;
      strm.avail_in = bytes.length;
      do {
        if (ended) throw wrong("there is more after the end");
        strm.output = new Uint8Array(output);
        strm.next_out = 0;
        strm.avail_out = output;
        const status = inflate(strm, flush);
        if (status !== OK && status !== STREAM_END && status !== BUF_ERROR) throw wrong(strm.msg || "the data is not of this format");
        ended = status === STREAM_END;
        if (strm.next_out) to.enqueue(strm.output.slice(0, strm.next_out));
      } while (strm.avail_in > 0 || (!ended && strm.avail_out === 0));
    };
    super(name, input, {
      transform: (bytes, to) => work(bytes, NO_FLUSH, to),
      flush: (to) => {
        if (!ended) work(new Uint8Array(0), FINISH, to);
        if (!ended) throw wrong("the data ends early");
      },
    });
  }
  get [Symbol.toStringTag](): string {
    return "DecompressionStream";
  }
}

install({ CompressionStream, DecompressionStream });
