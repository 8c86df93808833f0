// package: markdown-it@15.0.3
// input: {"text": "**a** https://example.com\n\n1. x\n"}
// output: "<p><strong>a</strong> <a href=\"https://example.com\">https://example.com</a></p>\n<ol>\n<li>x</li>\n</ol>\n"
import { extension } from "stile";
import MarkdownIt from "markdown-it";

export default extension({
  tools: {
    call: {
      description: "Calls markdown-it.",
      run: async (input) => {
        return new MarkdownIt({ linkify: true }).render(input.text);
      },
    },
  },
});
