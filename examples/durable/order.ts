// An order that waits for a person's approval, for days, in plain async TypeScript.
import { extension } from "stile";

export default extension({
  tools: {
    order: {
      description: "Reserve an article, wait until a person approves, and ship it",
      input: {
        type: "object",
        properties: { article: { type: "string" }, count: { type: "integer", minimum: 1 } },
        required: ["article", "count"],
      },
      run: async ({ article, count }, { orders, mail, clock }) => {
        const reserved = await orders.increment(`reserved/${article}`, count);
        const signal = await mail.receive("approved", { timeout: "7 days" });
        // What a signal says comes from outside, so its shape is checked.
        const by = (signal?.data as { by?: unknown } | null | undefined)?.by;
        if (typeof by !== "string") {
          await orders.increment(`reserved/${article}`, -count);
          return { article, reserved, shipped: 0, by: null };
        }
        await clock.sleep("1 day"); // the warehouse collects orders
        const shipped = await orders.increment(`shipped/${article}`, count);
        return { article, reserved, shipped, by };
      },
    },
  },
});
