// package: arktype@2.2.9
// input: {"a": "x", "b": 1.5}
// output: ["b must be an integer (was 1.5)",{"a":"x","b":2}]
import { extension } from "stile";
import { type } from "arktype";

export default extension({
  tools: {
    call: {
      description: "Calls arktype.",
      run: async (input) => {
        const t = type({ a: "string", b: "number.integer > 1" });
        return [t(input).summary, t({ a: "x", b: 2 })];
      },
    },
  },
});
