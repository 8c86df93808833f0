// package: htmlparser2@12.0.0
// input: {"html": "<p>a<b class=x>c</p>"}
// output: ["ac","<b class=\"x\">c</b>"]
import { extension } from "stile";
import { DomUtils, parseDocument } from "htmlparser2";

export default extension({
  tools: {
    call: {
      description: "Calls htmlparser2.",
      run: async (input) => {
        const doc = parseDocument(input.html);
        return [DomUtils.textContent(doc), DomUtils.getOuterHTML(DomUtils.findOne((e) => e.name === "b", doc.children))];
      },
    },
  },
});
