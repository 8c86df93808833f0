// package: typescript@5.9.3
// input: {"code": "const x: number = a ?? 1; enum E { A }"}
// output: "const x = a !== null && a !== void 0 ? a : 1;\nvar E;\n(function (E) {\n    E[E[\"A\"] = 0] = \"A\";\n})(E || (E = {}));\n"
import { extension } from "stile";
import ts from "typescript";

export default extension({
  tools: {
    call: {
      description: "Calls typescript.",
      run: async (input) => {
        return ts.transpileModule(input.code, { compilerOptions: { target: ts.ScriptTarget.ES2015 } }).outputText;
      },
    },
  },
});
