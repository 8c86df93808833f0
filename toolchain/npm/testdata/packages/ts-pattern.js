// package: ts-pattern@5.9.2
// input: {"kind": "circle", "r": 2}
// output: 6
import { extension } from "stile";
import { match, P } from "ts-pattern";

export default extension({
  tools: {
    call: {
      description: "Calls ts-pattern.",
      run: async (input) => {
        return match(input).with({ kind: "square", side: P.number }, ({ side }) => side ** 2).with({ kind: "circle", r: P.select() }, (r) => r * 3).exhaustive();
      },
    },
  },
});
