// The errors an author sees when an operation of a capability fails.
import { WitError } from "./bindings";

export interface Denial {
  binding: string;
  operation: string;
  reason: string;
  remedy: string;
}

// The message of each case of the variant `error` of stile:capability/types, made from its payload.
const texts: Record<string, (value: any) => string> = {
  revoked: (reason) => `the grant was revoked${reason && `: ${reason}`}`,
  expired: () => "the grant has expired",
  exhausted: (limit) => `exhausted: ${limit}`,
  "timed-out": () => "timed out",
  "too-large": (size) => (size > 0n ? `too large: ${size} bytes` : "too large"),
  "not-found": (what) => `not found: ${what}`,
  "already-exists": (what) => `already exists: ${what}`,
  conflict: (what) => `changed meanwhile: ${what}`,
  invalid: (what) => `invalid: ${what}`,
  unavailable: (what) => `unavailable: ${what}`,
  interrupted: (what) => `interrupted: ${what}`,
};

export class CapabilityError extends Error {
  readonly code: string;
  declare readonly payload: unknown;

  constructor(code: string, message: string, payload?: unknown) {
    super(message);
    this.code = code;
    Object.defineProperty(this, "payload", { value: payload });
  }
  static {
    Object.defineProperty(this.prototype, "name", { value: "CapabilityError", writable: true, configurable: true });
  }
}

export class DeniedError extends CapabilityError {
  // The report to the host reads this field, so that an author's changes to `denial` do not affect it.
  #denial: Denial;

  constructor(denial: Denial) {
    const { binding, operation, reason, remedy } = denial;
    const text = { binding: `${binding}`, operation: `${operation}`, reason: `${reason}`, remedy: `${remedy}` };
    super("denied", `denied: ${text.operation}: ${text.reason}${text.remedy && `; ${text.remedy}`}`, text);
    this.#denial = text;
  }
  get denial(): Denial {
    return { ...this.#denial };
  }
  static {
    Object.defineProperty(this.prototype, "name", { value: "DeniedError", writable: true, configurable: true });
  }

  /** The denial that a thrown value carries; undefined if it is not a DeniedError. */
  static carried(thrown: object): Denial | undefined {
    return #denial in thrown ? thrown.#denial : undefined;
  }
}

/** The denial of an operation whose interface has no binding. */
export function unbound(kind: string, operation: string): DeniedError {
  return new DeniedError({
    binding: kind,
    operation,
    reason: `nothing is bound to ${kind}`,
    remedy: `add to the manifest: "bindings": { "${kind}": { "${kind}": true } }`,
  });
}

/** Runs operations of raw handles, and converts their errors into the ones that authors see. limit says which limit makes something too large. */
export function ask<T>(operation: () => T, limit?: string): T {
  try {
    return operation();
  } catch (thrown) {
    throw thrown instanceof WitError ? surface(thrown.payload, limit) : thrown;
  }
}

function surface(payload: any, limit?: string): CapabilityError {
  if (payload?.tag === "denied") return new DeniedError(payload.val);
  const text = Object.hasOwn(texts, payload?.tag) && texts[payload.tag];
  if (text) {
    const more = payload.tag === "too-large" && limit ? `; ${limit}` : "";
    return new CapabilityError(payload.tag, text(payload.val) + more, payload.val);
  }
  return new CapabilityError("error", typeof payload === "string" ? payload : describe(payload), payload);
}

function describe(payload: unknown): string {
  return JSON.stringify(payload, (_, value) => (typeof value === "bigint" ? `${value}` : value)) ?? "the operation failed";
}

/** The use of a binding that the call does not have. toolchain.Unbound reads the binding's name from the message. */
export class UnboundError extends TypeError {
  static {
    Object.defineProperty(this.prototype, "name", { value: "UnboundError", writable: true, configurable: true });
  }
}
