// package: deepmerge@4.3.1
// input: {"a": {"x": [1]}, "b": {"x": [2], "y": 1}}
// output: {"x":[1,2],"y":1}
import { extension } from "stile";
import merge from "deepmerge";

export default extension({
  tools: {
    call: {
      description: "Calls deepmerge.",
      run: async (input) => {
        return merge(input.a, input.b);
      },
    },
  },
});
