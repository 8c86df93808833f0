// The sugar of stile:capability/tools.
import { wait } from "./bindings";
import { ask } from "./errors";
import { nothing, type Raw } from "./session";

export function tools(raw: Raw) {
  return {
    call: async (name: string, input: unknown = {}) => {
      const pending: Raw = ask(() => raw.start(name, JSON.stringify(input), nothing()));
      await wait(pending.subscribe());
      return JSON.parse(ask(() => pending.take()));
    },
    search: async (query: string, limit = 20) =>
      ask(() => raw.search(query, limit)).map(({ name, description, inputSchema }: any) => ({
        name,
        description,
        inputSchema: JSON.parse(inputSchema),
      })),
  };
}
