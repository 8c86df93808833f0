// package: @noble/curves@2.4.0
// input: {"seed": 7}
// output: ["83998e719947612d0e82d427472c685a64b14d9aea67968cbcc39733f27376f3b8ea9858c24e061feb8bcdefce93aa921a6bc8ee1cab17f68d5d1ffc0dc2d800",true]
import { extension } from "stile";
import { ed25519 } from "@noble/curves/ed25519.js";

export default extension({
  tools: {
    call: {
      description: "Calls @noble/curves.",
      run: async (input) => {
        const secret = new Uint8Array(32).fill(input.seed);
        const message = new Uint8Array([1, 2, 3]);
        const signature = ed25519.sign(message, secret);
        return [Buffer.from(signature).toString("hex"), ed25519.verify(signature, message, ed25519.getPublicKey(secret))];
      },
    },
  },
});
