// package: nanoid@5.1.16
// input: {"size": 12}
// output: [12,true]
import { extension } from "stile";
import { customAlphabet, nanoid } from "nanoid";

export default extension({
  tools: {
    call: {
      description: "Calls nanoid.",
      run: async (input) => {
        return [nanoid(input.size).length, /^[ab]{5}$/.test(customAlphabet("ab", 5)())];
      },
    },
  },
});
