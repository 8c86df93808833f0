// package: uuid@14.0.3
// input: {"name": "https://example.com/"}
// output: ["dd2c1780-811a-5296-81c5-178a0ef488bc",true,"4f3f2898-69e3-5a0d-820a-c4e87987dbce"]
import { extension } from "stile";
import { parse, stringify, v4, v5, validate } from "uuid";

export default extension({
  tools: {
    call: {
      description: "Calls uuid.",
      run: async (input) => {
        return [v5(input.name, v5.URL), validate(v4()), stringify(parse(v5("a", v5.DNS)))];
      },
    },
  },
});
