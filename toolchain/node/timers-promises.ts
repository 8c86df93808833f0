// node:timers/promises.
interface Options {
  signal?: AbortSignal;
}
const global = globalThis as any;

function wait<T>(start: (done: () => void) => unknown, clear: (id: any) => void, value: T, { signal }: Options = {}): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clear(id);
      reject(signal!.reason);
    };
    const id = start(() => {
      signal?.removeEventListener("abort", stop);
      resolve(value);
    });
    signal?.addEventListener("abort", stop, { once: true });
  });
}

export function setTimeout<T = void>(milliseconds?: number, value?: T, options?: Options): Promise<T> {
  return wait((done) => global.setTimeout(done, milliseconds), global.clearTimeout, value as T, options);
}
export function setImmediate<T = void>(value?: T, options?: Options): Promise<T> {
  return wait((done) => global.setImmediate(done), global.clearImmediate, value as T, options);
}
export async function* setInterval<T = void>(milliseconds?: number, value?: T, options?: Options): AsyncGenerator<T> {
  for (;;) yield await setTimeout(milliseconds, value as T, options);
}
export const scheduler = { wait: (milliseconds: number, options?: Options) => setTimeout(milliseconds, undefined, options), yield: () => setImmediate() };
export default { setTimeout, setImmediate, setInterval, scheduler };
