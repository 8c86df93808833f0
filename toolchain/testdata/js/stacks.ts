// bindings: console
import { equal, ok, throws } from "./assert";

function named(): string {
  return new Error("x").stack!;
}

class Late extends Error {
  constructor(message: string) {
    super(message);
    this.name = "Late";
  }
}
class Own extends Error {
  declare code: number;
  constructor(message: string) {
    super(message);
    (Error as any).captureStackTrace(this, Own);
    this.code = 7;
  }
}
class Hostile extends Error {
  get name(): string {
    throw new Error("no name");
  }
}
class Trapped extends Error {
  get stack(): string {
    return "its own";
  }
}

const head = (error: any) => error.stack.split("\n")[0];
const first = (error: any) => error.stack.split("\n").find((line: string) => line.startsWith("    at "));

export default function (): unknown {
  // As Node.js: the name and the message, then frames with the lines of this file.
  const stack = named();
  ok(/^Error: x\n {4}at named \(stacks\.ts:5:14\)\n {4}at stacks_default \(stacks\.ts:38:17\)/.test(stack), stack);
  ok(!stack.endsWith("\n") && !stack.includes("extension.js") && !stack.includes(":0:"), stack);
  ok([1].map(() => new Error().stack)[0]!.includes("at map (native)"), "native functions");
  equal(head(new Error()), "Error");
  equal(head(new TypeError("")), "TypeError");
  equal(new RangeError("two\nlines").stack!.split("\n").slice(0, 2), ["RangeError: two", "lines"]);
  equal(head(new Late("x")), "Late: x");
  equal(head(new Hostile("x")), "Error");
  equal(head(new AggregateError([], "all")), "AggregateError: all");
  equal(head(new DOMException("gone", "AbortError")), "AbortError: gone");
  ok(first(new DOMException("gone")).includes("(stacks.ts:"), "a DOMException has places");
  equal(new Trapped().stack, "its own");
  // It is made when it is first read, and then stays.
  const error: any = new Error("before");
  error.message = "after";
  equal(head(error), "Error: after");
  error.message = "later";
  equal(head(error), "Error: after");
  equal(Object.keys(error), []);

  // It can be replaced, by what it likes.
  for (const value of ["text", undefined, 5, null]) {
    error.stack = value;
    equal(error.stack, value);
    equal(Object.keys(error), []);
  }
  equal(JSON.stringify(error), "{}");
  const copy: any = new Error("copy");
  copy.stack = stack;
  equal(copy.stack, stack);
  throws(() => Object.getOwnPropertyDescriptor(Error.prototype, "stack")!.set!.call(1, "x"), { name: "TypeError" });
  equal(Object.getOwnPropertyDescriptor(Error.prototype, "stack")!.get!.call({}), undefined);
  equal((Error.prototype as any).stack, undefined);

  // captureStackTrace gives any object one, from the caller of a function on.
  const target: any = { name: "Target", message: "m" };
  (Error as any).captureStackTrace(target);
  equal(head(target), "Target: m");
  ok(first(target).includes("at stacks_default (stacks.ts:"), target.stack);
  equal(Object.keys(target), ["name", "message"]);
  target.stack = 1;
  equal(target.stack, 1);
  const own = new Own("x");
  equal(head(own), "Error: x");
  ok(first(own).includes("at stacks_default ("), own.stack!);
  throws(() => (Error as any).captureStackTrace(1), { name: "TypeError" });
  ok(named().includes("stacks.ts:5:14"), "it goes on after one that failed");
  throws(() => (Error as any).captureStackTrace(Object.freeze({})), { name: "TypeError" });
  equal((Error as any).stackTraceLimit, 10);

  // prepareStackTrace is the code's own, with the engine's frames.
  equal((Error as any).prepareStackTrace, undefined);
  (Error as any).prepareStackTrace = (error: Error, sites: any[]) => `${error.message}/${sites[0].getFunctionName()}`;
  equal(named(), "x/named");
  (Error as any).captureStackTrace(target);
  equal(target.stack, "undefined/stacks_default".replace("undefined", "m"));
  (Error as any).prepareStackTrace = undefined;
  equal(named().slice(0, 22), "Error: x\n    at named ");

  try {
    (null as any).x;
  } catch (error: any) {
    ok(/^TypeError: .*\n {4}at stacks_default \(stacks\.ts:\d+:\d+\)/.test(error.stack), error.stack);
  }
  try {
    new Function("throw new Error('made')")();
  } catch (error: any) {
    ok(error.stack.startsWith("Error: made\n    at "), error.stack);
  }

  // What the console shows has the same places; a stack is no guest's way to have code run.
  const shown = new Late("shown");
  console.error(shown);
  console.log("%s", new Hostile("x") instanceof Error, { nested: new Error("in") }.nested.message);
  const broken = new Error("broken");
  Object.defineProperty(broken, "stack", { get: () => { throw new Error("read"); } });
  console.error(broken);
  const at = (shown.stack as string).split("\n").slice(1).join("\n");
  return [
    ["error", `Late: shown\n${at}`],
    ["info", "true in"],
    ["error", "[Error: broken]"],
  ];
}
