// package: zod@4.6.7
// input: {"m": "a@example.com"}
// output: [{"a":2,"m":"a@example.com"},[[["m"],"invalid_format"]],["a","m"]]
import { extension } from "stile";
import { z } from "zod";

export default extension({
  tools: {
    call: {
      description: "Calls zod.",
      run: async (input) => {
        const s = z.object({ a: z.number().default(2), m: z.string().email() });
        return [s.parse(input), s.safeParse({ m: "x" }).error.issues.map((i) => [i.path, i.code]), z.toJSONSchema(s).required];
      },
    },
  },
});
