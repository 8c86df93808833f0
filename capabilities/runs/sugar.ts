// The sugar of stile:capability/runs.
import { AbortController } from "../../toolchain/prelude/abort";
import { wait } from "../../toolchain/prelude/bindings";
import { ask, CapabilityError } from "../../toolchain/prelude/errors";
import { toJson } from "../../toolchain/prelude/json";
import type { Raw } from "../../toolchain/prelude/session";

export default function runs(raw: Raw) {
  let controller: AbortController | undefined;
  const started = (id: string) => ({
    id,
    result: async () => {
      await wait(ask(() => raw.ended(id)));
      return JSON.parse(ask(() => raw.outcome(id)));
    },
    status: async () => {
      const { state, since, wakes, mailboxes, reason } = ask(() => raw.status(id));
      return { state, since: new Date(Number(since)), wakes: wakes === undefined ? undefined : new Date(Number(wakes)), mailboxes, reason };
    },
    signal: async (mailbox: string, data: unknown = null, { key }: { key?: string } = {}) => ask(() => raw.signal(id, mailbox, toJson(data, "data"), key)),
    cancel: async () => ask(() => raw.cancel(id)),
  });
  return {
    get cancelled() {
      if (controller) return controller.signal;
      const { signal } = (controller = new AbortController());
      try {
        void wait(ask(() => raw.cancelled())).then(() => controller!.abort(new DOMException("the run was cancelled", "AbortError")));
      } catch (error) {
        if (!(error instanceof CapabilityError && error.code === "unavailable")) throw error;
      }
      return signal;
    },
    keepAwake: async (promise: unknown) => {
      const awake: Raw = raw.keepAwake();
      try {
        return await promise;
      } finally {
        awake.drop();
      }
    },
    stash: async (value: unknown) => {
      const text = JSON.stringify(value);
      if (text === undefined) throw new TypeError(`stash: ${typeof value} is not JSON; stash an object, a list, text, a number, true, false or null`);
      ask(() => raw.stash(text), "a stash has at most 64 KiB of JSON");
    },
    recover: async () => {
      const text: string | undefined = ask(() => raw.recover());
      return text === undefined ? undefined : JSON.parse(text);
    },
    start: async (tool: string, input: unknown = {}, { key }: { key?: string } = {}) => {
      const id: string = ask(() => raw.start(tool, toJson(input, "input"), key));
      return started(id);
    },
    started,
  };
}
