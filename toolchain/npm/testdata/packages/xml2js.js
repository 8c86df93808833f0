// package: xml2js@0.6.2
// input: {"xml": "<a x='1'><b>2</b></a>"}
// output: [{"a":{"$":{"x":"1"},"b":["2"]}},"<a>\n  <b>1</b>\n  <b>2</b>\n</a>"]
import { extension } from "stile";
import { Builder, parseStringPromise } from "xml2js";

export default extension({
  tools: {
    call: {
      description: "Calls xml2js.",
      run: async (input) => {
        return [await parseStringPromise(input.xml), new Builder({ headless: true }).buildObject({ a: { b: ["1", "2"] } })];
      },
    },
  },
});
