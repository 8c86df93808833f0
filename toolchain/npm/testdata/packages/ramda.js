// package: ramda@0.32.0
// input: {"list": [1, 2, 3]}
// output: [12,{"odd":[1,3],"even":[2]},true]
import { extension } from "stile";
import * as R from "ramda";

export default extension({
  tools: {
    call: {
      description: "Calls ramda.",
      run: async (input) => {
        return [R.pipe(R.map(R.multiply(2)), R.sum)(input.list), R.groupBy((x) => x % 2 ? "odd" : "even", input.list), R.equals({ a: [1] }, { a: [1] })];
      },
    },
  },
});
