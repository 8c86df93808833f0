// package: qrcode@1.5.4
// input: {"text": "hi"}
// output: [950,"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 29 29\" ",21]
import { extension } from "stile";
import QRCode from "qrcode";

export default extension({
  tools: {
    call: {
      description: "Calls qrcode.",
      run: async (input) => {
        const svg = await QRCode.toString(input.text, { type: "svg" });
        return [svg.length, svg.slice(0, 60), QRCode.create(input.text).modules.size];
      },
    },
  },
});
