// The sugar of stile:capability/clock.
import { pause } from "../../toolchain/prelude/clock";
import { ask } from "../../toolchain/prelude/errors";
import type { Raw } from "../../toolchain/prelude/session";

export default function clock(raw: Raw) {
  return {
    now: () => Number(raw.now()),
    monotonic: () => raw.monotonic() as bigint,
    sleep: async (milliseconds: number) => ask(() => pause(raw, milliseconds)),
  };
}
