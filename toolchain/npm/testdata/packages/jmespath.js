// package: jmespath@0.16.0
// input: {"a": [{"n": "x", "v": 1}, {"n": "y", "v": 5}]}
// output: "y"
import { extension } from "stile";
import jmespath from "jmespath";

export default extension({
  tools: {
    call: {
      description: "Calls jmespath.",
      run: async (input) => {
        return jmespath.search(input, "a[?v > `2`].n | [0]");
      },
    },
  },
});
