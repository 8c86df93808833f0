// package: elliptic@6.6.1
// input: {"text": "00ff"}
// output: ["0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",true,"3045022100ee47a98fcbe9bbfe0d27f0d16075582e06c26d70e9d88f21b13da838504415c402205faa65bcb6b6e42c471be2d4602bef5da3479b0041903c88d739befdea6f789e"]
import { extension } from "stile";
import elliptic from "elliptic";

export default extension({
  tools: {
    call: {
      description: "Calls elliptic.",
      run: async (input) => {
        const key = new elliptic.ec("secp256k1").keyFromPrivate("1".padStart(64, "0"), "hex");
        const signed = key.sign(input.text);
        return [key.getPublic(true, "hex"), key.verify(input.text, signed), signed.toDER("hex")];
      },
    },
  },
});
