// package: qs@6.17.1
// input: {"query": "a[b]=1&a[c][]=2&a[c][]=3"}
// output: [{"a":{"b":"1","c":["2","3"]}},"a[b][0]=c&a[b][1]=d"]
import { extension } from "stile";
import qs from "qs";

export default extension({
  tools: {
    call: {
      description: "Calls qs.",
      run: async (input) => {
        return [qs.parse(input.query), qs.stringify({ a: { b: ["c", "d"] } }, { encode: false })];
      },
    },
  },
});
