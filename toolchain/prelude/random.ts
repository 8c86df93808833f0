// Math.random and crypto.
import { building, note } from "./bindings";
import { ask } from "./errors";
import { define } from "./global";
import { demand, type Raw } from "./session";

// The most bytes that one call of the raw handle returns.
const most = 65_536;

/** Random bytes of a handle. */
export function bytes(raw: Raw, length: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(length);
  for (let at = 0; at < length; at += most) all.set(ask(() => raw.bytes(Math.min(most, length - at))), at);
  return all;
}

/** xoroshiro128+, https://prng.di.unimi.it/xoroshiro128plus.c, giving numbers from 0 to 1. */
function generator(a: bigint, b: bigint): () => number {
  const rotate = (x: bigint, by: bigint) => BigInt.asUintN(64, x << by) | (x >> (64n - by));
  return () => {
    const sum = BigInt.asUintN(64, a + b);
    b ^= a;
    a = rotate(a, 24n) ^ b ^ BigInt.asUintN(64, b << 16n);
    b = rotate(b, 37n);
    return Number(sum >> 11n) / 2 ** 53;
  };
}

// During the build of the image the sequence is fixed, so that the same source gives the same image.
const fixed = generator(0x9e3779b97f4a7c15n, 0xbf58476d1ce4e5b9n);
let seeded: (() => number) | undefined;

// The handle provides one seed per call, not every number.
const replaced = {
  random(): number {
    if (building()) {
      note("random");
      return fixed();
    }
    seeded ??= (() => {
      const raw = demand("random", "Math.random");
      return ask(() => generator(raw.u64(), raw.u64() | 1n));
    })();
    return seeded();
  },
};

function getRandomValues<T extends ArrayBufferView>(array: T): T {
  const raw = demand("random", "crypto.getRandomValues");
  if (!ArrayBuffer.isView(array) || array instanceof DataView || array instanceof Float32Array || array instanceof Float64Array)
    throw new DOMException("an integer array is wanted", "TypeMismatchError");
  if (array.byteLength > most) throw new DOMException(`at most ${most} bytes`, "QuotaExceededError");
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(bytes(raw, array.byteLength));
  return array;
}

// RFC 9562, version 4.
function randomUUID(): string {
  const value = bytes(demand("random", "crypto.randomUUID"), 16);
  value[6] = (value[6] & 0x0f) | 0x40;
  value[8] = (value[8] & 0x3f) | 0x80;
  return value.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** The global `crypto`. */
export const crypto: object = { getRandomValues, randomUUID };

export function installRandom(): void {
  Object.defineProperty(Math, "random", {
    value: replaced.random,
    writable: true,
    configurable: true,
  });
  define("crypto", crypto);
}
