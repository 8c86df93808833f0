// package: commander@14.0.3
// input: {"args": ["-n", "5", "a.txt"]}
// output: [{"number":5},["a.txt"]]
import { extension } from "stile";
import { Command } from "commander";

export default extension({
  tools: {
    call: {
      description: "Calls commander.",
      run: async (input) => {
        const program = new Command().exitOverride().option("-n, --number <n>", "a number", Number).argument("<file>");
        program.parse(input.args, { from: "user" });
        return [program.opts(), program.args];
      },
    },
  },
});
