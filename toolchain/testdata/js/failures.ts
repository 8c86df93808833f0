// bindings: workspace
// An extension of tools that fail. The description of each is the error that its call ends with, as JSON; "stack" is not compared.
import { CapabilityError, DeniedError, extension } from "stile";

const denial = { binding: "b", operation: "o", reason: "r", remedy: "m" };

function recurse(): number {
  return 1 + recurse();
}

const failing: [string, string, (env: any) => unknown][] = [
  ["thrown", '{"failed":{"name":"TypeError","message":"no"}}', () => { throw new TypeError("no"); }],
  ["rejected", '{"failed":{"name":"Error","message":"later"}}', async () => { await null; throw new Error("later"); }],
  ["named", '{"failed":{"name":"MyError","message":"mine"}}', () => { throw Object.assign(new Error("mine"), { name: "MyError" }); }],
  ["text", '{"failed":{"name":"Error","message":"just text"}}', () => { throw "just text"; }],
  ["nothing", '{"failed":{"name":"Error","message":"undefined"}}', () => { throw undefined; }],
  ["zero", '{"failed":{"name":"Error","message":"0"}}', () => Promise.reject(0)],
  ["object", '{"failed":{"name":"Error","message":"{ code: 7 }"}}', () => { throw { code: 7 }; }],
  ["bare", '{"failed":{"name":"Error","message":"[Object: null prototype] {}"}}', () => { throw Object.create(null); }],
  ["hostile_text", '{"failed":{"name":"Error","message":"{ toString: [Function: toString] }"}}', () => { throw { toString() { throw 1; } }; }],
  ["hostile_getters", '{"failed":{"name":"[cannot be read]","message":"[cannot be read]"}}', () => {
    const error = new Error();
    for (const key of ["name", "message", "stack", "cause"]) Object.defineProperty(error, key, { get() { throw error; } });
    throw error;
  }],
  ["proxy", '{"failed":{"name":"Error","message":"[cannot be shown]"}}', () => {
    throw new Proxy({}, new Proxy({}, { get() { throw new Error("trap"); } }));
  }],
  ["not_text", '{"failed":{"name":"Error","message":"{ a: 1 }"}}', () => { throw Object.assign(new Error(), { message: { a: 1 }, name: null }); }],
  ["long", `{"failed":{"name":"Error","message":"${"x".repeat(8000)}... 92000 more characters"}}`, () => { throw new Error("x".repeat(100_000)); }],
  ["endless_cause", '{"failed":{"name":"Error","message":"loop"}}', () => {
    const error: any = new Error("loop");
    error.cause = { get cause() { return { cause: error }; } };
    throw error;
  }],
  ["big", '{"failed":{"name":"TypeError","message":"result.a[1] is a BigInt, which JSON cannot carry; write Number(value), or String(value)"}}', () => ({ a: [1, 2n] })],
  ["circle", '{"failed":{"name":"TypeError","message":"result.x[\\"back/\\"] refers back to result; leave it out, or write its id"}}', () => {
    const result: any = { x: {} };
    result.x["back/"] = result;
    return result;
  }],
  ["returned_function", '{"failed":{"name":"TypeError","message":"result is a function, which JSON cannot carry; write what it returns, or leave it out"}}', () => () => 1],
  ["bad_to_json", '{"failed":{"name":"Error","message":"toJSON"}}', () => ({ toJSON() { throw new Error("toJSON"); } })],
  ["denied", JSON.stringify({ denied: denial }), () => { throw new DeniedError(denial); }],
  ["denied_cause", JSON.stringify({ denied: denial }), () => { throw new Error("outer", { cause: { cause: new DeniedError(denial) } }); }],
  ["denied_edited", JSON.stringify({ denied: denial }), () => {
    const error: any = new DeniedError(denial);
    Object.defineProperty(error, "denial", { value: { binding: 5 } });
    throw error;
  }],
  ["missing", '{"failed":{"name":"CapabilityError","message":"not found: /none"}}', (env) => env.workspace.read("none")],
  ["own_error", '{"failed":{"name":"CapabilityError","message":"mine"}}', () => { throw new (CapabilityError as any)("expired", "mine"); }],
  ["never", '{"exhausted":"promise"}', () => new Promise(() => {})],
  ["stack", '{"exhausted":"stack: maximum call stack size exceeded"}', recurse],
  ["stack_cause", '{"exhausted":"stack: maximum call stack size exceeded"}', () => {
    try {
      recurse();
    } catch (cause) {
      throw new Error("sorry", { cause });
    }
  }],
  ["memory", '{"exhausted":"memory: out of memory"}', () => {
    const kept = [];
    for (;;) kept.push(new Uint8Array(1 << 20).fill(1));
  }],
  ["memory_hidden", '{"exhausted":"memory: out of memory"}', () => {
    try {
      const kept = [];
      for (;;) kept.push({ at: kept.length });
    } catch {
      throw new Error("sorry");
    }
  }],
  ["length", '{"exhausted":"memory: string too long"}', () => "ab".repeat(2 ** 30)],
  ["length_hidden", '{"exhausted":"memory: string too long"}', async () => {
    Error.prepareStackTrace = () => "mine";
    try {
      "ab".repeat(2 ** 30);
    } catch {
      await null;
    }
    throw new Error("sorry");
  }],
];

const rejecting = {
  toJSONSchema: () => ({ type: "object" }),
  "~standard": {
    version: 1 as const,
    vendor: "test",
    validate: async () => ({ issues: [{ message: "odd", path: ["a/b", 0] }, { message: "too", path: [{ key: "c" }] }, { message: "whole" }] }),
  },
};

export default extension({
  tools: {
    ...Object.fromEntries(failing.map(([name, description, fail]) => [name, { description, run: (_: any, env: any) => fail(env) }])),
    invalid: {
      description: '{"invalid-input":[{"path":"/a~1b/0","message":"odd"},{"path":"/c","message":"too"},{"path":"","message":"whole"}]}',
      input: rejecting,
      run: () => {},
    },
  },
});
