// Blob: bytes in the extension's memory, or a handle for bytes that stay on the host.
import { packed } from "./bindings";
import { dictionary } from "./dictionary";
import { decode, encode, view } from "./encoding";
import { ask } from "./errors";
import type { Raw } from "./session";

/** The most bytes that cross the boundary at once. */
export const piece = 262_144;

export type Part = string | Blob | ArrayBuffer | ArrayBufferView;

/** Marks a raw handle of stile:capability/blob as the content of a Blob. */
class Hosted {
  constructor(readonly raw: Raw) {}
}

let bytesOf: (blob: Blob) => Uint8Array<ArrayBuffer>;
let rawOf: (blob: Blob) => Raw | undefined;
let give: (blob: Blob) => Raw | undefined;
let copy: <T extends Blob>(from: Blob, to: T) => T;

export class Blob {
  #data: Uint8Array<ArrayBuffer> | undefined;
  #raw: Raw | undefined;
  #size: number;
  #type: string;

  constructor(parts: Iterable<Part> | Hosted = [], options?: { type?: string; endings?: string } | null) {
    if ((typeof parts !== "object" && typeof parts !== "function") || parts === null) throw new TypeError("Blob: an array of parts is wanted");
    const pieces: Part[] = [];
    // Each part becomes a text as soon as it is read: reading and converting can call code that changes the others.
    if (!(parts instanceof Hosted)) for (const part of parts) pieces.push(isBytes(part) ? part : `${part}`);
    const { endings = "transparent", type: given = "" } = dictionary(options, "Blob");
    const lines = `${endings}`;
    if (lines !== "native" && lines !== "transparent") throw new TypeError("Blob: endings is transparent or native");
    const type = `${given}`;
    this.#type = /^[\x20-\x7e]*$/.test(type) ? type.toLowerCase() : "";
    if (parts instanceof Hosted) {
      this.#raw = parts.raw;
      this.#size = Number(parts.raw.size());
      return;
    }
    this.#data = join(pieces.map((part) => partBytes(lines === "native" && typeof part === "string" ? part.replace(/\r\n?/g, "\n") : part)));
    this.#size = this.#data.length;
  }
  get size(): number {
    return this.#size;
  }
  get type(): string {
    return this.#type;
  }
  async text(): Promise<string> {
    return decode(bytesOf(this));
  }
  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return bytesOf(this).slice();
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return bytesOf(this).slice().buffer;
  }
  slice(start = 0, end = this.size, type = ""): Blob {
    return new Blob([bytesOf(this).subarray(start, end)], { type });
  }
  static {
    bytesOf = (blob) => {
      if (blob.#data) return blob.#data;
      if (!blob.#raw) throw new TypeError("the Blob was sent as a request's body, which took it away");
      return (blob.#data = download(blob.#raw, blob.size));
    };
    rawOf = (blob) => blob.#raw;
    give = (blob) => {
      const raw = blob.#raw;
      blob.#raw = undefined;
      return raw;
    };
    copy = (from, to) => {
      to.#data = from.#data;
      to.#raw = from.#raw;
      to.#size = from.#size;
      to.#type = from.#type;
      return to;
    };
  }
}

/** Makes a new Blob have the content of another one. */
export function copyBlob<T extends Blob>(from: Blob, to: T): T {
  return copy(from, to);
}

/** Bytes of a blob on the host, at most `piece`. */
export function hostBytes(raw: Raw, at: number, size: number): Uint8Array<ArrayBuffer> {
  return ask(() => packed(() => raw.packed(BigInt(at), size)));
}

function download(raw: Raw, size: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(size);
  for (let at = 0; at < size; ) {
    const bytes = hostBytes(raw, at, Math.min(piece, size - at));
    if (!bytes.length) throw new TypeError("the blob ended early");
    all.set(bytes, at);
    at += bytes.length;
  }
  return all;
}

function isBytes(part: unknown): part is Blob | ArrayBuffer | ArrayBufferView {
  return part instanceof Blob || part instanceof ArrayBuffer || ArrayBuffer.isView(part);
}

/** The bytes of a part. Do not change them. */
export function partBytes(part: Part): Uint8Array<ArrayBuffer> {
  if (part instanceof Blob) return bytesOf(part);
  return isBytes(part) ? view(part) : encode(`${part}`);
}

/** A result that is shown: one part of content, as the module "stile" and the host know it. */
export function contentPart(type: string, data: unknown, given?: string, more?: object): object {
  if (!(data instanceof Blob || data instanceof ArrayBuffer || ArrayBuffer.isView(data)))
    throw new TypeError(`${type}: a Blob or bytes are wanted; write await response.blob(), or new TextEncoder().encode(text)`);
  const mimeType = given || (data instanceof Blob ? data.type.split(";")[0]!.trim() : "");
  if (!mimeType) throw new TypeError(`${type}: the media type is missing, such as image(bytes, "image/png")`);
  const bytes = partBytes(data);
  let text = "";
  for (let at = 0; at < bytes.length; at += 24_576) text += btoa(String.fromCharCode(...bytes.subarray(at, at + 24_576)));
  return { content: [{ type, mimeType, data: text, ...more }] };
}

/** A result that is a Blob as what it shows; any other as it is. */
export function shown(value: unknown): unknown {
  if (!(value instanceof Blob)) return value;
  const type = /^(image|audio)\//.exec(value.type)?.[1];
  return type ? contentPart(type, value) : contentPart("file", value, value.type ? undefined : "application/octet-stream", { name: "result" });
}

function join(pieces: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(pieces.reduce((sum, bytes) => sum + bytes.length, 0));
  let at = 0;
  for (const bytes of pieces) {
    all.set(bytes, at);
    at += bytes.length;
  }
  return all;
}

/** A Blob of bytes on the host. */
export function hostBlob(raw: Raw, type?: string): Blob {
  return new Blob(new Hosted(raw), { type: type ?? raw.mediaType() });
}

/** A Blob's own bytes. Do not change them. */
export function blobBytes(blob: Blob): Uint8Array<ArrayBuffer> {
  return bytesOf(blob);
}

/** The handle of a Blob whose bytes are on the host; undefined for any other. */
export function blobHandle(blob: Blob): Raw | undefined {
  return rawOf(blob);
}

/** Removes a Blob's handle, to pass its ownership to the host. */
export function takeHandle(blob: Blob): Raw | undefined {
  return give(blob);
}

/** What a body or stream has: a Blob, and what to call once it is stored; or pieces of bytes as the author makes them. */
export type Stored = { blob: Promise<Blob>; release(): void } | AsyncIterable<Uint8Array>;

let fromBody: ((value: unknown) => Stored | undefined) | undefined;

/** Makes bodies and streams content that can be stored. Images without the web APIs of the network have none. */
export function acceptBodies(content: (value: unknown) => Stored | undefined): void {
  fromBody = content;
}

/** What can be stored of a Response, Request or stream; undefined for anything else. */
export function stored(value: unknown): Stored | undefined {
  return fromBody?.(value);
}
