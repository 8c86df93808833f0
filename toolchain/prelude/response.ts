// Response.
import type { AbortSignal } from "./abort";
import { Body, type BodyInit, type Content, given, received } from "./body";
import { dictionary } from "./dictionary";
import { ask } from "./errors";
import { Headers, immutable, type Init, receivedHeaders } from "./headers";
import type { Raw } from "./session";

export interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: Init;
}

/** The head of an exchange's response. */
interface Answer {
  status: number;
  url: string;
  redirected: boolean;
  headers: { name: string; value: string }[];
}

// Statuses that have no body.
const empty = new Set([101, 103, 204, 205, 304]);

let answered: (head: Answer, exchange: Raw, signal: AbortSignal | undefined) => Response;

export class Response extends Body {
  #status: number;
  #url = "";
  #redirected = false;
  #type: "default" | "basic" | "error" = "default";
  #statusText: string;
  #headers: Headers;

  constructor(body?: BodyInit | null, options?: ResponseInit | null, content: Content | undefined = given(body)) {
    const init = dictionary(options, "Response");
    const status = Math.trunc(Number(init.status === undefined ? 200 : init.status));
    if (!(status >= 200 && status <= 599)) throw new RangeError(`Response: invalid status ${init.status}`);
    if (content && empty.has(status)) throw new TypeError(`Response: status ${status} has no body`);
    super(content);
    this.#status = status;
    this.#statusText = `${init.statusText === undefined ? "" : init.statusText}`;
    if (/[^\t\x20-\x7e\x80-\xff]/.test(this.#statusText)) throw new TypeError(`Response: invalid statusText ${JSON.stringify(this.#statusText.slice(0, 100))}`);
    this.#headers = new Headers(init.headers);
    if (content?.type && !this.#headers.has("content-type")) this.#headers.set("content-type", content.type);
  }
  static json(data: unknown, options?: ResponseInit | null): Response {
    const init = dictionary(options, "Response.json");
    const text = JSON.stringify(data);
    if (text === undefined) throw new TypeError("Response.json: the value has no JSON");
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(text, { ...init, headers });
  }
  static error(): Response {
    const response = new Response();
    response.#status = 0;
    response.#type = "error";
    immutable(response.headers);
    return response;
  }
  static redirect(url: string | URL, status = 302): Response {
    if (![301, 302, 303, 307, 308].includes(status)) throw new RangeError(`Response.redirect: invalid status ${status}`);
    const response = new Response(null, { status, headers: { location: new URL(`${url}`).href } });
    immutable(response.headers);
    return response;
  }
  get headers(): Headers {
    return this.#headers;
  }
  get statusText(): string {
    return this.#statusText;
  }
  get status(): number {
    return this.#status;
  }
  get ok(): boolean {
    return this.#status >= 200 && this.#status <= 299;
  }
  get url(): string {
    return this.#url;
  }
  get redirected(): boolean {
    return this.#redirected;
  }
  get type(): "default" | "basic" | "error" {
    return this.#type;
  }
  clone(): Response {
    const copy = new Response(null, { statusText: this.statusText, headers: this.headers }, Body.content(this));
    copy.#status = this.#status;
    copy.#url = this.#url;
    copy.#redirected = this.#redirected;
    copy.#type = this.#type;
    if (this.#type !== "default") immutable(copy.headers);
    return copy;
  }
  static {
    answered = (head, exchange, signal) => {
      const headers = receivedHeaders(head.headers);
      const content = received(exchange, headers.get("content-type") ?? "", signal);
      const response = new Response(null, { headers }, content);
      response.#status = head.status;
      response.#url = head.url;
      response.#redirected = head.redirected;
      response.#type = "basic";
      immutable(response.headers);
      return response;
    };
  }
}

/** The response of an exchange. The signal also aborts its body. */
export function response(exchange: Raw, signal: AbortSignal | undefined): Response {
  try {
    return answered(ask(() => exchange.head()), exchange, signal);
  } catch (error) {
    exchange.drop();
    throw error;
  }
}
