// package: linkedom@0.18.15
// input: {"html": "<!doctype html><html><body><p>Hi <b>there</b></p></body></html>"}
// missing: Intl
import { extension } from "stile";
import { parseHTML } from "linkedom";

export default extension({
  tools: {
    call: {
      description: "Calls linkedom.",
      run: async (input) => {
        const { document } = parseHTML(input.html);
        document.querySelector("b").textContent = "you";
        const p = document.createElement("p");
        p.setAttribute("class", "n");
        document.body.append(p);
        return document.body.innerHTML;
      },
    },
  },
});
