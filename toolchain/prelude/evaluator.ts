// The exports of stile:extension/evaluator: an extension whose code comes with the call.
import { evaluate, evaluator, implement, textEndingWith } from "./bindings";
import { register, serveBody } from "./extension";
import { topLevelFailure } from "./failure";
import { forget } from "./resources";
import { bundle, mapStacks } from "./stack";

// The start of the last line of code that includes its source map, which is an object of JSON. evaluate.go writes it.
const mark = "\n//# stile:source-map=";
const brace = 125;

implement(evaluator, {
  evaluate: {
    run: (address: number, length: number) => {
      forget();
      const code = textEndingWith(brace, address, length);
      const at = code ? code.lastIndexOf(mark) : -1;
      mapStacks(at < 0 ? undefined : code!.slice(at + mark.length));
      return evaluate(address, length, bundle);
    },
    returned: ({ default: made }) => (made?.["stile:body"] ? serveBody(made.run) : register(made)),
    thrown: topLevelFailure,
  },
});
