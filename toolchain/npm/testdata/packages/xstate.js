// package: xstate@5.33.3
// input: {"event": "GO"}
// output: ["off","on","done"]
import { extension } from "stile";
import { createActor, createMachine } from "xstate";

export default extension({
  tools: {
    call: {
      description: "Calls xstate.",
      run: async (input) => {
        const actor = createActor(createMachine({ id: "t", initial: "off", states: { off: { on: { GO: "on" } }, on: { after: { 5: "done" } }, done: { type: "final" } } }));
        const seen = [];
        actor.subscribe((s) => seen.push(s.value));
        actor.start();
        actor.send({ type: input.event });
        await new Promise((r) => setTimeout(r, 30));
        return seen;
      },
    },
  },
});
