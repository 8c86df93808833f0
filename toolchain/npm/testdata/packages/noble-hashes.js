// package: @noble/hashes@2.4.0
// input: {"text": "abc"}
// output: ["ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","342e519ce0ad6c03a36b98eeb3f1d130db4813b9df4d1160eda488d712dc78ee",8]
import { extension } from "stile";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, randomBytes, utf8ToBytes } from "@noble/hashes/utils.js";

export default extension({
  tools: {
    call: {
      description: "Calls @noble/hashes.",
      run: async (input) => {
        return [bytesToHex(sha256(utf8ToBytes(input.text))), bytesToHex(hmac(sha256, utf8ToBytes("k"), utf8ToBytes(input.text))), randomBytes(8).length];
      },
    },
  },
});
