// The sugar of stile:capability/counter.
import { ask } from "../../toolchain/prelude/errors";
import type { Raw } from "../../toolchain/prelude/session";

export default function counter(raw: Raw) {
  return {
    count: async (step = 1) => Number(ask(() => raw.next(step))),
    seen: async () => [...ask(() => raw.seen())].map(Number),
  };
}
