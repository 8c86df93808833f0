// package: bluebird@3.7.2
// input: {"n": [3, 1, 2]}
// output: 12
import { extension } from "stile";
import Promise from "bluebird";

export default extension({
  tools: {
    call: {
      description: "Calls bluebird.",
      run: async (input) => {
        return Promise.map(input.n, (n) => Promise.delay(n, n * 2), { concurrency: 2 }).reduce((a, b) => a + b, 0);
      },
    },
  },
});
