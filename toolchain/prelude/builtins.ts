// The engine creates most of its built-in functions when they are first read. Reading them here creates them once, in the image,
// instead of in each call.
const seen = new Set<object>();

function read(object: unknown): void {
  if ((typeof object !== "object" && typeof object !== "function") || object === null || seen.has(object)) return;
  seen.add(object);
  for (const key of Reflect.ownKeys(object)) {
    const property = Reflect.getOwnPropertyDescriptor(object, key);
    if (property && "value" in property) read(property.value);
  }
}

/** Makes the engine create the built-ins that code commonly uses. */
export function makeBuiltins(): void {
  for (const object of [Object, Array, String, Number, Boolean, Math, JSON, Map, Set, Promise, Date, RegExp, Error, Reflect, Symbol]) read(object);
  seen.clear();
}
