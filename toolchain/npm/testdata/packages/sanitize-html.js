// package: sanitize-html@2.17.5
// input: {"html": "<b onclick='x()'>a</b><script>alert(1)</script><a href='javascript:x'>c</a><img src=x>"}
// output: ["<b>a</b><a>c</a>","<b>a</b>c"]
import { extension } from "stile";
import sanitize from "sanitize-html";

export default extension({
  tools: {
    call: {
      description: "Calls sanitize-html.",
      run: async (input) => {
        return [sanitize(input.html), sanitize(input.html, { allowedTags: ["b"], allowedAttributes: {} })];
      },
    },
  },
});
