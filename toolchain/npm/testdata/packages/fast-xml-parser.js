// package: fast-xml-parser@5.12.1
// input: {"xml": "<a x='1'><b>2</b><b>3</b></a>"}
// output: [{"a":{"b":[2,3],"@_x":"1"}},"<a x=\"1\"><b>2</b><b>3</b></a>"]
import { extension } from "stile";
import { XMLParser, XMLBuilder } from "fast-xml-parser";

export default extension({
  tools: {
    call: {
      description: "Calls fast-xml-parser.",
      run: async (input) => {
        const value = new XMLParser({ ignoreAttributes: false }).parse(input.xml);
        return [value, new XMLBuilder({ ignoreAttributes: false }).build(value)];
      },
    },
  },
});
