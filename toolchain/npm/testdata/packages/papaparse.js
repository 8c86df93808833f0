// package: papaparse@5.7.1
// input: {"csv": "a,b\n1,\"2,3\"\n4,\"5\"\"6\""}
// output: [[{"a":"1","b":"2,3"},{"a":"4","b":"5\"6"}],"a,b\r\n1,\"2,3\"\r\n4,\"5\"\"6\""]
import { extension } from "stile";
import Papa from "papaparse";

export default extension({
  tools: {
    call: {
      description: "Calls papaparse.",
      run: async (input) => {
        const { data } = Papa.parse(input.csv, { header: true });
        return [data, Papa.unparse(data)];
      },
    },
  },
});
