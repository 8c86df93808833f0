import { CapabilityError, extension } from "stile";

const input = { type: "object" } as const;

export default extension({
  tools: {
    steps: {
      description: "Steps in a browser, and what each did",
      input,
      run: async ({ steps }: any, { web }: any) => {
        const results = [];
        for (const [method, argument] of steps) {
          try {
            if (method === "open") {
              const { title, status } = await web.open(argument);
              results.push([title, status]);
            } else if (method === "text") results.push(await web.text(argument));
            else results.push(await web.evaluate(argument));
          } catch (error) {
            if (!(error instanceof CapabilityError)) throw error;
            results.push({ error: error.code });
          }
        }
        return results;
      },
    },
  },
});
