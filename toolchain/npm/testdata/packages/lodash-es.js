// package: lodash-es@4.18.1
// input: {"list": [3, 1, 2]}
// output: [[1,2],[3]]
import { extension } from "stile";
import { chunk } from "lodash-es";
import sortBy from "lodash-es/sortBy.js";

export default extension({
  tools: {
    call: {
      description: "Calls lodash-es.",
      run: async (input) => {
        return chunk(sortBy(input.list), 2);
      },
    },
  },
});
