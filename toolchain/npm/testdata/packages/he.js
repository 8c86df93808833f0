// package: he@1.2.0
// input: {"text": "a &lt; b &eacute; &#x1f600;"}
// output: ["a < b é 😀","&lt;&uuml;&gt;"]
import { extension } from "stile";
import he from "he";

export default extension({
  tools: {
    call: {
      description: "Calls he.",
      run: async (input) => {
        return [he.decode(input.text), he.encode("<ü>", { useNamedReferences: true })];
      },
    },
  },
});
