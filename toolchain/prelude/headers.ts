// Headers.
import { required } from "./dictionary";

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

export type Init = Headers | Iterable<readonly [string, string]> | Record<string, string>;

function lower(name: string): string {
  const text = `${name}`;
  if (!token.test(text)) throw new TypeError(`Headers: invalid name ${JSON.stringify(text.slice(0, 100))}`);
  return text.toLowerCase();
}

function clean(value: string): string {
  const text = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  if (/[\0\n\r]|[^\0-\xff]/.test(text)) throw new TypeError(`Headers: invalid value ${JSON.stringify(text.slice(0, 100))}`);
  return text;
}

let received: (list: { name: string; value: string }[]) => Headers;
let freeze: (headers: Headers) => void;

/** Goes through headers by position, so it also sees what changes meanwhile. */
class HeadersIterator<T> extends Iterator<T, undefined> {
  #at = 0;
  #list: () => [string, string][];
  #take: (pair: [string, string]) => T;
  constructor(list: () => [string, string][], take: (pair: [string, string]) => T) {
    super();
    this.#list = list;
    this.#take = take;
  }
  next(): IteratorResult<T, undefined> {
    const list = this.#list();
    return this.#at < list.length ? { value: this.#take(list[this.#at++]), done: false } : { value: undefined, done: true };
  }
  static {
    Object.defineProperty(HeadersIterator.prototype, "next", { enumerable: true });
    Object.defineProperty(HeadersIterator.prototype, Symbol.toStringTag, { value: "Headers Iterator", configurable: true });
    Reflect.deleteProperty(HeadersIterator.prototype, "constructor");
  }
}

export class Headers {
  // One entry for each appended value, in order, under lower-case names.
  #list: [string, string][] = [];
  #immutable = false;
  #sorted: [string, string][] | undefined;

  constructor(init?: Init) {
    if (init === undefined) return;
    if ((typeof init !== "object" && typeof init !== "function") || init === null) throw new TypeError("Headers: an object or a list of pairs is wanted");
    const iterate = (init as Iterable<readonly [string, string]>)[Symbol.iterator];
    if (#list in init && iterate === Headers.prototype.entries) this.#list = [...init.#list];
    else if (iterate !== undefined && iterate !== null) this.#pairs({ [Symbol.iterator]: () => iterate.call(init) });
    else
      for (const name of Reflect.ownKeys(init)) {
        if (!Reflect.getOwnPropertyDescriptor(init, name)?.enumerable) continue;
        if (typeof name === "symbol") throw new TypeError("Headers: a symbol is no name");
        lower(name);
        this.append(name, (init as Record<string, string>)[name]);
      }
  }
  #pairs(pairs: Iterable<Iterable<string>>): void {
    for (const pair of pairs) {
      if (typeof pair !== "object" || pair === null) throw new TypeError("Headers: each pair has a name and a value");
      const both = [...pair];
      if (both.length !== 2) throw new TypeError("Headers: each pair has a name and a value");
      this.append(both[0], both[1]);
    }
  }
  #change(list: [string, string][]): void {
    if (this.#immutable) throw new TypeError("Headers: those of a response that was received cannot be changed; new Headers(headers) is a copy that can");
    this.#list = list;
    this.#sorted = undefined;
  }
  append(name: string, value: string): void {
    required(arguments.length, 2, "Headers.append");
    this.#change([...this.#list, [lower(name), clean(value)]]);
  }
  delete(name: string): void {
    required(arguments.length, 1, "Headers.delete");
    const key = lower(name);
    this.#change( this.#list.filter(([other]) => other !== key));
  }
  get(name: string): string | null {
    required(arguments.length, 1, "Headers.get");
    const key = lower(name);
    const values = this.#list.filter(([other]) => other === key);
    return values.length ? values.map(([, value]) => value).join(", ") : null;
  }
  getSetCookie(): string[] {
    return this.#list.filter(([name]) => name === "set-cookie").map(([, value]) => value);
  }
  has(name: string): boolean {
    required(arguments.length, 1, "Headers.has");
    const key = lower(name);
    return this.#list.some(([other]) => other === key);
  }
  set(name: string, value: string): void {
    required(arguments.length, 2, "Headers.set");
    const key = lower(name);
    const text = clean(value);
    const first = this.#list.findIndex(([other]) => other === key);
    this.#change(first < 0 ? [...this.#list, [key, text]] : this.#list.filter(([other], at) => other !== key || at === first).with(first, [key, text]));
  }
  forEach(callback: (value: string, name: string, parent: Headers) => void, thisArg?: unknown): void {
    required(arguments.length, 1, "Headers.forEach");
    if (typeof callback !== "function") throw new TypeError("Headers.forEach: the callback is not a function");
    for (const [name, value] of this.entries()) callback.call(thisArg, value, name, this);
  }
  entries(): HeadersIterator<[string, string]> {
    return new HeadersIterator(() => this.#combined(), ([name, value]) => [name, value]);
  }
  keys(): HeadersIterator<string> {
    return new HeadersIterator(() => this.#combined(), ([name]) => name);
  }
  values(): HeadersIterator<string> {
    return new HeadersIterator(() => this.#combined(), ([, value]) => value);
  }
  declare [Symbol.iterator]: () => HeadersIterator<[string, string]>;
  /** Names in order, with their values joined, except those of set-cookie. */
  #combined(): [string, string][] {
    return (this.#sorted ??= [...new Set(this.#list.map(([name]) => name))]
      .sort()
      .flatMap((name): [string, string][] => (name === "set-cookie" ? this.getSetCookie().map((value) => [name, value]) : [[name, this.get(name)!]])));
  }
  static {
    received = (list) => {
      const headers = new Headers();
      for (const { name, value } of list) headers.#list.push([name, value]);
      return headers;
    };
    freeze = (headers) => {
      headers.#immutable = true;
    };
    Object.defineProperty(Headers.prototype, Symbol.iterator, { value: Headers.prototype.entries, writable: true, configurable: true });
  }
}

/** Makes headers refuse changes, as those of received responses do. */
export function immutable(headers: Headers): void {
  freeze(headers);
}

/** Headers as the host gives them: their names are valid and in lower case. */
export function receivedHeaders(list: { name: string; value: string }[]): Headers {
  return received(list);
}
