// The engine's own limits. Reaching one is remembered, so that a call that catches the error and fails with another one
// still reports the limit.
let met: string | undefined;

/** Forgets the limit that was reached. Called at the start of a call. */
export function forget(): void {
  met = undefined;
}

/** The limit that a thrown value or one of its causes reports, or that was reached before. */
export function exhaustion(thrown: unknown): string | undefined {
  for (const error of causes(thrown)) {
    const limit = limitOf(error);
    if (limit) return met?.startsWith(limit) ? met : limit;
  }
  return met;
}

/** A thrown value and its causes. */
export function causes(thrown: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let at = thrown; at !== undefined && chain.length < 16 && !chain.includes(at); at = causeOf(at)) chain.push(at);
  return chain;
}

function causeOf(value: unknown): unknown {
  try {
    return typeof value === "object" && value !== null ? (value as Error).cause : undefined;
  } catch {
    return undefined;
  }
}

function limitOf(error: unknown): string | undefined {
  try {
    if (!Error.isError(error)) return undefined;
    const message = (error as Error).message;
    if (error instanceof InternalError && message === "out of memory") return "memory: out of memory";
    if (error instanceof InternalError && message === "string too long") return "memory: string too long";
    if (error instanceof RangeError) {
      if (message === "invalid string length") return "memory: string too long";
      if (message === "Maximum call stack size exceeded") return "stack: maximum call stack size exceeded";
    }
  } catch {
    // An error whose parts cannot be read is not the engine's.
  }
  return undefined;
}

declare const InternalError: ErrorConstructor;

/** Receives each error that the engine creates, with its frames, and remembers the limit that it reports. A full stack says where it was. */
export function limitMet(error: unknown, frames: string): void {
  if (met) return;
  met = limitOf(error);
  if (met?.startsWith("stack")) met += `\n${frames}`;
}
