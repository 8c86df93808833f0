// package: jsonata@2.2.2
// input: {"orders": [{"p": 2, "q": 3}, {"p": 5, "q": 1}]}
// output: [11,2]
import { extension } from "stile";
import jsonata from "jsonata";

export default extension({
  tools: {
    call: {
      description: "Calls jsonata.",
      run: async (input) => {
        return [await jsonata("$sum(orders.(p * q))").evaluate(input), await jsonata("orders[q > 2].p").evaluate(input)];
      },
    },
  },
});
