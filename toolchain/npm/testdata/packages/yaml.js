// package: yaml@2.9.1
// input: {"text": "a: [1, 2]\nb: &x {c: 3}\nd: *x"}
// output: ["c: 3\n","# c\na: 1\nb: 2\n"]
import { extension } from "stile";
import { parse, parseDocument, stringify } from "yaml";

export default extension({
  tools: {
    call: {
      description: "Calls yaml.",
      run: async (input) => {
        const doc = parseDocument("# c\na: 1\n");
        doc.set("b", 2);
        return [stringify(parse(input.text).d), String(doc)];
      },
    },
  },
});
