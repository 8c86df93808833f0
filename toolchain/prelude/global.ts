/** Puts a value where scripts find it, as engines define what is built in: replaceable and not enumerable. */
export function define(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
}
