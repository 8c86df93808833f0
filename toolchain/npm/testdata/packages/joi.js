// package: joi@18.3.2
// input: {"name": "a", "mail": "x@example.com", "age": "7"}
// output: [{"name":"a","mail":"x@example.com","age":7},["\"name\" length must be at least 2 characters long"]]
import { extension } from "stile";
import Joi from "joi";

export default extension({
  tools: {
    call: {
      description: "Calls joi.",
      run: async (input) => {
        const schema = Joi.object({ name: Joi.string().min(2).required(), mail: Joi.string().email({ tlds: { allow: false } }), age: Joi.number().integer() });
        const { error, value } = schema.validate(input, { abortEarly: false });
        return [value, error.details.map((d) => d.message)];
      },
    },
  },
});
