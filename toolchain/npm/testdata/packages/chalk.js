// package: chalk@5.6.2
// input: {"text": "hi"}
// output: "\u001b[31mhi\u001b[39m"
import { extension } from "stile";
import { Chalk } from "chalk";

export default extension({
  tools: {
    call: {
      description: "Calls chalk.",
      run: async (input) => {
        return new Chalk({ level: 1 }).red(input.text);
      },
    },
  },
});
