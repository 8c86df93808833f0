// package: decimal.js@10.6.0
// input: {"a": "0.1"}
// output: ["0.3","3.1415926535897932385"]
import { extension } from "stile";
import Decimal from "decimal.js";

export default extension({
  tools: {
    call: {
      description: "Calls decimal.js.",
      run: async (input) => {
        return [new Decimal(input.a).plus("0.2").toString(), Decimal.acos(-1).toString()];
      },
    },
  },
});
