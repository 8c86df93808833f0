// package: pako@3.0.3
// input: {"text": "hello hello hello"}
// output: ["hello hello hello",true]
import { extension } from "stile";
import * as pako from "pako";

export default extension({
  tools: {
    call: {
      description: "Calls pako.",
      run: async (input) => {
        return [new TextDecoder().decode(pako.inflate(pako.deflate(input.text))), pako.gzip("a").length > 10];
      },
    },
  },
});
