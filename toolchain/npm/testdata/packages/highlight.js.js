// package: highlight.js@11.12.0
// input: {"code": "func f() { return nil }"}
// output: ["<span class=\"hljs-function\"><span class=\"hljs-keyword\">func</span> <span class=\"hljs-title\">f</span><span class=\"hljs-params\">()</span></span> { <span class=\"hljs-keyword\">return</span> <span class=\"hljs-literal\">nil</span> }",true]
import { extension } from "stile";
import hljs from "highlight.js";

export default extension({
  tools: {
    call: {
      description: "Calls highlight.js.",
      run: async (input) => {
        return [hljs.highlight(input.code, { language: "go" }).value, hljs.listLanguages().length > 100];
      },
    },
  },
});
