// package: seedrandom@3.0.5
// input: {"seed": "x"}
// output: [0.9080614664401105,-1101261577,0.2613884243182838]
import { extension } from "stile";
import seedrandom from "seedrandom";

export default extension({
  tools: {
    call: {
      description: "Calls seedrandom.",
      run: async (input) => {
        const next = seedrandom(input.seed);
        return [next(), next.int32(), seedrandom.alea(input.seed)()];
      },
    },
  },
});
