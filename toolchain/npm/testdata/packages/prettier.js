// package: prettier@3.10.1
// input: {"code": "function  f(a,b){return a+b}"}
// output: "function f(a, b) {\n  return a + b;\n}\n"
import { extension } from "stile";
import * as babel from "prettier/plugins/babel";
import * as estree from "prettier/plugins/estree";
import * as prettier from "prettier/standalone";

export default extension({
  tools: {
    call: {
      description: "Calls prettier.",
      run: async (input) => {
        return prettier.format(input.code, { parser: "babel", plugins: [babel, estree.default ?? estree] });
      },
    },
  },
});
