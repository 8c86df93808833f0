// Request.
import { plainHref } from "whatwg-url/lib/url-state-machine.js";
import { AbortSignal, follow } from "./abort";
import { dictionary } from "./dictionary";
import { Body, type BodyInit, type Content, given } from "./body";
import { Headers, type Init } from "./headers";

export type Redirect = "follow" | "manual" | "error";

export interface RequestInit {
  method?: string;
  headers?: Init;
  body?: BodyInit | null;
  redirect?: Redirect;
  signal?: AbortSignal | null;
  keepalive?: boolean;
  referrer?: string;
  integrity?: string;
  duplex?: "half";
  window?: null;
}

const forbidden = new Set(["CONNECT", "TRACE", "TRACK"]);
const standard = new Set(["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"]);

// What a browser knows of a page's request, with the first value as the default. A guest is no page: only redirect has an effect.
const choices: Record<string, string[]> = {
  cache: ["default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"],
  credentials: ["same-origin", "omit", "include"],
  destination: [""],
  duplex: ["half"],
  mode: ["cors", "same-origin", "no-cors"],
  priority: ["auto", "high", "low"],
  redirect: ["follow", "manual", "error"],
  referrerPolicy: [
    "", "no-referrer", "no-referrer-when-downgrade", "same-origin", "origin", "strict-origin", "origin-when-cross-origin", "strict-origin-when-cross-origin", "unsafe-url",
  ],
};
type Settings = Record<string, string | boolean>;
const defaults: Settings = { integrity: "", isHistoryNavigation: false, isReloadNavigation: false, keepalive: false, referrer: "about:client" };
for (const name in choices) defaults[name] = choices[name]![0]!;

/** The settings of a request: those of another one, unless `init` has them. */
function chosen(init: Record<string, any>, from: Settings): Settings {
  const made: Settings = {};
  for (const name in choices) {
    if (init[name] === undefined || name === "destination") continue;
    made[name] = `${init[name]}`;
    if (!choices[name]!.includes(made[name])) throw new TypeError(`Request: invalid ${name} ${made[name].slice(0, 100)}`);
  }
  const { integrity = "", keepalive, referrer, window = null } = init;
  if (window !== null) throw new TypeError("Request: window is null or absent");
  if (integrity !== "") throw new TypeError("Request: integrity is not checked here; compare the digest of response.bytes() with crypto.subtle.digest");
  if (keepalive !== undefined) made.keepalive = !!keepalive;
  if (referrer !== undefined) made.referrer = `${referrer}` && new URL(`${referrer}`, "https://referrer.invalid").href;
  for (const _ in made) return { ...from, ...made };
  return from;
}

let signalOf: (request: Request) => AbortSignal | undefined;

export class Request extends Body {
  #method: string;
  #url: string;
  #headers: Headers;
  #settings: Settings;
  #source: AbortSignal | undefined;
  #signal: AbortSignal | undefined;

  constructor(input: string | URL | Request, options?: RequestInit | null, copied?: Content) {
    const init = dictionary(options, "Request");
    const from = input instanceof Request ? input : undefined;
    const content = copied ?? (init.body === undefined && from ? Body.taken(from) : given(init.body));
    super(content);
    this.#url = from ? from.url : (plainHref((input = `${input}`)) ?? new URL(input).href);
    if (/^[a-z]+:\/\/[^/?#]*@/.test(this.#url)) throw new TypeError("Request: the URL has a user name or a password; credentials belong to a binding");
    const method = `${init.method !== undefined ? init.method : (from?.method ?? "GET")}`;
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(method)) throw new TypeError(`Request: invalid method ${JSON.stringify(method.slice(0, 50))}`);
    const upper = method.toUpperCase();
    if (forbidden.has(upper)) throw new TypeError(`Request: the method ${upper} is never allowed`);
    this.#method = standard.has(upper) ? upper : method;
    if (content && (this.#method === "GET" || this.#method === "HEAD")) throw new TypeError(`Request: ${this.#method} has no body`);
    this.#headers = new Headers(init.headers !== undefined ? init.headers : from?.headers);
    if (content?.type && !this.#headers.has("content-type")) this.#headers.set("content-type", content.type);
    const settings = (this.#settings = chosen(init, from ? from.#settings : defaults));
    if (settings.mode === "no-cors" && !["GET", "HEAD", "POST"].includes(this.#method)) throw new TypeError(`Request: ${this.#method} is not allowed in the mode no-cors`);
    if (settings.cache === "only-if-cached" && settings.mode !== "same-origin") throw new TypeError("Request: the cache mode only-if-cached needs the mode same-origin");
    if (settings.keepalive && content?.stream) throw new TypeError("Request: keepalive with a stream as the body");
    const source = init.signal === undefined ? from && signalOf(from) : init.signal;
    if (source && !(source instanceof AbortSignal)) throw new TypeError("Request: signal is an AbortSignal");
    this.#source = source ?? undefined;
    if (from && !copied) Body.use(from);
  }
  get method(): string {
    return this.#method;
  }
  get url(): string {
    return this.#url;
  }
  get headers(): Headers {
    return this.#headers;
  }
  get signal(): AbortSignal {
    return (this.#signal ??= follow(this.#source));
  }
  clone(): Request {
    return new Request(this, undefined, Body.content(this));
  }
  declare readonly redirect: Redirect;
  static {
    signalOf = (request) => request.#source;
    for (const name in defaults)
      if (name !== "priority")
        Object.defineProperty(this.prototype, name, Object.getOwnPropertyDescriptor({ get [name]() { return (this as unknown as Request).#settings[name]; } }, name)!);
  }
}

/** The signal that aborts the request; undefined if nothing can. */
export function abortOf(request: Request): AbortSignal | undefined {
  return signalOf(request);
}
