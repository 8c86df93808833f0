// package: smol-toml@1.9.1
// input: {"text": "a = 1\n[b]\nc = [1.5, \"x\"]\nd = 2024-01-02T03:04:05Z\n"}
// output: [{"a":1,"b":{"c":[1.5,"x"],"d":"2024-01-02T03:04:05.000Z"}},"[x]\ny = [ 1, 2 ]\n"]
import { extension } from "stile";
import { parse, stringify } from "smol-toml";

export default extension({
  tools: {
    call: {
      description: "Calls smol-toml.",
      run: async (input) => {
        return [parse(input.text), stringify({ x: { y: [1, 2] } })];
      },
    },
  },
});
