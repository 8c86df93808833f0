// crypto.subtle.digest.
import { sha1 } from "@noble/hashes/legacy.js";
import { sha256, sha384, sha512 } from "@noble/hashes/sha2.js";
import { view } from "./encoding";

const hashes: Record<string, (data: Uint8Array) => Uint8Array> = {
  "SHA-1": sha1,
  "SHA-256": sha256,
  "SHA-384": sha384,
  "SHA-512": sha512,
};

export async function digest(algorithm: string | { name: string }, data: ArrayBuffer | ArrayBufferView): Promise<ArrayBuffer> {
  const name = `${typeof algorithm === "string" ? algorithm : algorithm?.name}`.toUpperCase();
  if (!Object.hasOwn(hashes, name)) throw new DOMException(`crypto.subtle.digest: unknown algorithm ${name}`, "NotSupportedError");
  return hashes[name](view(data)).slice().buffer as ArrayBuffer;
}
