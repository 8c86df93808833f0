// package: jsonc-parser@3.3.1
// input: {"text": "{\n  // c\n  \"a\": 1,\n}"}
// output: [{"a":1},"{\n  // c\n  \"a\": 1,\n  \"b\": 2,\n}"]
import { extension } from "stile";
import { applyEdits, modify, parse } from "jsonc-parser";

export default extension({
  tools: {
    call: {
      description: "Calls jsonc-parser.",
      run: async (input) => {
        return [parse(input.text), applyEdits(input.text, modify(input.text, ["b"], 2, { formattingOptions: { tabSize: 2, insertSpaces: true } }))];
      },
    },
  },
});
