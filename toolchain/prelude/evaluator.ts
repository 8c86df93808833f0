// The exports of stile:extension/evaluator: an extension whose code comes with the call.
import { evaluate, implement } from "./bindings";
import { register, registerBody } from "./extension";
import { topLevelFailure } from "./failure";
import { forget } from "./resources";
import { bundle, mapStacks } from "./stack";

// The start of the last line of code that includes its source map. evaluate.go writes it.
const mark = "\n//# stile:source-map=";

implement("stile:extension/evaluator", {
  evaluate: {
    run: (code: string) => {
      forget();
      const at = code.lastIndexOf(mark);
      mapStacks(at < 0 ? undefined : code.slice(at + mark.length));
      return evaluate(code, bundle);
    },
    returned: ({ default: made }) => (made?.["stile:body"] ? registerBody(made.run) : register(made)),
    thrown: topLevelFailure,
  },
});
