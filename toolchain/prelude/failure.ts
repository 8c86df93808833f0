// What a tool threw, as the error of its call. Anything can be thrown, so nothing here trusts it.
import { fail, WitError } from "./bindings";
import { DeniedError } from "./errors";
import { cut, heading, inspect } from "./inspect";
import { causes, exhaustion } from "./resources";
import { rawFrames } from "./stack";

/** The case of the variant `error` of stile:extension/tools that a thrown value stands for. */
export function failure(thrown: unknown): WitError {
  if (isA(thrown, WitError)) return thrown;
  const limit = exhaustion(thrown);
  if (limit) return new WitError({ tag: "exhausted", val: limit });
  const denial = causes(thrown).map(denialOf).find(Boolean);
  if (denial) return new WitError({ tag: "denied", val: denial });
  return new WitError({ tag: "failed", val: parts(thrown) });
}

/** The same for what code threw at top level, where nothing can be denied: the variant `error` of stile:extension/evaluator. */
export function topLevelFailure(thrown: unknown): WitError {
  if (isA(thrown, WitError)) return thrown;
  const limit = exhaustion(thrown);
  return new WitError(limit ? { tag: "exhausted", val: limit } : { tag: "failed", val: parts(thrown) });
}

/** Ends the call with an error that nobody waits for: one thrown by a timer or an event listener. */
export function report(error: unknown): void {
  fail(failure(error));
}

function denialOf(error: unknown) {
  return typeof error === "object" && error !== null ? DeniedError.carried(error) : undefined;
}

function parts(thrown: unknown): { name: string; message: string; stack: string } {
  const error = isError(thrown);
  return {
    name: error ? field(thrown, "name", 200) || "Error" : "Error",
    message: error ? field(thrown, "message", 8_000) : typeof thrown === "string" ? cut(thrown, 8_000) : inspect(thrown),
    stack: error ? stacks(thrown) : "",
  };
}

/** instanceof, for a value that may have traps. */
function isA<T>(value: unknown, kind: new (...args: any[]) => T): value is T {
  try {
    return value instanceof kind;
  } catch {
    return false;
  }
}

function isError(value: unknown): value is Error {
  return Error.isError(value) || isA(value, Error);
}

/** The stack, and below it the causes and the errors of an AggregateError, each with its own. */
function stacks(thrown: Error): string {
  const shown = new Set<unknown>([thrown]);
  const below = (error: Error): string[] => [...causesOf(error)].flatMap((cause) => {
    if (shown.has(cause) || shown.size >= 16) return [];
    shown.add(cause);
    if (!isError(cause)) return [`Caused by ${cut(inspect(cause), 1_000)}`];
    const message = field(cause, "message", 1_000);
    const title = `Caused by ${field(cause, "name", 200) || "Error"}${message && `: ${message}`}`;
    return [title, framesOf(cause, 4_000), ...below(cause)];
  });
  const parts = [framesOf(thrown, 8_000), ...below(thrown)];
  return cut(parts.map((part) => part.trimEnd()).filter(Boolean).join("\n"), 16_000);
}

/** The stack without the line that names the error, with places that the host maps unless the stack was replaced. */
function framesOf(error: Error, limit: number): string {
  try {
    const frames = rawFrames(error);
    if (frames !== undefined) return cut(frames, limit);
    const stack = field(error, "stack", limit);
    const head = heading(error);
    return stack.startsWith(`${head}\n`) ? stack.slice(head.length + 1) : stack;
  } catch {
    return "[cannot be read]";
  }
}

/** The frames of an error that code at top level threw. */
export function frames(error: Error): string {
  return framesOf(error, 16_000);
}

/** What an error says it was caused by: its cause, and the first of its errors. */
function* causesOf(error: Error): Generator<unknown> {
  try {
    const { cause, errors } = error as AggregateError;
    if (cause !== undefined) yield cause;
    if (Array.isArray(errors)) yield* errors.slice(0, 16);
  } catch {
    // A cause that cannot be read is not told of.
  }
}

function field(error: Error, name: "name" | "message" | "stack", limit: number): string {
  try {
    const value: unknown = error[name];
    return value === undefined || value === null ? "" : cut(typeof value === "string" ? value : inspect(value), limit);
  } catch {
    return "[cannot be read]";
  }
}
