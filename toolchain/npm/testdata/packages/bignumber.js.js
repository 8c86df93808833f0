// package: bignumber.js@11.1.5
// input: {"a": "0.1"}
// output: ["0.3","123,456.79"]
import { extension } from "stile";
import BigNumber from "bignumber.js";

export default extension({
  tools: {
    call: {
      description: "Calls bignumber.js.",
      run: async (input) => {
        return [new BigNumber(input.a).times(3).toString(), new BigNumber("123456.789").toFormat(2)];
      },
    },
  },
});
