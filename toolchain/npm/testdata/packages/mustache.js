// package: mustache@4.2.0
// input: {"a": [{"b": 1}, {"b": "<"}], "c": "<i>"}
// output: "1&lt;<i>"
import { extension } from "stile";
import Mustache from "mustache";

export default extension({
  tools: {
    call: {
      description: "Calls mustache.",
      run: async (input) => {
        return Mustache.render("{{#a}}{{b}}{{/a}}{{{c}}}", input);
      },
    },
  },
});
