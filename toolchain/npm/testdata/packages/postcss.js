// package: postcss@8.5.33
// input: {"css": "a { color: red; b { margin: 0 } }"}
// output: "a { color: blue; b { margin: 0 } }"
import { extension } from "stile";
import postcss from "postcss";

export default extension({
  tools: {
    call: {
      description: "Calls postcss.",
      run: async (input) => {
        const blue = { postcssPlugin: "blue", Declaration(d) { if (d.prop === "color") d.value = "blue"; } };
        return (await postcss([blue]).process(input.css, { from: undefined })).css;
      },
    },
  },
});
