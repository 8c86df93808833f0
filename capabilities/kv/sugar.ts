// The sugar of stile:capability/kv.
import { ask } from "../../toolchain/prelude/errors";
import { page, type PageOptions } from "../../toolchain/prelude/page";
import type { Raw } from "../../toolchain/prelude/session";

export default function kv(raw: Raw) {
  return {
    get: async (key: string) => ask(() => raw.get(key)),
    set: async (key: string, value: string) => ask(() => raw.set(key, value)),
    delete: async (key: string) => ask(() => raw.delete(key)),
    list: async (prefix = "", options?: PageOptions) => ask(() => raw.list(prefix, ...page(options))),
    increment: async (key: string, delta = 1) => {
      if (typeof delta !== "number") throw new TypeError(`increment: a number is wanted, not a ${typeof delta}`);
      if (!Number.isSafeInteger(delta)) throw new RangeError(`increment: ${delta} is not a safe integer`);
      const sum: bigint = ask(() => raw.increment(key, BigInt(delta)));
      const number = Number(sum);
      if (!Number.isSafeInteger(number)) throw new RangeError(`increment: ${key} is now ${sum}, past what a number can hold`);
      return number;
    },
    compareAndSet: async (key: string, expected: string | undefined, value: string | undefined) =>
      ask(() => raw.compareAndSet(key, expected, value)),
  };
}
