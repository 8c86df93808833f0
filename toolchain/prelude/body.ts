// The body that Request and Response share: content that is read once, and only on demand.
import { orAbort, type AbortSignal } from "./abort";
import { wait } from "./bindings";
import { acceptBodies, Blob, blobBytes, blobHandle, hostBlob, hostBytes, piece, type Stored, takeHandle } from "./blob";
import { decode, encode, view } from "./encoding";
import { ask, CapabilityError } from "./errors";
import type { Raw } from "./session";
import { isStream, isUsed, type ReadableStream, type Source, stream, streams } from "./stream";

/** Content and the ways to read it. Each can be used repeatedly. */
export interface Content {
  /** The author's value; undefined for content on the host. */
  source: string | Uint8Array<ArrayBuffer> | Blob | undefined;
  type: string | undefined;
  text(): string | Promise<string>;
  bytes(): Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>;
  blob(type: string): Blob | Promise<Blob>;
  /** Gives back what the host keeps of content that nobody else has, once it was read. */
  release?(): void;
  /** Absent if the whole content is available from the start. */
  pieces?(): Source;
  /** Set once several bodies share this content. */
  shared?: boolean;
  /** The author's stream, from which the content is read. `lock` keeps others from reading it. */
  stream?: ReadableStream;
  lock?(): void;
}

export type BodyInit = string | URLSearchParams | Blob | ArrayBuffer | ArrayBufferView | ReadableStream;

let formContent: ((body: unknown) => Content | undefined) | undefined;

/** Makes bodies of forms, which a part of the prelude defines. */
export function acceptForms(content: (body: unknown) => Content | undefined): void {
  formContent = content;
}

/** The content of a value that an author passed. */
export function given(body: BodyInit | null | undefined): Content | undefined {
  if (body === undefined || body === null) return undefined;
  if (isStream(body)) return Body.behind(body) ?? streams().content(body);
  const form = formContent?.(body);
  if (form) return form;
  if (body instanceof Blob) {
    const type = body.type || undefined;
    return { source: body, type, text: () => decode(blobBytes(body)), bytes: () => blobBytes(body), blob: (wanted) => (wanted === body.type || blobHandle(body) ? body : new Blob([body], { type: wanted })) };
  }
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) {
    const source = view(body).slice();
    return { source, type: undefined, text: () => decode(source), bytes: () => source, blob: (type) => new Blob([source], { type }) };
  }
  const source = `${body}`.toWellFormed();
  return {
    source,
    type: body instanceof URLSearchParams ? "application/x-www-form-urlencoded;charset=UTF-8" : "text/plain;charset=UTF-8",
    text: () => source,
    bytes: () => encode(source),
    blob: (type) => new Blob([source], { type }),
  };
}

// Which limit a body reaches: the rule has the first, and only text the second.
const limit = 'the limit is "maxResponse" of the http rule, 16 MiB without it: write "maxResponse": N there, or max-response=N in --bind';
const textLimit = `${limit}. A text has at most 16 MiB: blob() and body take more`;

const unlimited = 0xffff_ffff_ffff_ffffn;

/** The content of an exchange. Text crosses as text; bytes stay on the host until they are read. */
export function received(exchange: Raw, type: string, signal: AbortSignal | undefined): Content {
  let blob: Blob | undefined;
  const until = (tag: string, val?: bigint) => {
    signal?.throwIfAborted();
    return orAbort(wait(exchange.subscribe({ tag, val })), signal, () => exchange.drop());
  };
  // The whole body of an exchange can be taken once.
  const stored = async () => {
    if (!blob) await until("whole");
    blob ??= ask(() => hostBlob(exchange.blob(), type), limit);
    exchange.drop();
    return blob;
  };
  // The host need not keep content that was read.
  const finish = (content: Content) => {
    if (!content.shared) exchange.drop();
  };
  return {
    source: undefined,
    type: undefined,
    async text() {
      if (!blob) await until("whole");
      if (blob) return decode(blobBytes(blob));
      try {
        const text: string = ask(() => exchange.text(unlimited), textLimit);
        finish(this);
        return text.replace(/^\ufeff/, "");
      } catch (error) {
        if (error instanceof CapabilityError && error.code === "invalid") return decode(await this.bytes());
        throw error;
      }
    },
    async bytes() {
      const bytes = blobBytes(await stored());
      this.release!();
      return bytes;
    },
    blob: stored,
    release() {
      if (blob && !this.shared) takeHandle(blob)?.drop();
    },
    pieces() {
      let at = 0;
      return {
        next: async () => {
          if (!blob) await until("body", BigInt(at));
          const bytes = blob ? blobBytes(blob).slice(at, at + piece) : part(exchange, at);
          at += bytes.length;
          if (bytes.length) return bytes;
          finish(this);
          return undefined;
        },
        cancel: () => finish(this),
      };
    },
  };
}

/** The bytes that have arrived from an offset on; empty at the end. */
function part(exchange: Raw, offset: number): Uint8Array<ArrayBuffer> {
  return ask(() => {
    const raw: Raw = exchange.blob({ offset: BigInt(offset), len: piece });
    const bytes = hostBytes(raw, 0, piece);
    raw.drop();
    return bytes;
  }, limit);
}

/** Available bytes, as a source. */
function once(content: Content): Source {
  let bytes: Content["bytes"] | undefined = content.bytes;
  const copy = (all?: Uint8Array<ArrayBuffer>) => (all?.length ? all.slice() : undefined);
  return {
    next() {
      const all = bytes?.();
      bytes = undefined;
      return all instanceof Promise ? all.then(copy) : copy(all);
    },
    cancel: () => (bytes = undefined),
  };
}

export abstract class Body {
  #content: Content | undefined;
  #used = false;
  #stream: ReadableStream | undefined;

  constructor(content: Content | undefined) {
    this.#hold(content);
  }
  #hold(content: Content | undefined): void {
    this.#content = content;
    if (!content?.stream) return;
    this.#stream = content.stream;
    owners.set(content.stream, this);
  }
  abstract get headers(): { get(name: string): string | null };

  get body(): ReadableStream | null {
    const content = this.#content;
    if (!content) return null;
    if (!this.#stream) {
      this.#stream = stream(this.#used ? { next: async () => undefined, cancel() {} } : (content.pieces?.() ?? once(content)));
      owners.set(this.#stream, this);
      if (this.#used) this.#stream.getReader(); // locks the stream
    }
    return this.#stream;
  }
  get bodyUsed(): boolean {
    return this.#used || (this.#stream !== undefined && isUsed(this.#stream));
  }
  async text(): Promise<string> {
    return (await this.#take()?.text()) ?? "";
  }
  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }
  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return (await this.#take()?.bytes())?.slice() ?? new Uint8Array(0);
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.bytes()).buffer;
  }
  async blob(): Promise<Blob> {
    const type = this.headers.get("content-type") ?? "";
    return (await this.#take()?.blob(type)) ?? new Blob([], { type });
  }
  #take(): Content | undefined {
    const content = this.#content;
    if (content) {
      Body.unused(this);
      this.#used = true;
      if (content.stream) content.lock!();
      else this.#stream?.getReader(); // locks the stream
    }
    return content;
  }

  /** The content, for a copy of its owner. */
  static content(body: Body): Content | undefined {
    Body.unused(body);
    const content = body.#content;
    if (!content?.stream) {
      if (content) content.shared = true;
      return content;
    }
    const [kept, copied] = streams().tee(content.stream);
    body.#hold(streams().content(kept));
    return streams().content(copied);
  }
  /** The content, to send it or for the request that takes the owner's place. Until use is called, it is the owner's too. */
  static taken(body: Body, sent?: boolean): Content | undefined {
    const stream = body.#content?.stream;
    if (!stream) return Body.content(body);
    Body.unused(body);
    return sent ? body.#content : streams().content(streams().move(stream));
  }
  /** Marks a body as read, if it was not. */
  static use(body: Body): void {
    if (!body.bodyUsed && !body.#stream?.locked) body.#take();
  }
  /** The content behind a body's stream, undefined if it comes from an author's. Its new owner reads it in any form; the stream stays locked. */
  static behind(stream: ReadableStream): Content | undefined {
    const owner = owners.get(stream);
    return owner && !owner.#content?.stream ? owner.#take() : undefined;
  }
  /** What can be stored of a body. What is on the host stays there. */
  static stored(value: unknown): Stored | undefined {
    const stream = value instanceof Body ? value.#content?.stream : value;
    if (isStream(stream)) {
      if (stream.locked || isUsed(stream)) throw new TypeError("the body was read already");
      const behind = Body.behind(stream);
      return behind ? keptBy(behind, behind.blob("")) : stream;
    }
    return value instanceof Body ? keptBy(value.#content, value.blob()) : undefined;
  }
  private static unused(body: Body): void {
    if (body.bodyUsed || body.#stream?.locked) throw new TypeError("the body was read already");
  }
}

/** A Blob that is stored, and then given back. */
function keptBy(content: Content | undefined, blob: Blob | Promise<Blob>): Stored {
  return { blob: Promise.resolve(blob), release: () => content?.release?.() };
}

const owners = new WeakMap<ReadableStream, Body>();

acceptBodies(Body.stored);
