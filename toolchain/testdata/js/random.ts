// bindings: random
import { equal, ok, rejects, throws } from "./assert";

export default async function (): Promise<void> {
  const numbers = Array.from({ length: 1000 }, () => Math.random());
  ok(numbers.every((value) => value >= 0 && value < 1), "from 0 to 1");
  const mean = numbers.reduce((sum, value) => sum + value) / numbers.length;
  ok(mean > 0.4 && mean < 0.6 && new Set(numbers).size === 1000, "spread out");
  const words = crypto.getRandomValues(new Uint32Array(4));
  ok(words.some((word) => word !== 0), "random words");
  const large = crypto.getRandomValues(new Uint8Array(65_536));
  ok(new Set(large).size === 256, "every byte occurs");
  throws(() => crypto.getRandomValues(new Uint8Array(65_537)), { name: "QuotaExceededError" });
  throws(() => crypto.getRandomValues(new Float64Array(1) as any), { name: "TypeMismatchError" });
  const id = crypto.randomUUID();
  ok(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id) && id !== crypto.randomUUID(), id);

  const abc = new TextEncoder().encode("abc");
  const digests = {
    "SHA-1": "a9993e364706816aba3e25717850c26c9cd0d89d",
    "SHA-256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "SHA-384": "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
    "SHA-512":
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
  } as const;
  for (const [name, hex] of Object.entries(digests))
    equal((new Uint8Array(await crypto.subtle.digest(name as any, abc)) as any).toHex(), hex, name);
  equal((await crypto.subtle.digest({ name: "SHA-256" }, new ArrayBuffer(0))).byteLength, 32);
  await rejects(crypto.subtle.digest("MD5" as any, abc), { name: "NotSupportedError" });
}
