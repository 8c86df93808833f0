// package: remark@15.0.1
// input: {"text": "# Hi *there* &copy;\n\n* a\n* b\n"}
// output: ["## Hi *there* ©\n\n* a\n* b\n",["texta ","emphasis","text &"]]
import { extension } from "stile";
import { remark } from "remark";

export default extension({
  tools: {
    call: {
      description: "Calls remark.",
      run: async (input) => {
        const file = await remark().use(() => (tree) => { tree.children[0].depth = 2; }).process(input.text);
        return [String(file), remark().parse("a *b* &amp;").children[0].children.map((c) => c.type + (c.value ?? ""))];
      },
    },
  },
});
