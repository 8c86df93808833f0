// The global object as a target of events: errors that nobody catches, and promises that nobody awaits.
import { dictionary, required } from "../dictionary";
import { intercept, report } from "../failure";
import { define, install } from "../global";
import { onRejections } from "../rejections";

class ErrorEvent extends Event {
  readonly message: string;
  readonly filename: string;
  readonly lineno: number;
  readonly colno: number;
  readonly error: unknown;
  constructor(type: string, options?: any) {
    required(arguments.length, 1, "ErrorEvent");
    super(type, options);
    const { message = "", filename = "", lineno = 0, colno = 0, error } = dictionary(options as any, "ErrorEvent") as any;
    this.message = `${message}`;
    this.filename = `${filename}`;
    this.lineno = lineno >>> 0;
    this.colno = colno >>> 0;
    this.error = error;
  }
}

class PromiseRejectionEvent extends Event {
  readonly promise: Promise<unknown>;
  readonly reason: unknown;
  constructor(type: string, options: any) {
    required(arguments.length, 2, "PromiseRejectionEvent");
    super(type, options);
    const { promise, reason } = dictionary(options as any, "PromiseRejectionEvent") as any;
    if (typeof promise !== "object" || promise === null) throw new TypeError("PromiseRejectionEvent: promise is wanted");
    this.promise = promise;
    this.reason = reason;
  }
}

const target = new EventTarget();
const { addEventListener, removeEventListener, dispatchEvent } = EventTarget.prototype;
const types = new Set<string>();
const globals = {
  addEventListener(type: string, listener: any, options?: any): void {
    types.add(`${type}`);
    addEventListener.call(target, type, listener, options);
  },
  removeEventListener(type: string, listener: any, options?: any): void {
    removeEventListener.call(target, type, listener, options);
  },
  dispatchEvent: (event: Event): boolean => dispatchEvent.call(target, event),
};
for (const [name, value] of Object.entries(globals)) define(name, value);

/** Dispatches an event. Returns whether something has prevented what else would be done. */
function handled(type: string, make: () => Event): boolean {
  return types.has(type) && !dispatchEvent.call(target, make());
}

let inside = false;
function prevented(error: any): boolean {
  if (inside) return false; // what a listener throws is not an event again
  inside = true;
  try {
    return handled("error", () => new ErrorEvent("error", { cancelable: true, message: Error.isError(error) ? `${(error as Error).message}` : `${error}`, error }));
  } catch {
    return false;
  } finally {
    inside = false;
  }
}
intercept(prevented);
onRejections(
  (promise, reason) => handled("unhandledrejection", () => new PromiseRejectionEvent("unhandledrejection", { cancelable: true, promise, reason })),
  (promise, reason) => void handled("rejectionhandled", () => new PromiseRejectionEvent("rejectionhandled", { promise, reason })),
);

function reportError(error: unknown): void {
  required(arguments.length, 1, "reportError");
  report(error);
}
for (const [name, type] of [["onerror", "error"], ["onunhandledrejection", "unhandledrejection"], ["onrejectionhandled", "rejectionhandled"]]) {
  let current: Function | null = null;
  let listener: ((event: any) => void) | null = null;
  Object.defineProperty(globalThis, name, {
    get: () => current,
    set: (value) => {
      if (listener) globals.removeEventListener(type, listener);
      current = typeof value === "function" ? value : null;
      listener = current && ((event) => {
        const result = type === "error" ? (current as Function).call(globalThis, event.message, event.filename, event.lineno, event.colno, event.error) : (current as Function).call(globalThis, event);
        if (type === "error" ? result === true : result === false) event.preventDefault();
      });
      if (listener) globals.addEventListener(type, listener);
    },
    enumerable: true,
    configurable: true,
  });
}
install({ ErrorEvent, PromiseRejectionEvent, reportError });
