// package: valibot@1.5.0
// input: {"a": "x", "b": -1}
// output: ["Invalid value: Expected >=0 but received -1"]
import { extension } from "stile";
import * as v from "valibot";

export default extension({
  tools: {
    call: {
      description: "Calls valibot.",
      run: async (input) => {
        const r = v.safeParse(v.object({ a: v.string(), b: v.pipe(v.number(), v.minValue(0)) }), input);
        return r.issues.map((i) => i.message);
      },
    },
  },
});
