// package: compromise@14.17.0
// input: {"t": "She sells two shells."}
// output: [["sells"],"She sold two shells."]
import { extension } from "stile";
import nlp from "compromise";

export default extension({
  tools: {
    call: {
      description: "Calls compromise.",
      run: async (input) => {
        return [nlp(input.t).verbs().out("array"), nlp(input.t).sentences().toPastTense().text()];
      },
    },
  },
});
