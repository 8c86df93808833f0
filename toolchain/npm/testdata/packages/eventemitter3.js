// package: eventemitter3@5.0.4
// input: {"n": 2}
// output: [[2],0]
import { extension } from "stile";
import { EventEmitter } from "eventemitter3";

export default extension({
  tools: {
    call: {
      description: "Calls eventemitter3.",
      run: async (input) => {
        const e = new EventEmitter();
        const seen = [];
        e.once("x", (v) => seen.push(v));
        e.emit("x", input.n);
        e.emit("x", 9);
        return [seen, e.listenerCount("x")];
      },
    },
  },
});
