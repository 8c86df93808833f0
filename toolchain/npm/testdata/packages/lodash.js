// package: lodash@4.18.1
// input: {"list": [3, 1, 2]}
// output: [[[1,2],[3]],"Hi Ada",{"a":{"b":1,"c":2}}]
import { extension } from "stile";
import _ from "lodash";

export default extension({
  tools: {
    call: {
      description: "Calls lodash.",
      run: async (input) => {
        return [_.chunk(_.sortBy(input.list), 2), _.template("Hi <%= name %>")({ name: "Ada" }), _.merge({ a: { b: 1 } }, { a: { c: 2 } })];
      },
    },
  },
});
