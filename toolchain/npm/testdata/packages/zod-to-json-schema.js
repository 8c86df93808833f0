// package: zod-to-json-schema@3.25.2
// package: zod@4.6.7
// input: {"minimum": 2}
// output: {"type":"object","properties":{"a":{"type":"integer","minimum":2},"b":{"type":"string","enum":["x","y"]}},"required":["a"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}
import { extension } from "stile";
import { zodToJsonSchema } from "zod-to-json-schema";
import { z } from "zod/v3";

export default extension({
  tools: {
    call: {
      description: "Calls zod-to-json-schema.",
      run: async (input) => {
        return zodToJsonSchema(z.object({ a: z.number().int().min(input.minimum), b: z.enum(["x", "y"]).optional() }));
      },
    },
  },
});
