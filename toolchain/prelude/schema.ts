// Schemas of tools: JSON Schema written by hand, or an object of a library that can express it as JSON Schema.
import { WitError } from "./bindings";

/** Returns the value to run with, or throws an error with its problems. */
export type Validate = (input: unknown) => Promise<unknown>;

interface Issue {
  message: string;
  path?: readonly (PropertyKey | { key: PropertyKey })[];
}

const draft = "draft-2020-12";

/** A tool's input schema as JSON text, and the library's own check if there is one. */
export function inputSchema(given: any, at: string): { text: string; validate: Validate | undefined } {
  if (given === undefined) return { text: '{"type":"object"}', validate: undefined };
  const schema = jsonSchema(given, at, "input");
  if (schema.type !== "object") throw new TypeError(`${at}: the schema of an input has type: "object"`);
  const check = given["~standard"]?.validate;
  return { text: text(schema, at), validate: typeof check === "function" ? (input) => validated(check, input) : undefined };
}

/** A tool's output schema as JSON text. */
export function outputSchema(given: any, at: string): string | undefined {
  return given === undefined ? undefined : text(jsonSchema(given, at, "output"), at);
}

function jsonSchema(given: any, at: string, io: "input" | "output"): Record<string, unknown> {
  const isObject = (typeof given === "object" && given !== null) || typeof given === "function";
  if (!isObject || Array.isArray(given)) throw new TypeError(`${at}: a JSON Schema or a schema object is wanted`);
  const standard = given["~standard"];
  let schema = given;
  if (typeof given.toJSONSchema === "function") schema = given.toJSONSchema({ io, target: draft });
  else if (standard && typeof given.$schema !== "string") {
    if (typeof standard.jsonSchema?.[io] !== "function")
      throw new TypeError(`${at}: a schema of ${standard.vendor} cannot say itself as JSON Schema; ${instead(standard.vendor)}`);
    schema = standard.jsonSchema[io]({ target: draft });
  }
  if (typeof schema !== "object" || schema === null) throw new TypeError(`${at}: the schema is not an object`);
  return schema;
}

function instead(vendor: unknown): string {
  const valibot = "pass it through toStandardJsonSchema of @valibot/to-json-schema, or ";
  return `${vendor === "valibot" ? valibot : ""}give JSON Schema instead`;
}

function text(schema: object, at: string): string {
  try {
    return JSON.stringify(schema);
  } catch (error) {
    throw new TypeError(`${at}: the schema has no JSON`, { cause: error });
  }
}

async function validated(check: (value: unknown) => unknown, input: unknown): Promise<unknown> {
  const result = (await check(input)) as { value: unknown; issues?: readonly Issue[] };
  if (!result.issues) return result.value;
  const problems = result.issues.map(({ message, path = [] }) => ({ path: path.map(pointer).join(""), message: `${message}` }));
  throw new WitError({ tag: "invalid-input", val: problems });
}

/** One step of a JSON pointer, RFC 6901. */
function pointer(segment: PropertyKey | { key: PropertyKey }): string {
  const key = String(typeof segment === "object" ? segment.key : segment);
  return `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
