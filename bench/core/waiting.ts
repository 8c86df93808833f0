import { extension } from "stile";

export default extension({
  tools: {
    none: { description: "Does not wait", input: { type: "object" }, run: () => "ended" },
    once: {
      description: "Waits for a millisecond",
      input: { type: "object" },
      run: async (_, env) => {
        await env.clock.sleep(1);
        return "ended";
      },
    },
    long: {
      description: "Waits until the benchmark ends it",
      input: { type: "object" },
      run: async (_, env) => {
        await env.clock.sleep(60_000);
        return "ended";
      },
    },
    get: {
      description: "Makes a request",
      input: { type: "object", properties: { url: { type: "string" } }, required: ["url"] },
      run: async ({ url }, env) => await (await env.web.fetch(url)).text(),
    },
  },
});
