// package: tweetnacl@1.0.3
// input: {"text": "hello"}
// output: ["359a315920d9541c3cc2a1dd1839f3e40bf23358a1d93a6ebd8303c0310ceb5025e679222ab016b4d822c5001e787e00c0ceaa6ac3c6e80248a944bd47104f0c",true]
import { extension } from "stile";
import nacl from "tweetnacl";

export default extension({
  tools: {
    call: {
      description: "Calls tweetnacl.",
      run: async (input) => {
        const pair = nacl.sign.keyPair.fromSeed(new Uint8Array(32).fill(7));
        const message = new TextEncoder().encode(input.text);
        const signature = nacl.sign.detached(message, pair.secretKey);
        return [Buffer.from(signature).toString("hex"), nacl.sign.detached.verify(message, signature, pair.publicKey)];
      },
    },
  },
});
