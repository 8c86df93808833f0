// node:async_hooks. The engine carries no context across an await, so a store would be lost or be another caller's.
const absent = (name: string) => {
  throw new TypeError(`${name} is not available: nothing carries a store across await here; pass the value as an argument`);
};

export class AsyncLocalStorage {
  getStore(): undefined {
    return undefined;
  }
  run(): never {
    return absent("AsyncLocalStorage.run");
  }
  enterWith(): never {
    return absent("AsyncLocalStorage.enterWith");
  }
  exit(callback: (...args: any[]) => any, ...args: any[]): any {
    return callback(...args);
  }
  disable(): void {}
  static bind = (f: Function) => f;
  static snapshot = () => (f: Function, ...args: any[]) => f(...args);
}

export class AsyncResource {
  constructor(readonly type: string) {}
  runInAsyncScope(f: Function, self?: unknown, ...args: any[]): any {
    return f.apply(self, args);
  }
  bind<F extends Function>(f: F): F {
    return f;
  }
  emitDestroy(): this {
    return this;
  }
  asyncId = () => 0;
  triggerAsyncId = () => 0;
  static bind = (f: Function) => f;
}

export const createHook = (): never => absent("createHook");
export const executionAsyncId = () => 0;
export const triggerAsyncId = () => 0;
export const executionAsyncResource = () => ({});
export default { AsyncLocalStorage, AsyncResource, createHook, executionAsyncId, triggerAsyncId, executionAsyncResource };
