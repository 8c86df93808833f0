// package: acorn@8.19.0
// input: {"code": "let a = b?.c"}
// output: "ChainExpression"
import { extension } from "stile";
import { parse } from "acorn";

export default extension({
  tools: {
    call: {
      description: "Calls acorn.",
      run: async (input) => {
        return parse(input.code, { ecmaVersion: "latest" }).body[0].declarations[0].init.type;
      },
    },
  },
});
