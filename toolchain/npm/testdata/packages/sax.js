// package: sax@1.6.1
// input: {"xml": "<a x='1'>t<b/><![CDATA[c<]]></a>"}
// output: [["a",{"x":"1"}],"t",["b",{}],"c<"]
import { extension } from "stile";
import sax from "sax";

export default extension({
  tools: {
    call: {
      description: "Calls sax.",
      run: async (input) => {
        const seen = [];
        const parser = sax.parser(true);
        parser.onopentag = (n) => seen.push([n.name, n.attributes]);
        parser.ontext = (v) => seen.push(v);
        parser.oncdata = (v) => seen.push(v);
        parser.write(input.xml).close();
        return seen;
      },
    },
  },
});
