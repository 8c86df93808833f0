// package: csv-parse@7.0.3
// input: {"text": "a,b\n1,\"x,y\"\n2,\"say \"\"hi\"\"\"\n"}
// output: [{"a":1,"b":"x,y"},{"a":2,"b":"say \"hi\""}]
import { extension } from "stile";
import { parse } from "csv-parse/sync";

export default extension({
  tools: {
    call: {
      description: "Calls csv-parse.",
      run: async (input) => {
        return parse(input.text, { columns: true, cast: true });
      },
    },
  },
});
