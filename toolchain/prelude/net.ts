// The web APIs of the network and of hashes, which are half of what the prelude takes in memory: only extensions whose code
// names one of them get these.
import UrlClass from "core-js-pure/web/url";
import UrlSearchParamsClass from "core-js-pure/web/url-search-params";
import { digest } from "./digest";
import { sugar } from "./env";
import { install } from "./global";
import { fetch, http } from "./http";
import { crypto } from "./random";
import { Request } from "./request";
import { Response } from "./response";
import { ReadableStream } from "./stream";

install({ ReadableStream, Request, Response, URL: UrlClass, URLSearchParams: UrlSearchParamsClass, fetch });
// The polyfill's private store, which it keeps in a closure as well.
delete (globalThis as Record<string, unknown>)["__core-js_shared__"];

Object.assign(crypto, { subtle: { digest } });
sugar.set("stile:capability/http", http);
