// What Request and Response have in common: content that is read once, and only when it is asked for.
import { Blob, blobBytes, hostBlob } from "./blob";
import { decode, encode, view } from "./encoding";
import { ask, CapabilityError } from "./errors";
import type { Raw } from "./session";

/** Content and the ways to look at it; each may be used again. */
export interface Content {
  /** What an author gave; undefined for content that is on the host. */
  source: string | Uint8Array<ArrayBuffer> | Blob | undefined;
  type: string | undefined;
  text(): string;
  bytes(): Uint8Array<ArrayBuffer>;
  blob(type: string): Blob;
}

export type BodyInit = string | URLSearchParams | Blob | ArrayBuffer | ArrayBufferView;

/** The content that an author gave. */
export function given(body: BodyInit | null | undefined): Content | undefined {
  if (body === undefined || body === null) return undefined;
  if (body instanceof Blob) {
    const type = body.type || undefined;
    return { source: body, type, text: () => decode(blobBytes(body)), bytes: () => blobBytes(body), blob: () => body };
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

const unlimited = 0xffff_ffff_ffff_ffffn;

/** The content of an exchange: text crosses as text, bytes stay on the host until somebody looks. */
export function received(exchange: Raw, type: string): Content {
  let blob: Blob | undefined;
  // An exchange gives its bytes away once.
  const stored = () => (blob ??= ask(() => hostBlob(exchange.blob(), type)));
  return {
    source: undefined,
    type: undefined,
    text: () => {
      if (blob) return decode(blobBytes(blob));
      try {
        return ask(() => exchange.text(unlimited) as string).replace(/^\ufeff/, "");
      } catch (error) {
        if (error instanceof CapabilityError && error.code === "invalid") return decode(blobBytes(stored()));
        throw error;
      }
    },
    bytes: () => blobBytes(stored()),
    blob: stored,
  };
}

export abstract class Body {
  #content: Content | undefined;
  #used = false;

  constructor(content: Content | undefined) {
    this.#content = content;
  }
  abstract get headers(): { get(name: string): string | null };

  get bodyUsed(): boolean {
    return this.#used;
  }
  async text(): Promise<string> {
    return this.#take()?.text() ?? "";
  }
  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }
  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#take()?.bytes().slice() ?? new Uint8Array(0);
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.bytes()).buffer;
  }
  async blob(): Promise<Blob> {
    const type = this.headers.get("content-type") ?? "";
    return this.#take()?.blob(type) ?? new Blob([], { type });
  }
  #take(): Content | undefined {
    const content = this.#content;
    if (content) {
      Body.unused(this);
      this.#used = true;
    }
    return content;
  }

  /** The content, for a copy of its owner. */
  static content(body: Body): Content | undefined {
    Body.unused(body);
    return body.#content;
  }
  private static unused(body: Body): void {
    if (body.#used) throw new TypeError("the body was read already");
  }
}
