// package: js-yaml@5.5.0
// input: {"text": "a: [1, 2]\nb: &x {c: 3}\nd: *x\n"}
// output: [{"a":[1,2],"b":{"c":3},"d":{"c":3}},"a:\n  - 1\n  - b: 'x: y'\n"]
import { extension } from "stile";
import * as yaml from "js-yaml";

export default extension({
  tools: {
    call: {
      description: "Calls js-yaml.",
      run: async (input) => {
        return [yaml.load(input.text), yaml.dump({ a: [1, { b: "x: y" }] })];
      },
    },
  },
});
