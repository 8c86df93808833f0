import { extension } from "stile";

const PREFIX = "tally:";

export default extension({
  tools: {
    count: {
      description: "Add to a counter",
      input: {
        type: "object",
        properties: { name: { type: "string", minLength: 1, maxLength: 100 }, by: { type: "integer", default: 1 } },
        required: ["name"],
      },
      run: async ({ name, by = 1 }, env) => ({ name, total: await env.kv.increment(PREFIX + name, by) }),
    },
    totals: {
      description: "All counters, the largest first",
      annotations: { readOnly: true },
      run: async (_input, env) => {
        const all: { name: string; total: number }[] = [];
        let cursor: string | undefined;
        do {
          const page = await env.kv.list(PREFIX, { cursor });
          for (const { key, value } of page.entries) all.push({ name: key.slice(PREFIX.length), total: Number(value) });
          cursor = page.cursor;
        } while (cursor);
        return all.sort((a, b) => b.total - a.total || a.name.localeCompare(b.name));
      },
    },
  },
});
