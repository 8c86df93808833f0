// Request.
import { plainHref } from "whatwg-url/lib/url-state-machine.js";
import { AbortSignal, follow } from "./abort";
import { dictionary } from "./dictionary";
import { Body, type BodyInit, given } from "./body";
import { Headers, type Init } from "./headers";

export type Redirect = "follow" | "manual" | "error";

export interface RequestInit {
  method?: string;
  headers?: Init;
  body?: BodyInit | null;
  redirect?: Redirect;
  signal?: AbortSignal | null;
}

const standard = new Set(["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"]);

let signalOf: (request: Request) => AbortSignal | undefined;

export class Request extends Body {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly redirect: Redirect;
  #source: AbortSignal | undefined;
  #signal: AbortSignal | undefined;

  constructor(input: string | URL | Request, options?: RequestInit | null) {
    const init = dictionary(options, "Request");
    const from = input instanceof Request ? input : undefined;
    const content = init.body === undefined && from ? Body.content(from) : given(init.body);
    super(content);
    this.url = from ? from.url : (plainHref((input = `${input}`)) ?? new URL(input).href);
    const method = `${init.method !== undefined ? init.method : (from?.method ?? "GET")}`;
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(method)) throw new TypeError(`Request: invalid method ${JSON.stringify(method.slice(0, 50))}`);
    this.method = standard.has(method.toUpperCase()) ? method.toUpperCase() : method;
    if (content && (this.method === "GET" || this.method === "HEAD")) throw new TypeError(`Request: ${this.method} has no body`);
    this.headers = new Headers(init.headers !== undefined ? init.headers : from?.headers);
    if (content?.type && !this.headers.has("content-type")) this.headers.set("content-type", content.type);
    this.redirect = init.redirect ?? from?.redirect ?? "follow";
    if (!["follow", "manual", "error"].includes(this.redirect)) throw new TypeError(`Request: invalid redirect ${this.redirect}`);
    const source = init.signal === undefined ? from && signalOf(from) : init.signal;
    if (source && !(source instanceof AbortSignal)) throw new TypeError("Request: signal is an AbortSignal");
    this.#source = source ?? undefined;
  }
  get signal(): AbortSignal {
    return (this.#signal ??= follow(this.#source));
  }
  clone(): Request {
    return new Request(this);
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
