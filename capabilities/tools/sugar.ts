// The sugar of stile:capability/tools.
import { wait } from "../../toolchain/prelude/bindings";
import { passed } from "../../toolchain/prelude/env";
import { ask } from "../../toolchain/prelude/errors";
import { toJson } from "../../toolchain/prelude/json";
import type { Raw } from "../../toolchain/prelude/session";

interface CallOptions {
  env?: Record<string, object>;
}

// Every object has a `constructor`, and an extension or a tool can have that name.
const words = { constructor: undefined };

export default function tools(raw: Raw): object {
  const own: Record<string, unknown> = {
    ...words,
    call: async (name: string, input: unknown = {}, { env = {} }: CallOptions = {}) => {
      const pending: Raw = ask(() => raw.start(name, toJson(input, "input"), passed(env)));
      await wait(pending.subscribe());
      try {
        return JSON.parse(ask(() => pending.take()));
      } finally {
        pending.drop();
      }
    },
    search: async (query: string, limit = 20) =>
      ask(() => raw.search(query, limit)).map(({ name, description, inputSchema }: any) => ({
        name,
        description,
        inputSchema: JSON.parse(inputSchema),
      })),
    describe: async (...names: string[]) => ask(() => raw.describe(names.flat())),
  };
  const call = own.call as (name: string, ...rest: unknown[]) => unknown;
  const named = (make: (name: string) => unknown, target: object, own: any = words) =>
    new Proxy(target, {
      get: (_, name) => own[name] ?? (typeof name === "symbol" || name === "then" || name === "toJSON" ? undefined : make(name)),
    });
  // tools.github.list_issues(input) is tools.call("github_list_issues", input), and tools.github(input) is tools.call("github", input).
  // If there is no such tool, the host's error lists the tools.
  const calling = (name: string) => (...rest: unknown[]) => call(name, ...rest);
  const deeper = (extension: string, tool: string) => {
    const made = calling(`${extension}_${tool}`);
    return named((name) => {
      throw new TypeError(`tools.${extension}.${tool}.${name} is not a function; tools are tools.EXTENSION.TOOL(input), and tools.search(query) finds them`);
    }, made, made);
  };
  return named((extension) => named((tool) => deeper(extension, tool), calling(extension)), {}, own);
}
