// package: ejs@7.0.2
// input: {"names": ["a", "<b>"]}
// output: "a;&lt;b&gt;;"
import { extension } from "stile";
import ejs from "ejs";

export default extension({
  tools: {
    call: {
      description: "Calls ejs.",
      run: async (input) => {
        return ejs.render("<% for (const n of names) { %><%= n %>;<% } %>", input);
      },
    },
  },
});
