// Buffer, for code of Node.js: the package buffer, with text made by the engine where it can.
import buffer from "@jspm/core/nodelibs/browser/buffer.js";
import { decode, encode } from "../encoding";
import { define } from "../global";

const { Buffer } = buffer;
const isUtf8 = (encoding: unknown) => encoding === undefined || encoding === null || /^utf-?8$/i.test(`${encoding}`);

const { from } = Buffer;
const { toString } = Buffer.prototype;
Object.assign(Buffer, {
  from(value: unknown, encoding?: unknown, length?: unknown) {
    if (typeof value !== "string" || !isUtf8(encoding)) return from.call(Buffer, value, encoding, length);
    return from.call(Buffer, encode(value).buffer);
  },
});
Object.assign(Buffer.prototype, {
  toString(this: Uint8Array, encoding?: unknown, start = 0, end = this.length) {
    const name = `${encoding}`.toLowerCase();
    if (!isUtf8(encoding) && name !== "hex" && name !== "base64") return toString.call(this, encoding, start, end);
    const part = new Uint8Array(this.buffer, this.byteOffset, this.length).subarray(Math.max(start | 0, 0), Math.max(Math.min(Number(end) || 0, this.length), 0));
    if (name === "hex") return part.toHex();
    if (name === "base64") return part.toBase64();
    // Unlike a text from elsewhere, a buffer keeps its byte order mark.
    return part[0] === 0xef && part[1] === 0xbb && part[2] === 0xbf ? `\ufeff${decode(part)}` : decode(part);
  },
});
// What node:buffer exports besides; see toolchain/node/buffer.ts.
define("Buffer", Buffer);
Object.defineProperty(globalThis, Symbol.for("stile.buffer"), { value: { ...buffer, kStringMaxLength: 2 ** 30 - 1 } });
