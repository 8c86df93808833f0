// package: p-queue@9.3.5
// input: {"concurrency": 2}
// output: 2
import { extension } from "stile";
import PQueue from "p-queue";

export default extension({
  tools: {
    call: {
      description: "Calls p-queue.",
      run: async (input) => {
        const q = new PQueue({ concurrency: input.concurrency });
        let most = 0, now = 0;
        await q.addAll([1, 2, 3, 4].map((n) => async () => { most = Math.max(most, ++now); await new Promise((r) => setTimeout(r, 5)); now--; return n; }));
        return most;
      },
    },
  },
});
