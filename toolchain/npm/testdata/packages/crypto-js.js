// package: crypto-js@4.2.0
// input: {"text": "hi"}
// output: ["hi","cb448b440c42ac8ad084fc8a8795c98f5b7802359c305eabd57ecdb20e248896"]
import { extension } from "stile";
import CryptoJS from "crypto-js";

export default extension({
  tools: {
    call: {
      description: "Calls crypto-js.",
      run: async (input) => {
        const c = CryptoJS.AES.encrypt(input.text, "k").toString();
        return [CryptoJS.AES.decrypt(c, "k").toString(CryptoJS.enc.Utf8), CryptoJS.HmacSHA256("a", "b").toString()];
      },
    },
  },
});
