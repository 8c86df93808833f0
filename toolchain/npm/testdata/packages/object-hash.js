// package: object-hash@3.0.0
// input: {"a": [1, {"b": null}]}
// output: ["c4b14029916532b86d9fdf5acca85f52344f7967","wXFrdfu+rEMhi/bAIF9+qg==",true]
import { extension } from "stile";
import hash from "object-hash";

export default extension({
  tools: {
    call: {
      description: "Calls object-hash.",
      run: async (input) => {
        return [hash(input), hash(input, { algorithm: "md5", encoding: "base64" }), hash({ b: 1, a: 2 }) === hash({ a: 2, b: 1 })];
      },
    },
  },
});
