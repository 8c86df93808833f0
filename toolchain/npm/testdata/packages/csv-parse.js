// package: csv-parse@7.0.3
// input: {"csv": "a,b\n1,\"x,y\"\n"}
// output: [{"a":1,"b":"x,y"}]
import { extension } from "stile";
import { parse } from "csv-parse/sync";

export default extension({
  tools: {
    call: {
      description: "Calls csv-parse.",
      run: async (input) => {
        return parse(input.csv, { columns: true, cast: true });
      },
    },
  },
});
