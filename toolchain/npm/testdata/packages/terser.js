// package: terser@5.51.4
// input: {"code": "function add(first, second) { if (false) { x(); } return first + second; } console.log(add(1, 2));"}
// output: "function add(d,n){return d+n}console.log(add(1,2));"
import { extension } from "stile";
import { minify } from "terser";

export default extension({
  tools: {
    call: {
      description: "Calls terser.",
      run: async (input) => {
        return (await minify(input.code, { compress: true, mangle: true })).code;
      },
    },
  },
});
