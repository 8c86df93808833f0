// package: jsonschema@1.5.0
// input: {"a": "x"}
// output: ["instance.a is not of a type(s) number","instance requires property \"b\""]
import { extension } from "stile";
import { Validator } from "jsonschema";

export default extension({
  tools: {
    call: {
      description: "Calls jsonschema.",
      run: async (input) => {
        return new Validator().validate(input, { type: "object", properties: { a: { type: "number" } }, required: ["b"] }).errors.map((e) => e.stack);
      },
    },
  },
});
