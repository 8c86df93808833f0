/** Defines a global like a built-in: replaceable and not enumerable. */
export function define(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
}

/** Makes the members of a class enumerable, as those of the web's interfaces are. */
function enumerate(prototype: object): void {
  for (const name of Object.getOwnPropertyNames(prototype)) if (name !== "constructor") Object.defineProperty(prototype, name, { enumerable: true });
}

const platform = new WeakSet<object>();

/** Whether an object is one of the classes of the web that install defined, or of a class that extends one. */
export function isPlatform(object: object): boolean {
  for (let of = Object.getPrototypeOf(object); of !== null; of = Object.getPrototypeOf(of)) if (platform.has(of)) return true;
  return false;
}

/** Defines classes and functions under the names they have on the web. */
export function install(web: Record<string, object>): void {
  for (const [name, value] of Object.entries(web)) {
    // The bundler renames declarations that have the name of a global.
    Object.defineProperty(value, "name", { value: name, configurable: true });
    define(name, value);
    if (!/^[A-Z]/.test(name)) continue;
    const { prototype } = value as { prototype: object };
    Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
    platform.add(prototype);
    enumerate(prototype);
  }
}
