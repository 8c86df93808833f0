// The sugar of stile:capability/code.
import { wait } from "../../toolchain/prelude/bindings";
import { passed } from "../../toolchain/prelude/env";
import { ask } from "../../toolchain/prelude/errors";
import { toJson } from "../../toolchain/prelude/json";
import type { Raw } from "../../toolchain/prelude/session";

interface Options {
  input?: unknown;
  env?: Record<string, object>;
  name?: string;
}

/** What is known of code that failed. */
function details(pending: Raw): object {
  try {
    const thrown = pending.thrown();
    const log = pending.log();
    return thrown ? { log, thrown } : { log };
  } catch {
    return { log: [] }; // the grant has ended
  }
}

export default function code(raw: Raw): object {
  return {
    execute: async (text: string, options?: Options | null) => {
      if (typeof (options ?? {}) !== "object") throw new TypeError("execute(code, options): options are an object with input, env and name");
      const { input = null, env = {}, name = "code.ts" } = options ?? {};
      const pending: Raw = ask(() => raw.start(text, name, toJson(input, "input"), passed(env)));
      await wait(pending.subscribe());
      try {
        return { result: JSON.parse(ask(() => pending.take())), log: ask(() => pending.log()) };
      } catch (error) {
        throw Object.assign(error as object, details(pending));
      } finally {
        pending.drop();
      }
    },
  };
}
