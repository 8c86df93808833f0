// package: big.js@7.0.1
// input: {"a": "0.1"}
// output: ["0.3","1.414213562373095048800000000000"]
import { extension } from "stile";
import Big from "big.js";

export default extension({
  tools: {
    call: {
      description: "Calls big.js.",
      run: async (input) => {
        return [new Big(input.a).plus("0.2").toString(), new Big(2).sqrt().toFixed(30)];
      },
    },
  },
});
