/** A Web IDL dictionary: undefined and null become one without members. */
export function dictionary<T extends object>(value: T | null | undefined, what: string): Partial<T> {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" && typeof value !== "function") throw new TypeError(`${what}: the options are an object, not a ${typeof value}`);
  return value;
}

/** Checks that there are as many arguments as Web IDL requires. */
export function required(given: number, wanted: number, what: string): void {
  if (given < wanted) throw new TypeError(`${what}: at least ${wanted} argument${wanted > 1 ? "s" : ""} required, but ${given} given`);
}
