// The sugar of stile:capability/runs.
import { AbortController } from "../../toolchain/prelude/abort";
import { wait } from "../../toolchain/prelude/bindings";
import { ask, CapabilityError } from "../../toolchain/prelude/errors";
import type { Raw } from "../../toolchain/prelude/session";

export default function runs(raw: Raw) {
  let controller: AbortController | undefined;
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
  };
}
