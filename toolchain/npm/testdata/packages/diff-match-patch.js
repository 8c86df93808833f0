// package: diff-match-patch@1.0.5
// input: {"a": "the cat sat", "b": "the bat sat down"}
// output: [[[0,"the "],[-1,"c"],[1,"b"],[0,"at sat"],[1," down"]],"@@ -1,11 +1,16 @@\n the \n-c\n+b\n at sat\n+ down\n"]
import { extension } from "stile";
import DMP from "diff-match-patch";

export default extension({
  tools: {
    call: {
      description: "Calls diff-match-patch.",
      run: async (input) => {
        const d = new DMP();
        return [d.diff_main(input.a, input.b), d.patch_toText(d.patch_make(input.a, input.b))];
      },
    },
  },
});
