// package: chroma-js@3.2.0
// input: {"c": "teal"}
// output: ["#008080",["#ffff00","#a37b6b","#000080"],21]
import { extension } from "stile";
import chroma from "chroma-js";

export default extension({
  tools: {
    call: {
      description: "Calls chroma-js.",
      run: async (input) => {
        return [chroma(input.c).hex(), chroma.scale(["yellow", "navy"]).mode("lab").colors(3), chroma.contrast("black", "white")];
      },
    },
  },
});
