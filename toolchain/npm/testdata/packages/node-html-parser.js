// package: node-html-parser@9.0.7
// input: {"html": "<ul id=l><li class=x>1<li>2</ul>"}
// output: [["1","2"],"l"]
import { extension } from "stile";
import { parse } from "node-html-parser";

export default extension({
  tools: {
    call: {
      description: "Calls node-html-parser.",
      run: async (input) => {
        const root = parse(input.html);
        return [root.querySelectorAll("li").map((e) => e.text), root.querySelector(".x").parentNode.id];
      },
    },
  },
});
