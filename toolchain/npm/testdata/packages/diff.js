// package: diff@9.0.0
// input: {"before": "a\nb\n", "after": "a\nc\n"}
// output: ["Index: f\n===================================================================\n--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n","a\nc\n",3]
import { extension } from "stile";
import { applyPatch, createPatch, diffWords } from "diff";

export default extension({
  tools: {
    call: {
      description: "Calls diff.",
      run: async (input) => {
        const patch = createPatch("f", input.before, input.after);
        return [patch, applyPatch(input.before, patch), diffWords("a b", "a c").length];
      },
    },
  },
});
