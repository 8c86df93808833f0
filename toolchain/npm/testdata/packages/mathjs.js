// package: mathjs@15.2.0
// input: {"expression": "sqrt(3^2 + 4^2)"}
// output: [5,"2 * x + 1","[[-2, 1], [1.5, -0.5]]","3.1068559611866697 mile"]
import { extension } from "stile";
import { all, create } from "mathjs";

export default extension({
  tools: {
    call: {
      description: "Calls mathjs.",
      run: async (input) => {
        const math = create(all);
        return [math.evaluate(input.expression), math.derivative("x^2 + x", "x").toString(), math.format(math.inv([[1, 2], [3, 4]])), math.unit("5 km").to("mile").toString()];
      },
    },
  },
});
