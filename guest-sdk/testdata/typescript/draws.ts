// A guest that draws random numbers in each way there is.
import { extension } from "stile";

export default extension({
  tools: {
    draws: {
      description: "Draws",
      input: { type: "object" },
      run: (_, env) => ({
        "Math.random": String(Math.random()),
        "crypto.getRandomValues": crypto.getRandomValues(new Uint8Array(17)).join(),
        "crypto.randomUUID": crypto.randomUUID(),
        bytes: env.random.bytes(17).join(),
        u64: env.random.u64().toString(),
      }),
    },
  },
});
