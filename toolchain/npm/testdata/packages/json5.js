// package: json5@2.2.3
// input: {"text": "{a: 0x10, /* c */ b: 'x', c: [1,],}"}
// output: [{"a":16,"b":"x","c":[1]},"{a:\"it's\"}"]
import { extension } from "stile";
import JSON5 from "json5";

export default extension({
  tools: {
    call: {
      description: "Calls json5.",
      run: async (input) => {
        return [JSON5.parse(input.text), JSON5.stringify({ a: "it's" })];
      },
    },
  },
});
