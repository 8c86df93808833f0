// package: rxjs@7.8.2
// input: {"list": [60, 1, 30]}
// output: [2,60,120]
import { extension } from "stile";
import { delay, from, lastValueFrom, map, mergeMap, of, toArray } from "rxjs";

export default extension({
  tools: {
    call: {
      description: "Calls rxjs.",
      run: async (input) => {
        return lastValueFrom(from(input.list).pipe(mergeMap((x) => of(x).pipe(delay(x))), map((x) => x * 2), toArray()));
      },
    },
  },
});
