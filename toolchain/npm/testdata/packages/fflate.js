// package: fflate@0.8.3
// input: {"text": "hello hello hello"}
// output: ["hello hello hello",["a.txt"]]
import { extension } from "stile";
import { gunzipSync, gzipSync, strFromU8, strToU8, unzipSync, zipSync } from "fflate";

export default extension({
  tools: {
    call: {
      description: "Calls fflate.",
      run: async (input) => {
        return [strFromU8(gunzipSync(gzipSync(strToU8(input.text)))), Object.keys(unzipSync(zipSync({ "a.txt": strToU8("x") })))];
      },
    },
  },
});
