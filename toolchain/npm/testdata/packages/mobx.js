// package: mobx@7.1.3
// input: {"steps": 3}
// output: [0,2,4,6]
import { extension } from "stile";
import { autorun, makeAutoObservable, runInAction } from "mobx";

export default extension({
  tools: {
    call: {
      description: "Calls mobx.",
      run: async (input) => {
        const state = makeAutoObservable({ n: 0, get double() { return this.n * 2; } });
        const seen = [];
        const stop = autorun(() => seen.push(state.double));
        for (let i = 0; i < input.steps; i++) runInAction(() => state.n++);
        stop();
        return seen;
      },
    },
  },
});
