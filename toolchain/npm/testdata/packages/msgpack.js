// package: @msgpack/msgpack@3.1.3
// input: {"a": [1, -2.5, "ü", null, true]}
// output: [[129,161,97,149,1,203,192,4,0,0,0,0,0,0,162,195,188,192,195],{"a":[1,-2.5,"ü",null,true]}]
import { extension } from "stile";
import { decode, encode } from "@msgpack/msgpack";

export default extension({
  tools: {
    call: {
      description: "Calls @msgpack/msgpack.",
      run: async (input) => {
        const bytes = encode(input);
        return [Array.from(bytes), decode(bytes)];
      },
    },
  },
});
