// package: bwip-js@4.11.4
// input: {"t": "0123456789"}
// output: [580,"<svg viewBox=\"0 0 180 145\" xmlns=\"http:/"]
import { extension } from "stile";
import bwipjs from "bwip-js/generic";

export default extension({
  tools: {
    call: {
      description: "Calls bwip-js.",
      run: async (input) => {
        const svg = bwipjs.toSVG({ bcid: "code128", text: input.t });
        return [svg.length, svg.slice(0, 40)];
      },
    },
  },
});
