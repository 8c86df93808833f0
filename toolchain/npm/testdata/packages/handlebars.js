// package: handlebars@4.7.10
// input: {"names": ["a", "<b>"]}
// output: "Hi A &lt;B&gt; "
import { extension } from "stile";
import Handlebars from "handlebars";

export default extension({
  tools: {
    call: {
      description: "Calls handlebars.",
      run: async (input) => {
        Handlebars.registerHelper("up", (s) => s.toUpperCase());
        return Handlebars.compile("Hi {{#each names}}{{up this}} {{/each}}")(input);
      },
    },
  },
});
