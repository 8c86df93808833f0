// File, FormData, and bodies that are forms.
import { Blob, blobBytes, copyBlob, type Part } from "../blob";
import { acceptForms, Body, type Content } from "../body";
import { kinds } from "../clone";
import { dictionary } from "../dictionary";
import { decode, encode } from "../encoding";
import { install } from "../global";

export class File extends Blob {
  #name: string;
  #lastModified: number;

  constructor(parts: Iterable<Part>, name: string, options: { type?: string; lastModified?: number } | null | undefined = undefined) {
    if (arguments.length < 2) throw new TypeError("File: parts and a name are wanted");
    super(parts, options);
    const { lastModified } = dictionary(options, "File");
    this.#name = `${name}`.toWellFormed();
    this.#lastModified = lastModified === undefined ? Date.now() : Math.trunc(Number(lastModified)) || 0;
  }
  get name(): string {
    return this.#name;
  }
  get lastModified(): number {
    return this.#lastModified;
  }
  get webkitRelativePath(): string {
    return "";
  }
}

install({ File });
kinds.push({ is: (value) => value instanceof File, clone: (file: File) => copyBlob(file, new File([], file.name, { lastModified: file.lastModified })) });

type Entry = string | File;

/** The value of an entry: a text, or a file with a name. */
function entry(value: unknown, filename: unknown, given: boolean): Entry {
  if (!(value instanceof Blob)) {
    if (given) throw new TypeError("FormData: only a Blob has a file name");
    return `${value}`.toWellFormed();
  }
  if (!given && value instanceof File) return value;
  return new File([value], given ? `${filename}` : "blob", { type: value.type, ...(value instanceof File && { lastModified: value.lastModified }) });
}

const text = (name: unknown) => `${name}`.toWellFormed();

class FormData {
  #entries: [string, Entry][] = [];

  constructor(form?: undefined) {
    if (form !== undefined) throw new TypeError("FormData: there are no elements of forms here");
  }
  append(name: string, value: unknown, filename?: string): void {
    if (arguments.length < 2) throw new TypeError("FormData.append: a name and a value are wanted");
    this.#entries.push([text(name), entry(value, filename, filename !== undefined)]);
  }
  set(name: string, value: unknown, filename?: string): void {
    if (arguments.length < 2) throw new TypeError("FormData.set: a name and a value are wanted");
    const made: [string, Entry] = [text(name), entry(value, filename, filename !== undefined)];
    const at = this.#entries.findIndex(([other]) => other === made[0]);
    if (at < 0) this.#entries.push(made);
    else this.#entries = this.#entries.filter(([other], i) => i <= at || other !== made[0]).with(at, made);
  }
  delete(name: string): void {
    name = text(name);
    this.#entries = this.#entries.filter(([other]) => other !== name);
  }
  get(name: string): Entry | null {
    name = text(name);
    return this.#entries.find(([other]) => other === name)?.[1] ?? null;
  }
  getAll(name: string): Entry[] {
    name = text(name);
    return this.#entries.filter(([other]) => other === name).map(([, value]) => value);
  }
  has(name: string): boolean {
    name = text(name);
    return this.#entries.some(([other]) => other === name);
  }
  forEach(callback: (value: Entry, name: string, parent: FormData) => void, thisArg?: unknown): void {
    for (const [name, value] of this) callback.call(thisArg, value, name, this);
  }
  *entries(): Generator<[string, Entry]> {
    for (let at = 0; at < this.#entries.length; at++) yield [...this.#entries[at]!];
  }
  *keys(): Generator<string> {
    for (const [name] of this.entries()) yield name;
  }
  *values(): Generator<Entry> {
    for (const [, value] of this.entries()) yield value;
  }
  [Symbol.iterator](): Generator<[string, Entry]> {
    return this.entries();
  }
}

install({ FormData });

/** The place of bytes in others, -1 if they are not there. The time is linear if few starts of the needle occur. */
function find(bytes: Uint8Array, needle: Uint8Array, from: number): number {
  for (let at = from; ; at++) {
    at = bytes.indexOf(needle[0]!, at);
    if (at < 0) return -1;
    let n = 1;
    while (n < needle.length && bytes[at + n] === needle[n]) n++;
    if (n === needle.length) return at;
  }
}

const lines = (value: string) => value.replace(/\r\n?|\n/g, "\r\n");
const escapes: Record<string, string> = { "\n": "%0A", "\r": "%0D", '"': "%22" };
const quoted = (name: string) => `"${name.replace(/[\n\r"]/g, (c) => escapes[c]!)}"`;

/** A form as multipart/form-data. See https://html.spec.whatwg.org/#multipart-form-data. */
function multipart(form: FormData): Content {
  const values: Uint8Array[] = [];
  const heads: string[] = [];
  for (const [name, value] of form) {
    const head = `Content-Disposition: form-data; name=${quoted(lines(name))}`;
    if (typeof value === "string") {
      heads.push(head);
      values.push(encode(lines(value)));
    } else {
      heads.push(`${head}; filename=${quoted(value.name)}\r\nContent-Type: ${value.type || "application/octet-stream"}`);
      values.push(blobBytes(value));
    }
  }
  // No value has the boundary in it. One made at random would need a binding, and could not be replayed without it.
  let boundary = "";
  for (let n = 0; boundary === ""; n++) {
    boundary = `_stile_form_${n}_`;
    const mark = encode(boundary);
    if (values.some((value) => find(value, mark, 0) >= 0)) boundary = "";
  }
  const parts: (string | Uint8Array<ArrayBuffer>)[] = [];
  values.forEach((value, i) => parts.push(`--${boundary}\r\n${heads[i]}\r\n\r\n`, value as Uint8Array<ArrayBuffer>, "\r\n"));
  const all = new Blob([...parts, `--${boundary}--\r\n`]);
  const bytes = blobBytes(all);
  return { source: bytes, type: `multipart/form-data; boundary=${boundary}`, text: () => decode(bytes), bytes: () => bytes, blob: (type) => new Blob([bytes], { type }) };
}

acceptForms((body) => (body instanceof FormData ? multipart(body) : undefined));

/** The most bytes that the headers of one part may have. */
const maxHead = 16_384;

/** A form from multipart/form-data. See https://andreubotella.github.io/multipart-form-data/. */
function parse(bytes: Uint8Array<ArrayBuffer>, type: string): FormData {
  const wrong = (why: string) => new TypeError(`formData: ${why}`);
  const given = /;\s*boundary=(?:"([^"]*)"|([^;\s]*))/i.exec(type);
  const boundary = given?.[1] ?? given?.[2] ?? "";
  if (!/^[\x20-\x7e]{1,70}$/.test(boundary)) throw wrong("the content type has no valid boundary");
  const next = encode(`\r\n--${boundary}`);
  const form = new FormData();
  let at = 0;
  while (bytes[at] === 13 && bytes[at + 1] === 10) at += 2;
  if (find(bytes.subarray(at, at + next.length - 2), next.subarray(2), 0) !== 0) throw wrong("the body does not begin with the boundary");
  at += next.length - 2;
  for (;;) {
    if (bytes[at] === 45 && bytes[at + 1] === 45) return form;
    if (bytes[at] !== 13 || bytes[at + 1] !== 10) throw wrong("a boundary is not followed by a new line");
    const end = find(bytes.subarray(at, at + maxHead), blank, 0);
    if (end < 0) throw wrong(`the headers of a part do not end, or have more than ${maxHead} bytes`);
    const head = decode(bytes.subarray(at + 2, at + end + 2));
    at += end + blank.length;
    const stop = at >= 2 ? find(bytes, next, at - 2) : -1; // the new line before the boundary may be that of the headers
    if (stop < 0) throw wrong("a part does not end with the boundary");
    const value = bytes.slice(at, Math.max(at, stop));
    at = stop + next.length;

    let name: string | undefined;
    let filename: string | undefined;
    let media = "";
    for (const line of head.split("\r\n")) {
      const colon = line.indexOf(":");
      const content = line.slice(colon + 1).trim();
      switch (line.slice(0, Math.max(0, colon)).trim().toLowerCase()) {
        case "content-disposition": {
          const [disposition, ...params] = content.match(/(?:[^;"]|"[^"]*")+/g) ?? [];
          if (disposition?.trim().toLowerCase() !== "form-data") throw wrong("a part is not form-data");
          for (const param of params) {
            const [, key, inside, bare] = /^\s*(name|filename)\s*=\s*(?:"([^"]*)"|([^\s"]*))\s*$/i.exec(param) ?? [];
            const text = (inside ?? bare)?.replace(/%0A/gi, "\n").replace(/%0D/gi, "\r").replace(/%22/g, '"');
            if (key?.toLowerCase() === "name") name = text;
            else if (key) filename = text;
          }
          break;
        }
        case "content-type":
          media = content;
      }
    }
    if (name === undefined) throw wrong("a part has no name");
    if (filename === undefined) form.append(name, decode(value));
    else form.append(name, new File([value], filename, { type: media || "text/plain" }));
  }
}

const blank = encode("\r\n\r\n");

async function formData(this: Body): Promise<FormData> {
  const type = this.headers.get("content-type") ?? "";
  if (/^multipart\/form-data\s*(;|$)/i.test(type)) return parse(await this.bytes(), type);
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) {
    await this.bytes();
    throw new TypeError(`formData: the content type ${JSON.stringify(type.slice(0, 100))} is not that of a form`);
  }
  const form = new FormData();
  for (const [name, value] of new URLSearchParams(await this.text())) form.append(name, value);
  return form;
}

Object.defineProperty(Body.prototype, "formData", { value: formData, writable: true, enumerable: true, configurable: true });
