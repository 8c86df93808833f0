// package: entities@9.0.0
// input: {"t": "&copy &auml;"}
// output: ["© ä","&lt;&#233;&gt;"]
import { extension } from "stile";
import { decodeHTML, encodeXML } from "entities";

export default extension({
  tools: {
    call: {
      description: "Calls entities.",
      run: async (input) => {
        return [decodeHTML(input.t), encodeXML("<é>")];
      },
    },
  },
});
