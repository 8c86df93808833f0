// Headers.
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

export type Init = Headers | Iterable<readonly [string, string]> | Record<string, string>;

function lower(name: string): string {
  const text = `${name}`;
  if (!token.test(text)) throw new TypeError(`Headers: invalid name ${JSON.stringify(text.slice(0, 100))}`);
  return text.toLowerCase();
}

function clean(value: string): string {
  const text = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  if (/[^\t\x20-\xff]/.test(text)) throw new TypeError(`Headers: invalid value ${JSON.stringify(text.slice(0, 100))}`);
  return text;
}

let received: (list: { name: string; value: string }[]) => Headers;

export class Headers {
  // One entry for each appended value, in order, under lower-case names.
  #list: [string, string][] = [];

  constructor(init?: Init) {
    if (init === undefined) return;
    if (init instanceof Headers) {
      this.#list = [...init.#list];
      return;
    }
    if (typeof init !== "object" || init === null) throw new TypeError("Headers: an object or a list of pairs is wanted");
    const pairs = Symbol.iterator in init ? init : Object.entries(init);
    for (const pair of pairs) {
      const [name, value, ...more] = pair;
      if (value === undefined || more.length) throw new TypeError("Headers: each pair has a name and a value");
      this.append(name, value);
    }
  }
  append(name: string, value: string): void {
    this.#list.push([lower(name), clean(value)]);
  }
  delete(name: string): void {
    const key = lower(name);
    this.#list = this.#list.filter(([other]) => other !== key);
  }
  get(name: string): string | null {
    const key = lower(name);
    const values = this.#list.filter(([other]) => other === key);
    return values.length ? values.map(([, value]) => value).join(", ") : null;
  }
  getSetCookie(): string[] {
    return this.#list.filter(([name]) => name === "set-cookie").map(([, value]) => value);
  }
  has(name: string): boolean {
    const key = lower(name);
    return this.#list.some(([other]) => other === key);
  }
  set(name: string, value: string): void {
    const key = lower(name);
    const text = clean(value);
    const first = this.#list.findIndex(([other]) => other === key);
    if (first < 0) this.#list.push([key, text]);
    else this.#list = this.#list.filter(([other], at) => other !== key || at === first).with(first, [key, text]);
  }
  forEach(callback: (value: string, name: string, parent: Headers) => void, thisArg?: unknown): void {
    for (const [name, value] of this) callback.call(thisArg, value, name, this);
  }
  *entries(): Generator<[string, string]> {
    for (const name of [...new Set(this.#list.map(([name]) => name))].sort())
      if (name === "set-cookie") for (const value of this.getSetCookie()) yield [name, value];
      else yield [name, this.get(name)!];
  }
  *keys(): Generator<string> {
    for (const [name] of this.entries()) yield name;
  }
  *values(): Generator<string> {
    for (const [, value] of this.entries()) yield value;
  }
  [Symbol.iterator](): Generator<[string, string]> {
    return this.entries();
  }
  get [Symbol.toStringTag](): string {
    return "Headers";
  }
  static {
    received = (list) => {
      const headers = new Headers();
      for (const { name, value } of list) headers.#list.push([name, value]);
      return headers;
    };
  }
}

/** Headers as the host gives them: their names are valid and in lower case. */
export function receivedHeaders(list: { name: string; value: string }[]): Headers {
  return received(list);
}
