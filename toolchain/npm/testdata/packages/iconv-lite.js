// package: iconv-lite@0.7.3
// input: {"text": "Ü€"}
// output: ["dc80","日"]
import { extension } from "stile";
import { Buffer } from "node:buffer";
import iconv from "iconv-lite";

export default extension({
  tools: {
    call: {
      description: "Calls iconv-lite.",
      run: async (input) => {
        return [iconv.encode(input.text, "win1252").toString("hex"), iconv.decode(Buffer.from([0x93, 0xfa]), "shift_jis")];
      },
    },
  },
});
