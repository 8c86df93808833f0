// package: query-string@9.5.1
// input: {"q": "?a=1&b[]=2&b[]=3&c"}
// output: [{"a":1,"b":[2,3],"c":null},"https://x.example/?z=%C3%BC"]
import { extension } from "stile";
import queryString from "query-string";

export default extension({
  tools: {
    call: {
      description: "Calls query-string.",
      run: async (input) => {
        return [queryString.parse(input.q, { arrayFormat: "bracket", parseNumbers: true }), queryString.stringifyUrl({ url: "https://x.example/", query: { z: "ü" } })];
      },
    },
  },
});
