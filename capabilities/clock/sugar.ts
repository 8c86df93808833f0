// The sugar of stile:capability/clock.
import { type AbortSignal, orAbort } from "../../toolchain/prelude/abort";
import { abandon, wait } from "../../toolchain/prelude/bindings";
import { timer } from "../../toolchain/prelude/clock";
import { instant, milliseconds } from "../../toolchain/prelude/duration";
import { ask } from "../../toolchain/prelude/errors";
import type { Raw } from "../../toolchain/prelude/session";

const forms = 'a text like "90 s" or "3 days", or a date like "2026-12-24T18:00:00Z"';

export default function clock(raw: Raw) {
  const now = () => Number(raw.now());
  return {
    now,
    monotonic: () => raw.monotonic() as bigint,
    sleep: async (until: unknown, { signal }: { signal?: AbortSignal } = {}) => {
      const pause = (milliseconds: number) => {
        const ready = ask(() => timer(raw, milliseconds));
        return orAbort(wait(ready), signal, () => abandon(ready));
      };
      const at = instant(until, "sleep");
      if (at === undefined) return pause(milliseconds(until, "sleep", forms));
      // The machine's clock may have been set back meanwhile. A clock that stands still ends every wait.
      for (let before = NaN, time = now(); time < at && time !== before; time = now()) {
        before = time;
        await pause(at - time);
      }
    },
  };
}
