// package: pluralize@8.0.0
// input: {"words": ["mouse", "box", "children"]}
// output: [["mice","mouse","2 mice"],["boxes","box","2 boxes"],["children","child","2 children"]]
import { extension } from "stile";
import pluralize from "pluralize";

export default extension({
  tools: {
    call: {
      description: "Calls pluralize.",
      run: async (input) => {
        return input.words.map((w) => [pluralize(w), pluralize.singular(w), pluralize(w, 2, true)]);
      },
    },
  },
});
