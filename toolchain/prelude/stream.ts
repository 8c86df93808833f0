// ReadableStream: the body of a response or request, read piece by piece as it arrives.

/** Returns the next bytes, and undefined at the end. */
export interface Source {
  next(): Uint8Array<ArrayBuffer> | undefined | Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Ends the source; no more bytes are read. */
  cancel(): void;
}

import type { Content } from "./body";
import { dictionary } from "./dictionary";

// Only this module can create streams: the constructor requires this key.
const key = Symbol("ReadableStream");

export interface Result {
  done: boolean;
  value: Uint8Array<ArrayBuffer> | undefined;
}

let release: (stream: ReadableStream) => void;
let pull: (stream: ReadableStream) => Promise<Result>;
let end: (stream: ReadableStream) => void;
let usedOf: (stream: ReadableStream) => boolean;

class ReadableStreamDefaultReader {
  #stream: ReadableStream | undefined;

  constructor(stream: ReadableStream, made: symbol) {
    if (made !== key) throw new TypeError("a reader is made by getReader()");
    this.#stream = stream;
  }
  async read(): Promise<Result> {
    return pull(this.#held());
  }
  async cancel(): Promise<void> {
    end(this.#held());
  }
  releaseLock(): void {
    if (this.#stream) release(this.#stream);
    this.#stream = undefined;
  }
  #held(): ReadableStream {
    if (!this.#stream) throw new TypeError("the reader was released");
    return this.#stream;
  }
}

export class ReadableStream {
  #source: Source | undefined;
  #reader: ReadableStreamDefaultReader | undefined;
  #used = false;
  // Reads are answered in order, one at a time.
  #last: Promise<unknown> = Promise.resolve();

  constructor(source: Source, made?: symbol) {
    if (made !== key) throw new TypeError("a ReadableStream is the body of a Response or Request");
    this.#source = source;
  }
  get locked(): boolean {
    return this.#reader !== undefined;
  }
  getReader(options?: { mode?: undefined } | null): ReadableStreamDefaultReader {
    const { mode } = dictionary(options, "getReader");
    if (mode !== undefined) throw new TypeError(`getReader: there is no mode ${mode}`);
    this.#free();
    return (this.#reader = new ReadableStreamDefaultReader(this, key));
  }
  async cancel(): Promise<void> {
    this.#free();
    end(this);
  }
  async *values(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const reader = this.getReader();
    try {
      for (let result = await reader.read(); !result.done; result = await reader.read()) yield result.value!;
    } finally {
      await reader.cancel();
      reader.releaseLock();
    }
  }
  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    return this.values();
  }
  #free(): void {
    if (this.#reader) throw new TypeError("the stream has a reader already");
  }
  async #next(): Promise<Result> {
    const value = await this.#source?.next();
    if (!value) this.#source = undefined;
    return { done: !value, value };
  }
  static {
    release = (stream) => (stream.#reader = undefined);
    pull = (stream) => {
      stream.#used = true;
      const next = stream.#last.then(() => stream.#next());
      stream.#last = next.catch(() => {});
      return next;
    };
    end = (stream) => {
      stream.#used = true;
      stream.#source?.cancel();
      stream.#source = undefined;
    };
    usedOf = (stream) => stream.#used;
  }
}

/** What the part `streams` puts in the place of this module's class, so that an image has one class of streams. */
export interface Streams {
  is(value: unknown): boolean;
  make(source: Source): ReadableStream;
  used(stream: ReadableStream): boolean;
  /** The content that is read from a stream of the author's. */
  content(stream: ReadableStream): Content;
  tee(stream: ReadableStream): [ReadableStream, ReadableStream];
  /** A stream with what is left of another one, which stays locked. */
  move(stream: ReadableStream): ReadableStream;
}

let full: Streams | undefined;

export function replaceStreams(by: Streams): void {
  full = by;
}

/** The replacement. Only it makes streams that have no source of the prelude's. */
export function streams(): Streams {
  return full!;
}

export function stream(source: Source): ReadableStream {
  return full ? full.make(source) : new ReadableStream(source, key);
}

export function isStream(value: unknown): value is ReadableStream {
  return full ? full.is(value) : value instanceof ReadableStream;
}

/** Whether the stream has been read from. */
export function isUsed(stream: ReadableStream): boolean {
  return full ? full.used(stream) : usedOf(stream);
}
