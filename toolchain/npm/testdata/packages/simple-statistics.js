// package: simple-statistics@7.12.1
// input: {"x": [1, 2, 3, 4, 10]}
// output: [4,3,3.1622776601683795,4,{"m":2,"b":1}]
import { extension } from "stile";
import * as ss from "simple-statistics";

export default extension({
  tools: {
    call: {
      description: "Calls simple-statistics.",
      run: async (input) => {
        return [ss.mean(input.x), ss.median(input.x), ss.standardDeviation(input.x), ss.quantile(input.x, 0.75), ss.linearRegression([[0, 1], [1, 3], [2, 5]])];
      },
    },
  },
});
