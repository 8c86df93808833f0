// TextEncoder and TextDecoder.
import { dictionary, required } from "./dictionary";

const chunk = 8192;

/** The UTF-8 bytes of a text; a lone surrogate becomes U+FFFD. */
export function encode(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length * 3);
  return bytes.slice(0, encodeInto(text, bytes).written);
}

function encodeInto(text: string, target: Uint8Array): { read: number; written: number } {
  let read = 0;
  let written = 0;
  while (read < text.length) {
    let point = text.charCodeAt(read);
    if (point < 0x80) {
      if (written === target.length) break;
      target[written++] = point;
      read++;
      continue;
    }
    let units = 1;
    if ((point & 0xf800) === 0xd800) {
      point = text.codePointAt(read)!;
      if (point > 0xffff) units = 2;
      else point = 0xfffd;
    }
    const size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (written + size > target.length) break;
    target[written++] = size === 2 ? 0xc0 | (point >> 6) : size === 3 ? 0xe0 | (point >> 12) : 0xf0 | (point >> 18);
    for (let shift = (size - 2) * 6; shift >= 0; shift -= 6) target[written++] = 0x80 | ((point >> shift) & 0x3f);
    read += units;
  }
  return { read, written };
}

/** The text of UTF-8 bytes, without a byte order mark. Bytes that are not UTF-8 become U+FFFD. */
export function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

export class TextEncoder {
  #encoding = "utf-8";
  get encoding(): string {
    return this.#encoding;
  }
  encode(text: string = ""): Uint8Array<ArrayBuffer> {
    void this.#encoding; // for anything else, it fails
    return encode(`${text}`);
  }
  encodeInto(text: string, target: Uint8Array): { read: number; written: number } {
    required(arguments.length, 2, "encodeInto");
    const read = `${text}`;
    if (!(target instanceof Uint8Array)) throw new TypeError("encodeInto: a Uint8Array is wanted");
    return encodeInto(read, target);
  }
}

/** Decodes bytes piece by piece. An incomplete end is kept for the next piece unless it is the last. */
type Decoder = (bytes: Uint8Array, last: boolean) => string;

const latin1 = ["ansi_x3.4-1968", "ascii", "cp1252", "cp819", "csisolatin1", "ibm819", "iso-8859-1", "iso-ir-100", "iso8859-1"];
const labels = new Map<string, string>([
  ...["unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "utf-8", "utf8", "x-unicode20utf8"].map((l) => [l, "utf-8"] as const),
  ...["csunicode", "iso-10646-ucs-2", "ucs-2", "unicode", "unicodefeff", "utf-16", "utf-16le"].map((l) => [l, "utf-16le"] as const),
  ...["unicodefffe", "utf-16be"].map((l) => [l, "utf-16be"] as const),
  ...[...latin1, "iso88591", "iso_8859-1", "iso_8859-1:1987", "l1", "latin1", "us-ascii", "windows-1252", "x-cp1252"].map(
    (l) => [l, "windows-1252"] as const,
  ),
]);

/** Adds an encoding to those that TextDecoder knows. */
export function addEncoding(name: string, aliases: string[], make: (fatal: boolean) => Decoder): void {
  for (const label of [name, ...aliases]) labels.set(label, name);
  decoders[name] = make;
}

export class TextDecoder {
  #encoding: string;
  #fatal: boolean;
  #ignoreBOM: boolean;
  #decoder: Decoder | undefined;
  #started = false;

  constructor(label = "utf-8", options?: { fatal?: boolean; ignoreBOM?: boolean } | null) {
    const { fatal, ignoreBOM } = dictionary(options, "TextDecoder");
    const encoding = labels.get(`${label}`.replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, "").toLowerCase());
    if (!encoding) throw new RangeError(`TextDecoder: unknown encoding ${label}`);
    this.#encoding = encoding;
    this.#fatal = !!fatal;
    this.#ignoreBOM = !!ignoreBOM;
  }
  get encoding(): string {
    return this.#encoding;
  }
  get fatal(): boolean {
    return this.#fatal;
  }
  get ignoreBOM(): boolean {
    return this.#ignoreBOM;
  }

  decode(input: ArrayBuffer | ArrayBufferView | undefined = undefined, options?: { stream?: boolean } | null): string {
    const { stream = false } = dictionary(options, "decode");
    const decoder = (this.#decoder ??= decoders[this.#encoding](this.#fatal));
    let text: string;
    try {
      text = decoder(input === undefined ? new Uint8Array(0) : view(input), !stream);
    } catch (error) {
      this.#decoder = undefined;
      this.#started = false;
      throw error;
    }
    if (!this.#started && text) {
      this.#started = true;
      if (!this.#ignoreBOM && text.charCodeAt(0) === 0xfeff && this.#encoding.startsWith("utf")) text = text.slice(1);
    }
    if (!stream) {
      this.#decoder = undefined;
      this.#started = false;
    }
    return text;
  }
}

/** The bytes of a buffer or a view, without copying; none of a buffer that was transferred. */
export function view(input: ArrayBuffer | ArrayBufferView): Uint8Array<ArrayBuffer> {
  if ((ArrayBuffer.isView(input) ? (input.buffer as ArrayBuffer) : input)?.detached) return new Uint8Array(0);
  if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer as ArrayBuffer, input.byteOffset, input.byteLength);
  if (input instanceof ArrayBuffer || (input as object) instanceof SharedArrayBuffer) return new Uint8Array(input);
  throw new TypeError("an ArrayBuffer or a view of one is wanted");
}

/** Collects code points into a text. */
class Output {
  #units = new Uint16Array(chunk + 1);
  #length = 0;
  #text = "";
  point(point: number): void {
    if (point > 0xffff) {
      this.#units[this.#length++] = 0xd7c0 + (point >> 10);
      point = 0xdc00 | (point & 0x3ff);
    }
    this.#units[this.#length++] = point;
    if (this.#length >= chunk) this.#flush();
  }
  /** Appends ASCII bytes. */
  ascii(bytes: Uint8Array): void {
    this.#flush();
    for (let at = 0; at < bytes.length; at += chunk) this.#text += characters(bytes.subarray(at, at + chunk));
  }
  #flush(): void {
    this.#text += characters(this.#units.subarray(0, this.#length));
    this.#length = 0;
  }
  end(): string {
    this.#flush();
    return this.#text;
  }
}

function characters(units: Uint8Array | Uint16Array): string {
  return String.fromCharCode.apply(null, units as unknown as number[]);
}

function malformed(fatal: boolean, encoding: string): number {
  if (fatal) throw new TypeError(`the bytes are not ${encoding}`);
  return 0xfffd;
}

function joined(kept: number[], bytes: Uint8Array): Uint8Array {
  if (!kept.length) return bytes;
  const all = new Uint8Array(kept.length + bytes.length);
  all.set(kept);
  all.set(bytes, kept.length);
  return all;
}

// https://encoding.spec.whatwg.org/#utf-8-decoder
function utf8(fatal: boolean): Decoder {
  let kept: number[] = [];
  return (piece, last) => {
    const bytes = joined(kept, piece);
    kept = [];
    const output = new Output();
    let at = 0;
    while (at < bytes.length) {
      const lead = bytes[at];
      if (lead < 0x80) {
        let end = at + 1;
        while (end < bytes.length && bytes[end] < 0x80) end++;
        if (end - at > 16) output.ascii(bytes.subarray(at, end));
        else for (let i = at; i < end; i++) output.point(bytes[i]);
        at = end;
        continue;
      }
      const needed = lead < 0xc2 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : 0;
      let point = lead & (0x3f >> needed);
      let lower = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
      let upper = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
      let seen = 0;
      while (seen < needed && bytes[at + 1 + seen] >= lower && bytes[at + 1 + seen] <= upper) {
        point = (point << 6) | (bytes[at + 1 + seen++] & 0x3f);
        lower = 0x80;
        upper = 0xbf;
      }
      if (needed > 0 && seen === needed) output.point(point);
      else if (needed > 0 && at + 1 + seen === bytes.length && !last) {
        kept = [...bytes.subarray(at)];
        break;
      } else output.point(malformed(fatal, "UTF-8"));
      at += 1 + seen;
    }
    return output.end();
  };
}

// https://encoding.spec.whatwg.org/#shared-utf-16-decoder
function utf16(fatal: boolean, low: 0 | 1): Decoder {
  const name = low ? "UTF-16BE" : "UTF-16LE";
  const high = 1 - low;
  let kept: number[] = [];
  return (piece, last) => {
    const bytes = joined(kept, piece);
    kept = [];
    const output = new Output();
    let at = 0;
    for (; at + 1 < bytes.length; at += 2) {
      const unit = bytes[at + low] | (bytes[at + high] << 8);
      if ((unit & 0xf800) !== 0xd800) output.point(unit);
      else if (unit >= 0xdc00) output.point(malformed(fatal, name));
      else if (at + 3 >= bytes.length && !last) break;
      else {
        const next = at + 3 < bytes.length ? bytes[at + 2 + low] | (bytes[at + 2 + high] << 8) : 0;
        if ((next & 0xfc00) === 0xdc00) {
          output.point(unit);
          output.point(next);
          at += 2;
        } else output.point(malformed(fatal, name));
      }
    }
    if (at < bytes.length) {
      if (last) output.point(malformed(fatal, name));
      else kept = [...bytes.subarray(at)];
    }
    return output.end();
  };
}

// Bytes 0x80 to 0x9f of windows-1252; the others are their own code points.
const windows1252 =
  "\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f" +
  "\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178";

function singleByte(): Decoder {
  return (bytes) => {
    const output = new Output();
    for (const byte of bytes) output.point(byte >= 0x80 && byte < 0xa0 ? windows1252.charCodeAt(byte - 0x80) : byte);
    return output.end();
  };
}

const decoders: Record<string, (fatal: boolean) => Decoder> = {
  "utf-8": utf8,
  "utf-16le": (fatal) => utf16(fatal, 0),
  "utf-16be": (fatal) => utf16(fatal, 1),
  "windows-1252": singleByte,
};
