// package: tinycolor2@1.6.0
// input: {"c": "rebeccapurple"}
// output: ["#663399","hsl(270, 50%, 50%)",21]
import { extension } from "stile";
import tinycolor from "tinycolor2";

export default extension({
  tools: {
    call: {
      description: "Calls tinycolor2.",
      run: async (input) => {
        const c = tinycolor(input.c);
        return [c.toHexString(), c.lighten(10).toHslString(), tinycolor.readability("#000", "#fff")];
      },
    },
  },
});
