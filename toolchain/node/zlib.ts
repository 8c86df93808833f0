// node:zlib, on the host. Brotli and zstd are not there.
import { Transform } from "@jspm/core/nodelibs/browser/stream.js";

const { Buffer } = globalThis as any;

type Data = string | ArrayBuffer | ArrayBufferView;
type Callback = (error: unknown, result?: any) => void;
type Flush = "none" | "sync" | "finish";
interface Options {
  level?: number;
  finishFlush?: number;
  maxOutputLength?: number;
  dictionary?: unknown;
  [option: string]: unknown;
}
interface Codec {
  step(input: Uint8Array, flush?: Flush): { bytes: Uint8Array; more: boolean; rest: number | undefined };
  close(): void;
}

export const constants = Object.freeze({
  Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5,
  Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6,
  Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1,
  Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2, Z_RLE: 3, Z_FIXED: 4, Z_DEFAULT_STRATEGY: 0,
  ZLIB_VERNUM: 4880, DEFLATE: 1, INFLATE: 2, GZIP: 3, GUNZIP: 4, DEFLATERAW: 5, INFLATERAW: 6, UNZIP: 7,
  Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15, Z_DEFAULT_WINDOWBITS: 15, Z_MIN_CHUNK: 64, Z_MAX_CHUNK: Infinity, Z_DEFAULT_CHUNK: 16384,
  Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8, Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1,
});
export const codes = Object.freeze({
  Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6,
  "0": "Z_OK", "1": "Z_STREAM_END", "2": "Z_NEED_DICT", "-1": "Z_ERRNO", "-2": "Z_STREAM_ERROR", "-3": "Z_DATA_ERROR", "-4": "Z_MEM_ERROR", "-5": "Z_BUF_ERROR", "-6": "Z_VERSION_ERROR",
});

const piece = 262_144; // bytes that the host takes at once
const compressed: Record<string, string> = { Gunzip: "gzip", Inflate: "deflate", InflateRaw: "deflate-raw", Unzip: "" };
const formats: Record<string, string> = { Gzip: "gzip", Deflate: "deflate", DeflateRaw: "deflate-raw" };

function failure(code: "Z_DATA_ERROR" | "Z_BUF_ERROR", message: string): Error {
  return Object.assign(new Error(message), { code, errno: codes[code] });
}
function range(name: string, value: unknown, least: number, most: number): number {
  if (typeof value !== "number") throw Object.assign(new TypeError(`The "options.${name}" property must be of type number. Received ${typeof value}`), { code: "ERR_INVALID_ARG_TYPE" });
  if (!(value >= least && value <= most)) throw Object.assign(new RangeError(`The value of "options.${name}" is out of range. It must be >= ${least} and <= ${most}. Received ${value}`), { code: "ERR_OUT_OF_RANGE" });
  return value;
}
function view(data: Data): Uint8Array {
  if (typeof data === "string") return Buffer.from(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw Object.assign(new TypeError(`The "buffer" argument must be of type string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer. Received ${data === null ? "null" : `type ${typeof data}`}`), { code: "ERR_INVALID_ARG_TYPE" });
}

/** Compresses or decompresses, in steps that return output. */
class Work {
  #kind: string;
  #level: number;
  #partial: boolean; // input may end early
  #most: number;
  #codec: Codec | undefined;
  #begun = false;
  #ended = false; // the data of one member
  #first = new Uint8Array(0); // bytes that do not tell the format yet
  #size = 0;

  constructor(kind: string, options: Options = {}) {
    const { level, finishFlush, maxOutputLength, dictionary } = options ?? {};
    if (dictionary !== undefined) throw new TypeError("zlib: there are no dictionaries here; the npm packages fflate and pako have them");
    this.#kind = kind;
    this.#level = level === undefined ? -1 : range("level", level, -1, 9);
    this.#partial = finishFlush !== undefined && range("finishFlush", finishFlush, 0, 5) !== constants.Z_FINISH;
    this.#most = maxOutputLength === undefined ? Infinity : range("maxOutputLength", maxOutputLength, 1, 2 ** 53);
  }
  *steps(data: Uint8Array, flush: Flush): Generator<Uint8Array> {
    try {
      yield* formats[this.#kind] ? this.#compress(data, flush) : this.#decompress(data, flush);
      if (flush === "finish") this.close();
    } catch (error: any) {
      this.close();
      throw error?.code === "invalid" ? failure("Z_DATA_ERROR", `${error.payload}`) : error;
    }
  }
  close(): void {
    this.#codec?.close();
    this.#codec = undefined;
    this.#ended = true;
  }
  #open(format: string): Codec {
    this.#begun = true;
    return (globalThis as any)[Symbol.for("stileCodec")](!formats[this.#kind], format, this.#level < 0 ? 6 : this.#level);
  }
  #made(bytes: Uint8Array): Uint8Array {
    if ((this.#size += bytes.length) > this.#most)
      throw Object.assign(new RangeError(`Cannot create a Buffer larger than ${this.#most} bytes`), { code: "ERR_BUFFER_TOO_LARGE" });
    return bytes;
  }
  *#compress(data: Uint8Array, flush: Flush): Generator<Uint8Array> {
    if (this.#ended) return;
    const codec = (this.#codec ??= this.#open(formats[this.#kind]!));
    do {
      let input = data.subarray(0, piece);
      data = data.subarray(input.length);
      for (let more = true; more; input = input.subarray(input.length)) {
        const step = codec.step(input, data.length ? "none" : flush);
        more = step.more;
        if (step.bytes.length) yield this.#made(step.bytes);
      }
    } while (data.length);
  }
  *#decompress(data: Uint8Array, flush: Flush): Generator<Uint8Array> {
    if (this.#kind === "Unzip" && !this.#begun) {
      if (this.#first.length) data = Buffer.concat([this.#first, data]);
      this.#first = data[0] === 0x1f && data.length === 1 && flush !== "finish" ? data : new Uint8Array(0);
      if (this.#first.length) return;
      if (data.length) this.#kind = data[0] === 0x1f && (data.length < 2 || data[1] === 0x8b) ? "Gunzip" : "Inflate";
    }
    while (data.length) {
      if (this.#ended) {
        if (this.#kind !== "Gunzip" || data[0] === 0) return; // what follows does not count
        this.#ended = false;
      }
      const codec = (this.#codec ??= this.#open(compressed[this.#kind]!));
      const whole = data.subarray(0, piece);
      let input = whole;
      data = data.subarray(whole.length);
      for (let more = true; more; input = input.subarray(input.length)) {
        const step = codec.step(input);
        more = step.more;
        if (step.bytes.length) yield this.#made(step.bytes);
        if (step.rest === undefined) continue;
        this.close();
        if (step.rest) data = data.length ? Buffer.concat([whole.subarray(whole.length - step.rest), data]) : whole.subarray(whole.length - step.rest);
      }
    }
    if (flush === "finish" && !this.#ended && !this.#partial) throw failure("Z_BUF_ERROR", "unexpected end of file");
  }
}

function sync(kind: string, data: Data, options?: Options): any {
  const all: Uint8Array[] = [...new Work(kind, options).steps(view(data), "finish")];
  return all.length === 1 ? Buffer.from(all[0]!.buffer, all[0]!.byteOffset, all[0]!.byteLength) : Buffer.concat(all);
}

function later(kind: string, data: Data, options: Options | Callback | undefined, callback?: Callback): void {
  const done = typeof options === "function" ? options : callback;
  if (typeof done !== "function") throw Object.assign(new TypeError('The "callback" argument must be of type function. Received undefined'), { code: "ERR_INVALID_ARG_TYPE" });
  const bytes = view(data).slice(), work = new Work(kind, typeof options === "function" ? undefined : options);
  queueMicrotask(() => {
    let result: any;
    try {
      result = Buffer.concat([...work.steps(bytes, "finish")]);
    } catch (error) {
      done(error);
      return;
    }
    done(null, result);
  });
}

/** A stream that makes no more than is read. */
class Zlib extends Transform {
  bytesWritten = 0;
  #work: Work;
  #resume: (() => void) | undefined;

  constructor(kind: string, options: Options = {}) {
    const work = new Work(kind, options);
    super({ ...options, objectMode: false, writableObjectMode: false, readableObjectMode: false });
    this.#work = work;
  }
  _transform(chunk: Uint8Array, _: string, done: Callback): void {
    this.bytesWritten += chunk.length;
    this.#run(this.#work.steps(chunk, "none"), done);
  }
  _flush(done: Callback): void {
    this.#run(this.#work.steps(new Uint8Array(0), "finish"), done);
  }
  _read(size: number): void {
    const resume = this.#resume;
    this.#resume = undefined;
    if (resume) resume();
    else super._read(size);
  }
  _destroy(error: unknown, done: Callback): void {
    this.#work.close();
    super._destroy(error, done);
  }
  flush(kind?: number | Callback, done?: Callback): void {
    const callback = typeof kind === "function" ? kind : done;
    if (this.writableEnded) return void (callback && queueMicrotask(() => callback(null)));
    const marker = Buffer.alloc(0);
    this.write(marker, () => this.#run(this.#work.steps(marker, "sync"), (error) => (error ? this.destroy(error) : callback?.(null))));
  }
  close(callback?: Callback): void {
    if (callback) this.once("close", callback);
    this.destroy();
  }
  #run(steps: Generator<Uint8Array>, done: Callback): void {
    try {
      for (;;) {
        const { done: ended, value } = steps.next();
        if (ended) break;
        if (!this.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength))) {
          this.#resume = () => this.#run(steps, done);
          return;
        }
      }
    } catch (error) {
      done(error);
      return;
    }
    done(null);
  }
}

export class Deflate extends Zlib { constructor(options?: Options) { super("Deflate", options); } }
export class Inflate extends Zlib { constructor(options?: Options) { super("Inflate", options); } }
export class Gzip extends Zlib { constructor(options?: Options) { super("Gzip", options); } }
export class Gunzip extends Zlib { constructor(options?: Options) { super("Gunzip", options); } }
export class DeflateRaw extends Zlib { constructor(options?: Options) { super("DeflateRaw", options); } }
export class InflateRaw extends Zlib { constructor(options?: Options) { super("InflateRaw", options); } }
export class Unzip extends Zlib { constructor(options?: Options) { super("Unzip", options); } }

export const createDeflate = (options?: Options) => new Deflate(options);
export const createInflate = (options?: Options) => new Inflate(options);
export const createGzip = (options?: Options) => new Gzip(options);
export const createGunzip = (options?: Options) => new Gunzip(options);
export const createDeflateRaw = (options?: Options) => new DeflateRaw(options);
export const createInflateRaw = (options?: Options) => new InflateRaw(options);
export const createUnzip = (options?: Options) => new Unzip(options);

export const deflateSync = (data: Data, options?: Options) => sync("Deflate", data, options);
export const inflateSync = (data: Data, options?: Options) => sync("Inflate", data, options);
export const gzipSync = (data: Data, options?: Options) => sync("Gzip", data, options);
export const gunzipSync = (data: Data, options?: Options) => sync("Gunzip", data, options);
export const deflateRawSync = (data: Data, options?: Options) => sync("DeflateRaw", data, options);
export const inflateRawSync = (data: Data, options?: Options) => sync("InflateRaw", data, options);
export const unzipSync = (data: Data, options?: Options) => sync("Unzip", data, options);

export const deflate = (data: Data, options: Options | Callback, done?: Callback) => later("Deflate", data, options, done);
export const inflate = (data: Data, options: Options | Callback, done?: Callback) => later("Inflate", data, options, done);
export const gzip = (data: Data, options: Options | Callback, done?: Callback) => later("Gzip", data, options, done);
export const gunzip = (data: Data, options: Options | Callback, done?: Callback) => later("Gunzip", data, options, done);
export const deflateRaw = (data: Data, options: Options | Callback, done?: Callback) => later("DeflateRaw", data, options, done);
export const inflateRaw = (data: Data, options: Options | Callback, done?: Callback) => later("InflateRaw", data, options, done);
export const unzip = (data: Data, options: Options | Callback, done?: Callback) => later("Unzip", data, options, done);

let table: Uint32Array | undefined;

export function crc32(data: Data, value = 0): number {
  if (!table) {
    table = new Uint32Array(256);
    for (let n = 0; n < 256; n++) {
      let sum = n;
      for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? 0xedb88320 ^ (sum >>> 1) : sum >>> 1;
      table[n] = sum;
    }
  }
  const bytes = view(data);
  let sum = ~value;
  for (let at = 0; at < bytes.length; at++) sum = table[(sum ^ bytes[at]!) & 255]! ^ (sum >>> 8);
  return ~sum >>> 0;
}

function missing(name: string, instead: string): () => never {
  return () => {
    throw Object.assign(new Error(`zlib.${name}: this is not there; ${instead}`), { code: "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM" });
  };
}
const brotli = "use gzip, or to read brotli the npm package brotli; fetch decodes responses that came with it";
const zstd = "use gzip, or to read zstd the npm package fzstd; fetch decodes responses that came with it";
export const brotliCompress = missing("brotliCompress", brotli), brotliCompressSync = missing("brotliCompressSync", brotli), createBrotliCompress = missing("createBrotliCompress", brotli);
export const brotliDecompress = missing("brotliDecompress", brotli), brotliDecompressSync = missing("brotliDecompressSync", brotli), createBrotliDecompress = missing("createBrotliDecompress", brotli);
export const zstdCompress = missing("zstdCompress", zstd), zstdCompressSync = missing("zstdCompressSync", zstd), createZstdCompress = missing("createZstdCompress", zstd);
export const zstdDecompress = missing("zstdDecompress", zstd), zstdDecompressSync = missing("zstdDecompressSync", zstd), createZstdDecompress = missing("createZstdDecompress", zstd);

export default {
  constants, codes, crc32, Deflate, Inflate, Gzip, Gunzip, DeflateRaw, InflateRaw, Unzip, createDeflate, createInflate, createGzip, createGunzip, createDeflateRaw, createInflateRaw, createUnzip,
  deflate, inflate, gzip, gunzip, deflateRaw, inflateRaw, unzip, deflateSync, inflateSync, gzipSync, gunzipSync, deflateRawSync, inflateRawSync, unzipSync,
  brotliCompress, brotliCompressSync, createBrotliCompress, brotliDecompress, brotliDecompressSync, createBrotliDecompress,
  zstdCompress, zstdCompressSync, createZstdCompress, zstdDecompress, zstdDecompressSync, createZstdDecompress,
};
