// package: micromatch@4.0.8
// input: {"files": ["a.ts", "b.js", "c/d.ts"]}
// output: ["a.ts"]
import { extension } from "stile";
import micromatch from "micromatch";

export default extension({
  tools: {
    call: {
      description: "Calls micromatch.",
      run: async (input) => {
        return micromatch(input.files, ["**/*.ts", "!c/**"]);
      },
    },
  },
});
