// What the cases here are written with. Each file but this one exports a function that is run as a tool; it fails by throwing.
// Its first line names the bindings it is given: `// bindings: clock, kv`.

export function equal(actual: unknown, expected: unknown, what = ""): void {
  if (!same(actual, expected)) throw new Error(`${what || "value"}: got ${show(actual)}, want ${show(expected)}`);
}

export function ok(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`not so: ${what}`);
}

/** Runs `action`, which must throw an error that all of `wanted` holds of; the message is matched as a part. */
export function throws(action: () => unknown, wanted: { name?: string; message?: string; code?: unknown } = {}): any {
  let thrown: any;
  try {
    action();
  } catch (error) {
    thrown = error;
  }
  return check(thrown, wanted);
}

/** The same for a promise. */
export async function rejects(promise: Promise<unknown>, wanted: { name?: string; message?: string; code?: unknown } = {}): Promise<any> {
  return check(await promise.then(() => undefined, (error) => error), wanted);
}

function check(thrown: any, { name, message, code }: { name?: string; message?: string; code?: unknown }): any {
  if (thrown === undefined) throw new Error(`nothing was thrown; want ${show({ name, message, code })}`);
  if (name !== undefined) equal(thrown.name, name, "error name");
  if (code !== undefined) equal(thrown.code, code, "error code");
  if (message !== undefined) ok(`${thrown.message}`.includes(message), `${show(thrown.message)} contains ${show(message)}`);
  return thrown;
}

function same(a: any, b: any): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Date) return a.getTime() === b.getTime();
  const keys = Reflect.ownKeys(a);
  return keys.length === Reflect.ownKeys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}

function show(value: unknown): string {
  return JSON.stringify(value, (_, item) => (typeof item === "bigint" ? `${item}n` : item)) ?? String(value);
}
