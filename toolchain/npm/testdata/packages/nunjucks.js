// package: nunjucks@3.2.4
// input: {"names": ["a", "<b>"]}
// output: "1:a 2:&lt;b&gt; "
import { extension } from "stile";
import nunjucks from "nunjucks";

export default extension({
  tools: {
    call: {
      description: "Calls nunjucks.",
      run: async (input) => {
        return nunjucks.renderString("{% for n in names %}{{ loop.index }}:{{ n }} {% endfor %}", input);
      },
    },
  },
});
