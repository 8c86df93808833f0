import { extension } from "stile";

export default extension({
  tools: {
    count_all: {
      description: "Count each word with the counters of tally",
      input: { type: "object", properties: { words: { type: "array", items: { type: "string" }, maxItems: 100 } }, required: ["words"] },
      run: async ({ words }, env) => {
        const totals: Record<string, number> = {};
        for (const word of words) {
          const { total } = await env.others.tally_count({ name: word });
          totals[word] = total;
        }
        return totals;
      },
    },
  },
});
