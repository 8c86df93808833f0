// package: @babel/parser@7.29.15
// input: {"code": "const a: B = <c/>; function f() {}"}
// output: ["VariableDeclaration","FunctionDeclaration"]
import { extension } from "stile";
import { parse } from "@babel/parser";

export default extension({
  tools: {
    call: {
      description: "Calls @babel/parser.",
      run: async (input) => {
        return parse(input.code, { plugins: ["typescript", "jsx"] }).program.body.map((n) => n.type);
      },
    },
  },
});
