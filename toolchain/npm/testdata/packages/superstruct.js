// package: superstruct@2.0.2
// input: {"a": "x", "b": "y"}
// output: ["At path: b -- Expected a number, but received: \"y\"",null]
import { extension } from "stile";
import { object, string, number, validate } from "superstruct";

export default extension({
  tools: {
    call: {
      description: "Calls superstruct.",
      run: async (input) => {
        const [error, value] = validate(input, object({ a: string(), b: number() }));
        return [error.message, value ?? null];
      },
    },
  },
});
