// The exports of stile:extension/evaluator: an extension whose code comes with the call.
import { evaluate, implement } from "./bindings";
import { register } from "./extension";
import { topLevelFailure } from "./failure";
import { forget } from "./resources";
import { bundle, mapStacks } from "./stack";

// The start of the last line of code that includes its source map. evaluate.go writes it.
const mark = "\n//# stile:source-map=";

implement("stile:extension/evaluator", {
  evaluate: async (code: string) => {
    forget();
    const at = code.lastIndexOf(mark);
    mapStacks(at < 0 ? undefined : code.slice(at + mark.length));
    try {
      register((await evaluate(code, bundle)).default);
    } catch (thrown) {
      throw topLevelFailure(thrown);
    }
  },
});
