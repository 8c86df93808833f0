// The sugar of stile:capability/signals.
import { type AbortSignal, orAbort } from "../../toolchain/prelude/abort";
import { abandon, wait } from "../../toolchain/prelude/bindings";
import { milliseconds } from "../../toolchain/prelude/duration";
import { ask, CapabilityError } from "../../toolchain/prelude/errors";
import type { Raw } from "../../toolchain/prelude/session";

interface ReceiveOptions {
  timeout?: number | string;
  signal?: AbortSignal;
}

export default function signals(raw: Raw) {
  return {
    url: async (mailbox: string) => ask(() => raw.url(mailbox)),
    receive: async (mailbox: string, { timeout, signal }: ReceiveOptions = {}) => {
      const most = timeout === undefined ? Infinity : milliseconds(timeout, "receive");
      const pending: Raw = ask(() => raw.receive(mailbox, most === Infinity ? undefined : BigInt(Math.ceil(Math.min(most, 2 ** 53)))));
      try {
        for (;;) {
          const ready = pending.subscribe();
          await orAbort(wait(ready), signal, () => abandon(ready));
          const message = ask(() => pending.take());
          if (message) return { data: JSON.parse(message.data), from: message.from, received: Number(message.received) };
        }
      } catch (error) {
        if (error instanceof CapabilityError && error.code === "timed-out") return undefined;
        throw error;
      } finally {
        pending.drop();
      }
    },
  };
}
