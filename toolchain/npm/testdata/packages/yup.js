// package: yup@1.7.1
// input: {"a": "5", "m": "a@example.com"}
// output: [{"m":"a@example.com","a":5},["a is a required field","m must be a valid email"]]
import { extension } from "stile";
import * as yup from "yup";

export default extension({
  tools: {
    call: {
      description: "Calls yup.",
      run: async (input) => {
        const s = yup.object({ a: yup.number().required().positive(), m: yup.string().email() });
        return [await s.validate(input), await s.validate({ m: "x" }, { abortEarly: false }).catch((e) => e.errors)];
      },
    },
  },
});
