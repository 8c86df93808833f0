// node:crypto, as far as digests, HMAC and random bytes go.
import { hmac } from "@noble/hashes/hmac.js";
import { md5, ripemd160, sha1 } from "@noble/hashes/legacy.js";
import { sha224, sha256, sha384, sha512, sha512_224, sha512_256 } from "@noble/hashes/sha2.js";

const { Buffer, crypto: web } = globalThis as any;
type Data = string | ArrayBufferView;
type Callback = (error: unknown, value?: any) => void;

const hashes: Record<string, any> = { md5, rmd160: ripemd160, ripemd160, sha1, sha224, sha256, sha384, sha512, "sha512-224": sha512_224, "sha512-256": sha512_256 };

function algorithm(name: string): any {
  const key = `${name}`.toLowerCase().replace(/^rsa-/, "").replace(/^sha-(?=\d)/, "sha").replace("/", "-");
  if (!Object.hasOwn(hashes, key)) throw new TypeError(`crypto: there is no digest ${name} here, only ${getHashes().join(", ")}; the npm package @noble/hashes has more`);
  return hashes[key];
}
function bytes(data: Data | ArrayBuffer, encoding?: string): Uint8Array {
  if (typeof data === "string") return Buffer.from(data, encoding);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (!ArrayBuffer.isView(data)) throw new TypeError("crypto: text or bytes are wanted");
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
function encoded(digest: Uint8Array, encoding?: string): any {
  const buffer = Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength);
  return encoding && encoding !== "buffer" ? buffer.toString(encoding) : buffer;
}

class Hash {
  #state: any;
  #ended = false;
  constructor(state: any) {
    this.#state = state;
  }
  update(data: Data, encoding?: string): this {
    this.#open();
    this.#state.update(bytes(data, encoding));
    return this;
  }
  digest(encoding?: string): any {
    this.#open();
    this.#ended = true;
    return encoded(this.#state.digest(), encoding);
  }
  copy(): Hash {
    this.#open();
    return new Hash(this.#state.clone());
  }
  #open(): void {
    if (this.#ended) throw Object.assign(new Error("Digest already called"), { code: "ERR_CRYPTO_HASH_FINALIZED" });
  }
}

export const getHashes = (): string[] => Object.keys(hashes);
export const createHash = (name: string): Hash => new Hash(algorithm(name).create());
export const createHmac = (name: string, key: Data | KeyObject): Hash => new Hash(hmac.create(algorithm(name), key instanceof KeyObject ? key.export() : bytes(key)));

/** A key of HMAC. Node has others, too. */
export class KeyObject {
  #key: any;
  readonly type = "secret";
  /** Takes bytes only from createSecretKey, which copies them. */
  constructor(of: symbol, key: Uint8Array) {
    if (of !== ours) refused("KeyObject")();
    this.#key = key;
  }
  get symmetricKeySize(): number {
    return this.#key.length;
  }
  export(options?: { format?: string }): any {
    return options?.format === "jwk" ? { kty: "oct", k: this.#key.toString("base64url") } : Buffer.from(this.#key);
  }
  equals(other: unknown): boolean {
    return other instanceof KeyObject && other.#key.length === this.#key.length && timingSafeEqual(other.#key, this.#key);
  }
}
const ours = Symbol("of createSecretKey");
export const createSecretKey = (key: Data, encoding?: string): KeyObject => new KeyObject(ours, Buffer.from(bytes(key, encoding)));
export const hash = (name: string, data: Data, encoding = "hex"): any => createHash(name).update(data).digest(encoding);

export function timingSafeEqual(a: ArrayBuffer | ArrayBufferView, b: ArrayBuffer | ArrayBufferView): boolean {
  const [left, right] = [bytes(a as Data), bytes(b as Data)];
  if (left.length !== right.length) throw Object.assign(new RangeError("Input buffers must have the same byte length"), { code: "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH" });
  let difference = 0;
  for (let i = 0; i < left.length; i++) difference |= left[i] ^ right[i];
  return difference === 0;
}

// The most bytes of one getRandomValues.
const most = 65_536;

export function randomFillSync<T extends ArrayBuffer | ArrayBufferView>(target: T, offset = 0, size?: number): T {
  const all = bytes(target as any);
  const end = size === undefined ? all.length : offset + size;
  for (let at = offset; at < end; at += most) web.getRandomValues(all.subarray(at, Math.min(end, at + most)));
  return target;
}
/** Calls back in a job of its own, with the result or what was thrown. */
function later(act: () => unknown, callback: Callback): void {
  let value: unknown;
  let error: unknown = null;
  try {
    value = act();
  } catch (thrown) {
    error = thrown;
  }
  queueMicrotask(() => (error === null ? callback(null, value) : callback(error)));
}
export function randomFill(target: any, ...rest: any[]): void {
  const callback = rest.pop() as Callback;
  later(() => randomFillSync(target, ...(rest as [])), callback);
}
export function randomBytes(size: number, callback?: Callback): any {
  if (!(size >= 0 && size <= 2 ** 31 - 1)) throw new RangeError("randomBytes: the size is out of range");
  const make = () => randomFillSync(Buffer.alloc(size));
  return callback ? later(make, callback) : make();
}
export function randomInt(low: number, high?: number | Callback, callback?: Callback): any {
  if (typeof high !== "number") [low, high, callback] = [0, low, high];
  const range = high - low;
  if (!Number.isSafeInteger(low) || !Number.isSafeInteger(high) || range <= 0 || range > 2 ** 48 - 1) throw new RangeError("randomInt: the range is empty or too large");
  const make = () => {
    for (const limit = 2 ** 48 - (2 ** 48 % range); ; ) {
      const drawn = randomBytes(6).readUIntBE(0, 6);
      if (drawn < limit) return low + (drawn % range);
    }
  };
  return callback ? later(make, callback) : make();
}
export const randomUUID = (): string => web.randomUUID();
export const getRandomValues = <T extends ArrayBufferView>(array: T): T => web.getRandomValues(array);
export const webcrypto = web;
export const { subtle } = web;
export const constants = {};

function refused(name: string): () => never {
  return () => {
    throw new TypeError(`crypto.${name} is not available: here are digests, HMAC and random bytes; use an npm package such as @noble/hashes, @noble/ciphers or @noble/curves`);
  };
}
export const createCipheriv = refused("createCipheriv");
export const createDecipheriv = refused("createDecipheriv");
export const createSign = refused("createSign");
export const createVerify = refused("createVerify");
export const sign = refused("sign");
export const verify = refused("verify");
export const createPublicKey = refused("createPublicKey");
export const createPrivateKey = refused("createPrivateKey");
export const generateKeyPair = refused("generateKeyPair");
export const generateKeyPairSync = refused("generateKeyPairSync");
export const publicEncrypt = refused("publicEncrypt");
export const privateDecrypt = refused("privateDecrypt");
export const createDiffieHellman = refused("createDiffieHellman");
export const createECDH = refused("createECDH");
export const diffieHellman = refused("diffieHellman");
export const pbkdf2 = refused("pbkdf2");
export const pbkdf2Sync = refused("pbkdf2Sync");
export const scrypt = refused("scrypt");
export const scryptSync = refused("scryptSync");
export const hkdf = refused("hkdf");
export const hkdfSync = refused("hkdfSync");
export class X509Certificate {
  constructor() {
    refused("X509Certificate")();
  }
}
export { Hash, Hash as Hmac };
export default {
  getHashes, createHash, createHmac, hash, timingSafeEqual, randomFillSync, randomFill, randomBytes, randomInt, randomUUID, getRandomValues, webcrypto, subtle, constants, Hash, Hmac: Hash,
  KeyObject, X509Certificate, createCipheriv, createDecipheriv, createSign, createVerify, sign, verify, createSecretKey, createPublicKey, createPrivateKey, generateKeyPair,
  generateKeyPairSync, publicEncrypt, privateDecrypt, createDiffieHellman, createECDH, diffieHellman, pbkdf2, pbkdf2Sync, scrypt, scryptSync, hkdf, hkdfSync,
};
