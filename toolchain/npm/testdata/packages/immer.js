// package: immer@11.2.10
// input: {"b": [1]}
// output: [{"b":[1,2]},[{"op":"add","path":["b",1],"value":2}],{"b":[1],"c":1}]
import { extension } from "stile";
import { enablePatches, produce, produceWithPatches } from "immer";

export default extension({
  tools: {
    call: {
      description: "Calls immer.",
      run: async (input) => {
        enablePatches();
        const [next, patches] = produceWithPatches(input, (d) => { d.b.push(2); });
        return [next, patches, produce(input, (d) => { d.c = 1; })];
      },
    },
  },
});
