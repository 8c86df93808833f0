// Buffer, for code of Node.js: the package buffer, with text made by the engine where it can.
import buffer from "@jspm/core/nodelibs/browser/buffer.js";
import { decode, encode } from "../encoding";
import { define } from "../global";

const { Buffer } = buffer;
const isUtf8 = (encoding: unknown) => encoding === undefined || encoding === null || /^utf-?8$/i.test(`${encoding}`);

// The package decodes the alphabet of base64url as base64, but does not know the name.
const known = (encoding: unknown) => (typeof encoding === "string" && /^base64url$/i.test(encoding) ? "base64" : encoding);
for (const [object, name] of [[Buffer, "byteLength"], [Buffer, "isEncoding"], [Buffer, "alloc"], ...["write", "fill", "indexOf", "lastIndexOf", "includes"].map((name) => [Buffer.prototype, name])]) {
  const original = object[name];
  const first = name === "isEncoding" ? 0 : 1; // parameter that can be an encoding
  const wrapped = function (this: unknown, ...values: unknown[]) {
    return original.apply(this, values.map((value, i) => (i >= first ? known(value) : value)));
  }; // a function, because some code writes new Buffer.alloc(0)
  Object.assign(object, { [name]: Object.defineProperty(wrapped, "name", { value: name }) });
}

const { from } = Buffer;
const { toString } = Buffer.prototype;
Object.assign(Buffer, {
  from(value: unknown, encoding?: unknown, length?: unknown) {
    if (typeof value !== "string" || !isUtf8(encoding)) return from.call(Buffer, value, known(encoding), length);
    return from.call(Buffer, encode(value).buffer);
  },
});
Object.assign(Buffer.prototype, {
  toString(this: Uint8Array, encoding?: unknown, start = 0, end = this.length) {
    const name = `${encoding}`.toLowerCase();
    if (!isUtf8(encoding) && !["hex", "base64", "base64url"].includes(name)) return toString.call(this, encoding, start, end);
    const part = new Uint8Array(this.buffer, this.byteOffset, this.length).subarray(Math.max(start | 0, 0), Math.max(Math.min(Number(end) || 0, this.length), 0));
    if (name === "hex") return part.toHex();
    if (name === "base64") return part.toBase64();
    if (name === "base64url") return part.toBase64({ alphabet: "base64url", omitPadding: true });
    // Unlike a text from elsewhere, a buffer keeps its byte order mark.
    return part[0] === 0xef && part[1] === 0xbb && part[2] === 0xbf ? `\ufeff${decode(part)}` : decode(part);
  },
});
// What node:buffer exports besides; see toolchain/node/buffer.ts.
define("Buffer", Buffer);
Object.defineProperty(globalThis, Symbol.for("stile.buffer"), { value: { ...buffer, kStringMaxLength: 2 ** 30 - 1 } });
