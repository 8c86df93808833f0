// package: bcryptjs@3.0.3
// input: {"password": "secret"}
// output: [true,false,60]
import { extension } from "stile";
import bcrypt from "bcryptjs";

export default extension({
  tools: {
    call: {
      description: "Calls bcryptjs.",
      run: async (input) => {
        const hash = bcrypt.hashSync(input.password, 4);
        return [bcrypt.compareSync(input.password, hash), await bcrypt.compare("no", hash), hash.length];
      },
    },
  },
});
