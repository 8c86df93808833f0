/** Defines a global like a built-in: replaceable and not enumerable. */
export function define(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
}

/** Defines classes and functions under the names they have on the web. */
export function install(web: Record<string, object>): void {
  for (const [name, value] of Object.entries(web)) {
    // The bundler renames declarations that have the name of a global.
    Object.defineProperty(value, "name", { value: name, configurable: true });
    define(name, value);
  }
}
