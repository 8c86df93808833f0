// package: lru-cache@11.5.3
// input: {"max": 2}
// output: [["c","b"],null,"x!"]
import { extension } from "stile";
import { LRUCache } from "lru-cache";

export default extension({
  tools: {
    call: {
      description: "Calls lru-cache.",
      run: async (input) => {
        const c = new LRUCache({ max: input.max, ttl: 1000 });
        for (const k of ["a", "b", "c"]) c.set(k, k);
        return [[...c.keys()], c.get("a") ?? null, await new LRUCache({ max: 2, fetchMethod: async (k) => k + "!" }).fetch("x")];
      },
    },
  },
});
