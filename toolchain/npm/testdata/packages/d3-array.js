// package: d3-array@3.2.5
// input: {"list": [1, 2, 3, 4, 10]}
// output: [[1,10],4,3,3,[[1,2],[0,3]]]
import { extension } from "stile";
import { bin, extent, mean, median, rollup } from "d3-array";

export default extension({
  tools: {
    call: {
      description: "Calls d3-array.",
      run: async (input) => {
        return [extent(input.list), mean(input.list), median(input.list), bin().thresholds(3)(input.list).length, [...rollup(input.list, (v) => v.length, (d) => d % 2)]];
      },
    },
  },
});
