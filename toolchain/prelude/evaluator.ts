// The exports of stile:extension/evaluator: an extension whose code comes with the call.
import { evaluate, implement } from "./bindings";
import { register } from "./extension";
import { topLevelFailure } from "./failure";
import { forget } from "./resources";

// As the host knows it, which maps the stack.
const name = "extension.js";

implement("stile:extension/evaluator", {
  evaluate: async (code: string) => {
    forget();
    try {
      register((await evaluate(code, name)).default);
    } catch (thrown) {
      throw topLevelFailure(thrown);
    }
  },
});
