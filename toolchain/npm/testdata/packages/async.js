// package: async@3.2.6
// input: {"n": [3, 1, 2]}
// output: [[6,2,4],[1,2,3]]
import { extension } from "stile";
import async from "async";

export default extension({
  tools: {
    call: {
      description: "Calls async.",
      run: async (input) => {
        return [await async.mapLimit(input.n, 2, async (n) => n * 2), await async.sortBy(input.n, async (n) => n)];
      },
    },
  },
});
