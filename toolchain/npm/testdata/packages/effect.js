// package: effect@4.1.0
// input: {"n": 4}
// output: [1,"odd",0]
import { extension } from "stile";
import { Effect, Option, pipe, Schema } from "effect";

export default extension({
  tools: {
    call: {
      description: "Calls effect.",
      run: async (input) => {
        const half = (n) => (n % 2 ? Effect.fail("odd") : Effect.succeed(n / 2));
        const read = Schema.decodeUnknownSync(Schema.Struct({ n: Schema.Number }))(input);
        return [await Effect.runPromise(pipe(half(read.n), Effect.flatMap(half))), await Effect.runPromise(Effect.flip(half(3))), Option.getOrElse(Option.none(), () => 0)];
      },
    },
  },
});
