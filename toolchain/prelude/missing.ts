// Calls of methods that a capability's object does not have. The engine only says "not a function". The objects inherit from a proxy, which
// is asked only for what they lack: nothing else takes time or memory for it.
import { building } from "./bindings";

/** The property that code last read from such an object in vain, and where. */
interface Miss {
  name: string;
  has: string;
  place: Place;
}
interface Place {
  getFunctionName(): string | null;
  getFileName(): string | null;
  getLineNumber(): number;
  getColumnNumber(): number;
}

let last: Miss | undefined;
let reading: { place: Place | undefined } | undefined;
let nameOf: (object: object) => string | undefined = () => undefined;
const above = new Map<string, object>();

/** Properties that promises, JSON and tests for kinds of objects read from any object. */
const probes = new Set(["then", "toJSON", "constructor", "nodeType", "asymmetricMatch", "$$typeof"]);

/** Sets what names the object of a binding, as in env.notes. */
export function nameWith(find: (object: object) => string | undefined): void {
  nameOf = find;
}

/** Has errors name what an object lacks. what says what it is, such as "a workspace". */
export function telling<T extends object>(object: T, what: string): T {
  return Object.setPrototypeOf(object, above.get(what) ?? lacking(what));
}

/** What a binding of an interface is. */
export function word(kind: string): string {
  const name = kind.slice(kind.lastIndexOf("/") + 1);
  const noun = ["browser", "clock", "sandbox", "workspace"].includes(name) ? name : `binding of ${name}`;
  return `a ${noun}`;
}

function lacking(what: string): object {
  const made = new Proxy({}, {
    get(target: object, key, object) {
      if (key in target || typeof key === "symbol" || probes.has(key)) return Reflect.get(target, key, object);
      const from = nameOf(object) ?? (/^an? /.test(what) ? "" : what); // without a name of its own, what it has says what it is
      const place = placeOfReader();
      last = place && { name: from ? `${from}.${key}` : key, has: `${what} has: ${members(object).join(", ")}`, place };
      return undefined;
    },
  });
  above.set(what, made);
  return made;
}

/** The names that an object offers, also those of its class. */
function members(object: object): string[] {
  const names = new Set<string>();
  for (let at = object; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) if (name !== "constructor") names.add(name);
  }
  return [...names];
}

/** The place in the author's code that reads. */
function placeOfReader(): Place | undefined {
  reading = { place: undefined };
  try {
    new Error();
    return reading.place;
  } finally {
    reading = undefined;
  }
}

/** The first error of this call about a name that does not exist. Code that asks with typeof makes none. */
let absence: Error | undefined;

export function firstAbsence(): Error | undefined {
  return absence;
}

// What the engine says where code reads a part of Intl by globalThis. A lookup runs nothing that code can replace.
const ofIntl: Record<string, boolean> = Object.create(null);
for (const part of ["Collator", "DateTimeFormat", "DisplayNames", "DurationFormat", "ListFormat", "Locale", "NumberFormat", "PluralRules", "RelativeTimeFormat", "Segmenter"])
  ofIntl[`cannot read property '${part}' of undefined`] = true;

const isCode = (site: Place) => site.getFileName() === "extension.js";

/** Called with each error that the engine creates. */
export function explain(error: any, sites: Place[]): void {
  if (reading) reading.place = sites.find(isCode);
  else if (!absence && !building() && (error instanceof ReferenceError || ofIntl[error.message])) absence = error;
  else if (last && error instanceof TypeError && error.message === "not a function") {
    const { name, has, place } = last;
    last = undefined;
    const site = sites.find(isCode);
    if (!site || site.getFunctionName() !== place.getFunctionName()) return;
    // The place of a call is in its arguments. What is further away is another call. A bundle has all code in few lines.
    const lines = site.getLineNumber() - place.getLineNumber();
    const columns = site.getColumnNumber() - place.getColumnNumber();
    if (lines === 0 ? columns < 0 || columns > 120 : lines < 0 || lines > 3) return;
    Object.defineProperty(error, "message", { value: `${name} is not a function; ${has}`, writable: true, configurable: true });
  }
}

/** The name that is most like another, if one is. */
export function nearest(name: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Infinity;
  for (const other of names) {
    if (name.length > 2 * other.length + 2) continue;
    let row = Array.from({ length: other.length + 1 }, (_, i) => i);
    for (let i = 1; i <= name.length; i++) {
      const next = [i];
      for (let j = 1; j <= other.length; j++) {
        next[j] = Math.min(row[j - 1] + (name[i - 1] === other[j - 1] ? 0 : 1), row[j] + 1, next[j - 1] + 1);
      }
      row = next;
    }
    const distance = row[other.length];
    if (distance < least && distance <= Math.ceil(other.length / 3)) [best, least] = [other, distance];
  }
  return best;
}
