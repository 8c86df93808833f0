// package: msgpackr@2.1.4
// input: {"a": [1, -2.5, "ü", null, true]}
// output: [[222,0,1,161,97,149,1,203,192,4,0,0,0,0,0,0,162,195,188,192,195],{"a":[1,-2.5,"ü",null,true]}]
import { extension } from "stile";
import { pack, unpack } from "msgpackr";

export default extension({
  tools: {
    call: {
      description: "Calls msgpackr.",
      run: async (input) => {
        const bytes = pack(input);
        return [Array.from(bytes), unpack(bytes)];
      },
    },
  },
});
