// Converts a value that a tool threw into the error of its call. Code can throw any value, so nothing here trusts it.
import { fail, WitError } from "./bindings";
import { DeniedError } from "./errors";
import { cut, heading, inspect } from "./inspect";
import { firstAbsence } from "./missing";
import { causes, exhaustion } from "./resources";
import { rawFrames } from "./stack";

/** The case of the variant `error` of stile:extension/tools for a thrown value. */
export function failure(thrown: unknown): WitError {
  try {
    if (isA(thrown, WitError)) return thrown;
    const limit = exhaustion(thrown);
    if (limit) return new WitError({ tag: "exhausted", val: limit });
    const denial = causes(thrown).map(denialOf).find(Boolean);
    if (denial) return new WitError({ tag: "denied", val: denial });
    return new WitError({ tag: "failed", val: parts(thrown) });
  } catch {
    // The extension has broken a built-in that this needs.
    return new WitError({ tag: "failed", val: { name: "Error", message: "[the error cannot be read]", stack: "" } });
  }
}

/** The same for code at top level, where nothing can be denied: the case of the variant `error` of stile:extension/evaluator. */
export function topLevelFailure(thrown: unknown): WitError {
  if (isA(thrown, WitError)) return thrown;
  const limit = exhaustion(thrown);
  return new WitError(limit ? { tag: "exhausted", val: limit } : { tag: "failed", val: parts(thrown) });
}

let prevented: ((error: unknown) => boolean) | undefined;

/** Sets a function that sees what is reported. Where it returns true, nothing else happens. It must not throw. */
export function intercept(sees: typeof prevented): void {
  prevented = sees;
}

/** Ends the call with an error that no code can catch: one thrown by a timer or an event listener. */
export function report(error: unknown): void {
  if (!prevented?.(error)) fail(failure(error));
}

function denialOf(error: unknown) {
  return typeof error === "object" && error !== null ? DeniedError.carried(error) : undefined;
}

function parts(thrown: unknown): { name: string; message: string; stack: string } {
  const error = isError(thrown);
  return {
    name: error ? field(thrown, "name", 200) || "Error" : "Error",
    message: error ? field(thrown, "message", 8_000) : typeof thrown === "string" ? cut(thrown, 8_000) : inspect(thrown),
    stack: [error ? stacks(thrown) : "", caught(thrown)].filter(Boolean).join("\n"),
  };
}

/** An error about a name that does not exist, if code went on after it: what failed then may follow from it. */
function caught(thrown: unknown): string {
  const absence = firstAbsence();
  if (!absence || causes(thrown).includes(absence)) return "";
  return `Caught before: ${field(absence, "name", 200)}: ${field(absence, "message", 1_000)}\n${framesOf(absence, 4_000).trimEnd()}`;
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

/** The stack, followed by the stacks of the causes and of the errors of an AggregateError. */
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

/** The stack without the line that names the error. The host maps its positions, unless the stack was replaced. */
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

/** The causes that an error names: its cause, and the first of its errors. */
function* causesOf(error: Error): Generator<unknown> {
  try {
    const { cause, errors } = error as AggregateError;
    if (cause !== undefined) yield cause;
    if (Array.isArray(errors)) yield* errors.slice(0, 16);
  } catch {
    // A cause that cannot be read is left out.
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
