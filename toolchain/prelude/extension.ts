// extension(): checks an author's declaration when the image is built. Also the exports of stile:extension/tools and stepwise.
import { finish, type Handler, implement, stepwise, WitError } from "./bindings";
import { shown } from "./blob";
import { environment } from "./env";
import { failure } from "./failure";
import { toJson } from "./json";
import { forget } from "./resources";
import { inputSchema, outputSchema, type Validate } from "./schema";
import { enter, kindOf } from "./session";

interface Tool {
  definition: Definition;
  validate: Validate | undefined;
  /** What the author wrote. Its method `run` is called. */
  written: Record<string, any>;
}

interface Definition {
  name: string;
  description: string;
  inputSchema: string;
  outputSchema: string | undefined;
  annotations: { readOnly: boolean; destructive: boolean; idempotent: boolean; openWorld: boolean };
}

// The tools of each declared extension, by the object that extension() returned for it.
const declared = new WeakMap<object, Map<string, Tool>>();

export function extension(definition: { tools: Record<string, any> }): object {
  const given = record(definition, "the argument of extension()");
  only(given, "extension()", ["tools"]);
  const names = Object.keys(record(given.tools, "tools"));
  if (!names.length) throw new TypeError("tools: an extension has at least one tool");
  const made = new Map(names.map((name) => [name, tool(name, given.tools[name])]));
  const result = Object.freeze({ tools: Object.freeze(names) });
  declared.set(result, made);
  return result;
}

/** Serves the entry file's default export as the extension. */
export function register(exported: unknown): void {
  const made = typeof exported === "object" && exported !== null ? declared.get(exported) : undefined;
  if (!made) throw new TypeError('the entry file must have `export default extension({ tools: ... })`, with extension from "stile"');
  const run = (name: string, input: string) => {
    const found = made.get(name);
    if (!found) throw new WitError({ tag: "unknown-tool", val: name });
    return found.validate ? validated(found, parse(input)) : found.written.run(parse(input), environment);
  };
  // It has all properties, because a prototype could have others.
  const describe: Handler = { run: () => [...made.values()].map(({ definition }) => definition), returned: null, thrown: undefined };
  serve(run, describe);
}

let body = (_input: unknown, _env: object, _tools: unknown): unknown => {
  throw new TypeError("there is no code to call");
};

/** Serves the function that toolchain/body.go makes. Only replays ask for the tool; otherwise the host knows it. */
export function serveBody(made: typeof body): void {
  body = made;
}

// The image has the handlers of a body, so that a call need not set them. register replaces them.
serve(
  (_, input) => body(parse(input).input, environment, toolsOf()),
  { run: () => [tool("code", { description: "Code", run() {} }).definition], returned: null, thrown: undefined },
);

/** env.tools, if there is such a binding. */
function toolsOf(): unknown {
  return kindOf("tools") && environment.tools;
}

function serve(run: (name: string, input: string) => unknown, describe: Handler): void {
  const call: Handler = {
    run: (name: string, input: string, env: number) => {
      finish(); // of code that came with the call
      forget();
      enter(env);
      return run(name, input);
    },
    returned: (value) => toJson(value, "result", shown),
    thrown: failure,
  };
  implement("stile:extension/tools", { describe, call });
  implement(stepwise, { start: call });
}

async function validated(found: Tool, value: unknown): Promise<unknown> {
  return found.written.run(await found.validate!(value), environment);
}

function parse(input: string): any {
  try {
    return JSON.parse(input);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new WitError({ tag: "invalid-input", val: [{ path: "", message: `not JSON: ${error.message}` }] });
  }
}

function tool(name: string, value: unknown): Tool {
  const at = `tools.${name}`;
  if (!/^[a-z][a-z0-9_]{0,63}$/.test(name))
    throw new TypeError(`${at}: a tool's name is made of a-z, 0-9 and _, starts with a letter and has at most 64 characters`);
  const given = record(value, at);
  only(given, at, ["description", "input", "output", "annotations", "run"]);
  if (typeof given.description !== "string" || !given.description.trim()) throw new TypeError(`${at}.description: text is wanted`);
  if (typeof given.run !== "function") throw new TypeError(`${at}.run: a function is wanted`);
  const input = inputSchema(given.input, `${at}.input`);
  return {
    definition: {
      name,
      description: given.description,
      inputSchema: input.text,
      outputSchema: outputSchema(given.output, `${at}.output`),
      annotations: annotations(given.annotations, `${at}.annotations`),
    },
    validate: input.validate,
    written: given,
  };
}

const hints = ["readOnly", "destructive", "idempotent", "openWorld"] as const;

function annotations(value: unknown, at: string): Definition["annotations"] {
  const given = value === undefined ? {} : record(value, at);
  only(given, at, hints);
  for (const hint of hints)
    if (given[hint] !== undefined && typeof given[hint] !== "boolean") throw new TypeError(`${at}.${hint}: true or false is wanted`);
  const { readOnly = false, destructive = false, idempotent = false, openWorld = false } = given;
  return { readOnly, destructive, idempotent, openWorld };
}

function record(value: unknown, at: string): Record<string, any> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError(`${at}: an object is wanted`);
  return value;
}

function only(given: object, at: string, known: readonly string[]): void {
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new TypeError(`${at}: unknown field ${unknown}; known are ${known.join(", ")}`);
}
