// package: xmlbuilder2@4.0.3
// input: {"v": "<&>"}
// output: "<?xml version=\"1.0\"?><r k=\"v\"><i>&lt;&amp;&gt;</i></r>"
import { extension } from "stile";
import { create } from "xmlbuilder2";

export default extension({
  tools: {
    call: {
      description: "Calls xmlbuilder2.",
      run: async (input) => {
        return create({ version: "1.0" }).ele("r", { k: "v" }).ele("i").txt(input.v).up().up().end();
      },
    },
  },
});
