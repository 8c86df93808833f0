// package: joi@18.3.2
// input: {"a": "5", "m": "a@example.com"}
// output: [{"a":5,"m":"a@example.com"},["\"a\" is required","\"m\" must be a valid email"]]
import { extension } from "stile";
import Joi from "joi";

export default extension({
  tools: {
    call: {
      description: "Calls joi.",
      run: async (input) => {
        const s = Joi.object({ a: Joi.number().integer().required(), m: Joi.string().email({ tlds: false }) });
        return [s.validate(input).value, s.validate({ m: "x" }, { abortEarly: false }).error.details.map((d) => d.message)];
      },
    },
  },
});
