// package: validator@13.15.35
// input: {"email": "a@example.com"}
// output: [true,true,true,"&lt;a&gt;"]
import { extension } from "stile";
import validator from "validator";

export default extension({
  tools: {
    call: {
      description: "Calls validator.",
      run: async (input) => {
        return [validator.isEmail(input.email), validator.isURL("https://example.com/?a=1"), validator.isIBAN("DE89370400440532013000"), validator.escape("<a>")];
      },
    },
  },
});
