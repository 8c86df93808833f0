// package: libphonenumber-js@1.13.16
// input: {"number": "(213) 373-4253"}
// output: ["US","+1 213 373 4253",true,"tel:+12133734253"]
import { extension } from "stile";
import { parsePhoneNumber } from "libphonenumber-js";

export default extension({
  tools: {
    call: {
      description: "Calls libphonenumber-js.",
      run: async (input) => {
        const n = parsePhoneNumber(input.number, "US");
        return [n.country, n.formatInternational(), n.isValid(), n.getURI()];
      },
    },
  },
});
