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
}

const forbidden = new Set(["CONNECT", "TRACE", "TRACK"]);
const standard = new Set(["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"]);

let signalOf: (request: Request) => AbortSignal | undefined;

export class Request extends Body {
  #method: string;
  #url: string;
  #headers: Headers;
  #redirect: Redirect;
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
    this.#redirect = init.redirect ?? from?.redirect ?? "follow";
    if (!["follow", "manual", "error"].includes(this.#redirect)) throw new TypeError(`Request: invalid redirect ${this.#redirect}`);
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
  get redirect(): Redirect {
    return this.#redirect;
  }
  get signal(): AbortSignal {
    return (this.#signal ??= follow(this.#source));
  }
  clone(): Request {
    return new Request(this, undefined, Body.content(this));
  }
  get [Symbol.toStringTag](): string {
    return "Request";
  }
  static {
    signalOf = (request) => request.#source;
  }
}

/** The signal that aborts the request; undefined if nothing can. */
export function abortOf(request: Request): AbortSignal | undefined {
  return signalOf(request);
}
