// package: debug@4.4.3
// input: {"a": 1}
// output: [false,"x"]
import { extension } from "stile";
import debug from "debug";

export default extension({
  tools: {
    call: {
      description: "Calls debug.",
      run: async (input) => {
        const log = debug("a:b");
        log("hidden %o", input);
        return [Boolean(log.enabled), debug("x").namespace];
      },
    },
  },
});
