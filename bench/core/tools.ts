import { extension } from "stile";

const heron = (a: number, b: number, c: number) => {
  const s = (a + b + c) / 2;
  return Math.sqrt(s * (s - a) * (s - b) * (s - c));
};

export default extension({
  tools: {
    gets: {
      description: "Reads a key over and over",
      input: { type: "object", properties: { times: { type: "integer" } }, required: ["times"] },
      run: async ({ times }, env) => {
        let last;
        for (let i = 0; i < times; i++) last = await env.store.get("present");
        return { last };
      },
    },
    hold: {
      description: "Does some work and then waits",
      input: { type: "object" },
      run: async (_, env) => {
        const area = heron(3, 4, 5);
        await env.clock.sleep(60_000);
        return { area };
      },
    },
    spin: {
      description: "Never ends by itself",
      input: { type: "object" },
      run: () => {
        for (;;);
      },
    },
  },
});
