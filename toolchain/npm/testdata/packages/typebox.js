// package: @sinclair/typebox@0.34.52
// input: {"a": 1}
// output: [true,["Expected integer"],{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"type":"string"}}}]
import { extension } from "stile";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

export default extension({
  tools: {
    call: {
      description: "Calls @sinclair/typebox.",
      run: async (input) => {
        const T = Type.Object({ a: Type.Integer(), b: Type.Optional(Type.String()) });
        return [Value.Check(T, input), [...Value.Errors(T, { a: "x" })].map((e) => e.message), T];
      },
    },
  },
});
