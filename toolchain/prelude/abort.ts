// AbortController and AbortSignal.
import { type Event, EventTarget, fire } from "./events";
import { setTimeout } from "./timers";

// Only this module can create signals: the constructor requires this key.
const key = Symbol("AbortSignal");
let abortSignal: (signal: AbortSignal, reason: unknown) => void;

export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason: unknown;
  // Signals that any() made of others: what they follow, and what follows this one.
  #sources: AbortSignal[] | undefined;
  #dependents: AbortSignal[] | undefined;
  #onabort: ((event: Event) => void) | null = null;

  constructor(made?: symbol) {
    super();
    if (made !== key) throw new TypeError("AbortSignal is made by an AbortController");
  }
  static abort(reason?: unknown): AbortSignal {
    const signal = new AbortSignal(key);
    abortSignal(signal, reason);
    return signal;
  }
  static timeout(milliseconds: number): AbortSignal {
    const delay = Math.trunc(Number(milliseconds));
    if (!(delay >= 0 && delay <= Number.MAX_SAFE_INTEGER)) throw new TypeError(`AbortSignal.timeout: ${milliseconds} is no number of milliseconds`);
    const signal = new AbortSignal(key);
    setTimeout(() => abortSignal(signal, new DOMException("the time is up", "TimeoutError")), delay);
    return signal;
  }
  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const signal = new AbortSignal(key);
    const sources = [...signals];
    for (const source of sources) if (!(source instanceof AbortSignal)) throw new TypeError("AbortSignal.any: each of them is an AbortSignal");
    const aborted = sources.find((source) => source.#aborted);
    if (aborted) {
      abortSignal(signal, aborted.#reason);
      return signal;
    }
    // Only signals that depend on no other are followed, so all that follow one abort before any listener runs.
    signal.#sources = [...new Set(sources.flatMap((source) => source.#sources ?? [source]))];
    for (const source of signal.#sources) (source.#dependents ??= []).push(signal);
    return signal;
  }
  get aborted(): boolean {
    return this.#aborted;
  }
  get reason(): unknown {
    return this.#reason;
  }
  get onabort() {
    return this.#onabort;
  }
  set onabort(listener: ((event: Event) => void) | null) {
    this.removeEventListener("abort", this.#onabort);
    this.#onabort = typeof listener === "function" ? listener : null;
    this.addEventListener("abort", this.#onabort);
  }
  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }
  static {
    abortSignal = (signal, reason) => {
      if (signal.#aborted) return;
      const why = reason === undefined ? new DOMException("this operation was aborted", "AbortError") : reason;
      const all = [signal, ...(signal.#dependents ?? []).filter((dependent) => !dependent.#aborted)];
      for (const each of all) {
        each.#aborted = true;
        each.#reason = why;
        for (const source of each.#sources ?? []) if (source !== signal) source.#dependents = source.#dependents?.filter((other) => other !== each);
      }
      signal.#dependents = undefined;
      for (const each of all) fire(each, "abort");
    };
  }
}

export class AbortController {
  readonly signal = new AbortSignal(key);
  abort(reason?: unknown): void {
    abortSignal(this.signal, reason);
  }
}

/** A signal that aborts only when `source` does. */
export function follow(source: AbortSignal | null | undefined): AbortSignal {
  return AbortSignal.any(source ? [source] : []);
}

/** Settles like the promise. If the signal aborts first, calls `abandon` and rejects with the signal's reason. */
export function orAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined, abandon: () => void): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => {
      abandon();
      reject(signal.reason);
    };
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
