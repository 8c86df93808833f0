// package: ajv@8.20.0
// input: {"minimum": 3}
// output: [true,false,"must be >= 3",false,"must have required property 'a'"]
import { extension } from "stile";
import Ajv from "ajv";

export default extension({
  tools: {
    call: {
      description: "Calls ajv.",
      run: async (input) => {
        const check = new Ajv().compile({ type: "object", required: ["a"], properties: { a: { type: "integer", minimum: input.minimum } } });
        return [check({ a: 5 }), check({ a: 1 }), check.errors[0].message, check({}), check.errors[0].message];
      },
    },
  },
});
