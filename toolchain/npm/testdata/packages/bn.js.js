// package: bn.js@5.2.5
// input: {"n": "123456789012345678901234567890"}
// output: ["15241578753238836750495351562536198787501905199875019052100",52,"18ee90ff6c373e0ee4e3f0ad2"]
import { extension } from "stile";
import BN from "bn.js";

export default extension({
  tools: {
    call: {
      description: "Calls bn.js.",
      run: async (input) => {
        const n = new BN(input.n);
        return [n.mul(n).toString(), n.mod(new BN(97)).toNumber(), n.toString(16)];
      },
    },
  },
});
