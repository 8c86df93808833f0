// package: turndown@7.2.5
// input: {"html": "<h1>Hi <em>there</em></h1><ul><li>a</li><li>b</li></ul><p><a href='https://example.com/'>x</a></p>"}
// output: "# Hi _there_\n\n*   a\n*   b\n\n[x](https://example.com/)"
import { extension } from "stile";
import TurndownService from "turndown";

export default extension({
  tools: {
    call: {
      description: "Calls turndown.",
      run: async (input) => {
        return new TurndownService({ headingStyle: "atx" }).turndown(input.html);
      },
    },
  },
});
