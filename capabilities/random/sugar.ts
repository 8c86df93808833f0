// The sugar of stile:capability/random.
import { ask } from "../../toolchain/prelude/errors";
import { bytes } from "../../toolchain/prelude/random";
import type { Raw } from "../../toolchain/prelude/session";

export default function random(raw: Raw) {
  return { u64: () => ask(() => raw.u64() as bigint), bytes: (length: number) => bytes(raw, length) };
}
