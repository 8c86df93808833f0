// CompressionStream and DecompressionStream, on the host.
import { Codec, compress, decompress, type Open, piece } from "../codec";
import { view } from "../encoding";
import { CapabilityError } from "../errors";
import { install } from "../global";

type Bytes = Uint8Array<ArrayBuffer>;

/** How many bytes are collected before they are compressed. Streams that are shorter open no compressor until they end. */
const batch = 65_536;

function known(name: string, format: string): string {
  format = `${format}`;
  if (format !== "gzip" && format !== "deflate" && format !== "deflate-raw") throw new TypeError(`${name}: the format ${JSON.stringify(format.slice(0, 50))} is none of deflate, deflate-raw and gzip`);
  return format;
}

/** A codec between two streams. It works only while somebody reads, one piece at a time. */
abstract class Pair {
  readonly #name: string;
  readonly #codec: Codec;
  #readable: ReadableStream<Bytes>;
  #writable: WritableStream<ArrayBuffer | ArrayBufferView>;
  #output!: ReadableStreamDefaultController<Bytes>;
  #input!: WritableStreamDefaultController;
  #demand: (() => void) | undefined; // ends a pull
  #wanted: (() => void) | undefined; // tells a write of one
  #over: { reason: unknown } | undefined;

  constructor(name: string, open: Open) {
    this.#name = name;
    this.#codec = new Codec(open, name);
    this.#readable = new ReadableStream<Bytes>({
      start: (controller) => void (this.#output = controller),
      pull: () => new Promise<void>((resolve) => {
        this.#demand = resolve;
        this.#wanted?.();
      }),
      cancel: (reason) => {
        this.#end(reason);
        this.#input.error(reason);
      },
    }, { highWaterMark: 0 });
    this.#writable = new WritableStream<ArrayBuffer | ArrayBufferView>({
      start: (controller) => void (this.#input = controller),
      write: (chunk) => this.#try(() => {
        if (!(chunk instanceof ArrayBuffer) && !ArrayBuffer.isView(chunk)) throw new TypeError(`${name}: chunks are bytes`);
        return this.take(view(chunk));
      }),
      close: () => this.#try(async () => {
        await this.finish();
        this.#end(undefined);
        this.#output.close();
      }),
      abort: (reason) => {
        this.#end(reason);
        this.#output.error(reason);
      },
    });
  }
  get readable(): ReadableStream<Bytes> {
    return this.#readable;
  }
  get writable(): WritableStream<ArrayBuffer | ArrayBufferView> {
    return this.#writable;
  }

  protected abstract take(bytes: Bytes): Promise<void>;
  protected abstract finish(): Promise<void>;

  protected wrong(why: string): TypeError {
    return new TypeError(`${this.#name}: ${why}`);
  }
  /** Waits until somebody reads. */
  protected async reader(): Promise<void> {
    while (!this.#demand && !this.#over) await new Promise<void>((resolve) => (this.#wanted = resolve));
    if (this.#over) throw this.#over.reason;
  }
  /** Makes a step, and returns whether there is more output, and what is left of the input at the end of the data. */
  protected step(input: Uint8Array, flush?: "finish"): { more: boolean; rest: number | undefined } {
    try {
      const { bytes, more, rest } = this.#codec.step(input, flush);
      if (bytes.length) {
        this.#output.enqueue(bytes);
        this.#demand?.();
        this.#demand = undefined;
      }
      return { more, rest };
    } catch (error) {
      throw error instanceof CapabilityError && error.code === "invalid" ? this.wrong(`${error.payload}`) : error;
    }
  }
  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#end(error);
      this.#output.error(error);
      throw error;
    }
  }
  #end(reason: unknown): void {
    this.#over ??= { reason };
    this.#codec.close();
    this.#wanted?.();
    this.#demand?.();
  }
}

class CompressionStream extends Pair {
  #batch = new Uint8Array(0);
  #size = 0;
  constructor(format: string) {
    super("CompressionStream", compress(known("CompressionStream", format), 6));
  }
  get [Symbol.toStringTag](): string {
    return "CompressionStream";
  }
  protected async take(bytes: Bytes): Promise<void> {
    await this.reader();
    if (this.#size + bytes.length >= batch) {
      this.#compress(this.#batch.subarray(0, this.#size));
      this.#size = 0;
      for (let at = 0; at < bytes.length; at += piece) this.#compress(bytes.subarray(at, at + piece));
      return;
    }
    if (this.#batch.length < this.#size + bytes.length) {
      const larger = new Uint8Array(Math.max(2 * this.#batch.length, this.#size + bytes.length));
      larger.set(this.#batch.subarray(0, this.#size));
      this.#batch = larger;
    }
    this.#batch.set(bytes, this.#size);
    this.#size += bytes.length;
  }
  protected async finish(): Promise<void> {
    this.#compress(this.#batch.subarray(0, this.#size), "finish");
  }
  /** Compresses all of it at once: there is hardly more output than input. */
  #compress(bytes: Uint8Array, flush?: "finish"): void {
    for (let input = bytes, more = true; more; input = input.subarray(input.length)) more = this.step(input, flush).more;
  }
}

class DecompressionStream extends Pair {
  #ended = false;
  constructor(format: string) {
    super("DecompressionStream", decompress(known("DecompressionStream", format)));
  }
  get [Symbol.toStringTag](): string {
    return "DecompressionStream";
  }
  protected async take(bytes: Bytes): Promise<void> {
    bytes = bytes.slice(); // its author could change it while nobody reads
    while (bytes.length) {
      if (this.#ended) throw this.wrong("there is more after the end");
      let input: Uint8Array = bytes.subarray(0, piece);
      bytes = bytes.subarray(input.length);
      for (let more = true; more; input = input.subarray(input.length)) {
        await this.reader();
        const step = this.step(input);
        more = step.more;
        if (step.rest === undefined) continue;
        this.#ended = true;
        if (step.rest > 0) throw this.wrong("there is more after the end");
      }
    }
  }
  protected async finish(): Promise<void> {
    if (!this.#ended) throw this.wrong("the data ends early");
  }
}

install({ CompressionStream, DecompressionStream });
