// package: protobufjs@8.8.1
// input: {"a": "x", "b": [1, 2, 3]}
// output: [[10,1,120,18,3,1,2,3],{"a":"x","b":[1,2,3]}]
import { extension } from "stile";
import protobuf from "protobufjs";

export default extension({
  tools: {
    call: {
      description: "Calls protobufjs.",
      run: async (input) => {
        const M = protobuf.parse("syntax = \"proto3\"; message M { string a = 1; repeated int64 b = 2; }").root.lookupType("M");
        const bytes = M.encode(M.create(input)).finish();
        return [Array.from(bytes), M.toObject(M.decode(bytes), { longs: Number })];
      },
    },
  },
});
