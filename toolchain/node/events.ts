// node:events. Other modules of node extend the same class.
import EventEmitter from "@jspm/core/nodelibs/browser/events.js";

export const defaultMaxListeners = 10;
export const errorMonitor = Symbol("events.errorMonitor");
export const captureRejectionSymbol = Symbol.for("nodejs.rejection");

type Listener = (...args: any[]) => void;

/** Calls a function for an event of an emitter of node or of the web. Returns what removes it. */
function listen(emitter: any, name: any, listener: Listener): () => void {
  if (typeof emitter?.on === "function") {
    emitter.on(name, listener);
    return () => emitter.removeListener(name, listener);
  }
  if (typeof emitter?.addEventListener !== "function") throw new TypeError("events: an EventEmitter or EventTarget is wanted");
  emitter.addEventListener(name, listener);
  return () => emitter.removeEventListener(name, listener);
}

export function once(emitter: any, name: unknown, { signal }: { signal?: AbortSignal } = {}): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const remove: (() => void)[] = [];
    const settle = (act: (value: any) => void, value: unknown) => {
      for (const each of remove) each();
      act(value);
    };
    remove.push(listen(emitter, name, (...args) => settle(resolve, args)));
    if (name !== "error" && typeof emitter.on === "function") remove.push(listen(emitter, "error", (error) => settle(reject, error)));
    if (signal) remove.push(listen(signal, "abort", () => settle(reject, signal.reason)));
  });
}

export function on(emitter: any, name: unknown, { signal }: { signal?: AbortSignal } = {}): AsyncIterableIterator<unknown[]> {
  const values: unknown[][] = [];
  const reads: { resolve(result: IteratorResult<unknown[]>): void; reject(error: unknown): void }[] = [];
  let failure: { error: unknown } | undefined;
  let ended = false;
  const remove: (() => void)[] = [];
  const end = () => {
    ended = true;
    for (const each of remove.splice(0)) each();
    for (const { resolve } of reads.splice(0)) resolve({ done: true, value: undefined });
  };
  const fail = (error: unknown) => {
    const read = reads.shift();
    if (read) read.reject(error);
    else failure = { error };
    end();
  };
  remove.push(listen(emitter, name, (...args) => {
    const read = reads.shift();
    if (read) read.resolve({ done: false, value: args });
    else values.push(args);
  }));
  if (name !== "error" && typeof emitter.on === "function") remove.push(listen(emitter, "error", fail));
  if (signal?.aborted) fail(signal.reason);
  else if (signal) remove.push(listen(signal, "abort", () => fail(signal.reason)));
  return {
    next: () => {
      if (values.length) return Promise.resolve({ done: false, value: values.shift()! });
      if (failure) {
        const { error } = failure;
        failure = undefined;
        return Promise.reject(error);
      }
      if (ended) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve, reject) => reads.push({ resolve, reject }));
    },
    return: () => {
      end();
      return Promise.resolve({ done: true, value: undefined });
    },
    throw: (error) => {
      fail(error);
      return Promise.reject(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

export function listenerCount(emitter: any, name: unknown): number {
  return emitter.listenerCount(name);
}
export function getEventListeners(emitter: any, name: unknown): Function[] {
  if (typeof emitter?.listeners !== "function") throw new TypeError("getEventListeners: an EventEmitter is wanted");
  return emitter.listeners(name);
}
export function setMaxListeners(count: number, ...emitters: any[]): void {
  for (const emitter of emitters) emitter.setMaxListeners?.(count);
}
export function getMaxListeners(emitter: any): number {
  return emitter.getMaxListeners?.() ?? defaultMaxListeners;
}
/** Calls a function when a signal aborts. */
export function addAbortListener(signal: AbortSignal, listener: (event: any) => void): Disposable {
  if (signal.aborted) queueMicrotask(() => listener(undefined));
  else signal.addEventListener("abort", listener, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", listener) };
}

Object.assign(EventEmitter, { once, on, errorMonitor, captureRejectionSymbol, getEventListeners, setMaxListeners, getMaxListeners, addAbortListener });
export { EventEmitter };
export default EventEmitter;
