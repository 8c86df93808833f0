// package: ini@6.0.0
// input: {"text": "a=1\n[s.t]\nb[]=x\nb[]=y\n"}
// output: [{"a":"1","s":{"t":{"b":["x","y"]}}},"[s]\nk=true\n"]
import { extension } from "stile";
import ini from "ini";

export default extension({
  tools: {
    call: {
      description: "Calls ini.",
      run: async (input) => {
        const read = ini.parse(input.text);
        return [read, ini.stringify({ s: { k: true } })];
      },
    },
  },
});
