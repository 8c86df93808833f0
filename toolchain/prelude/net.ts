// The web APIs of the network and of hashes, which are half of what the prelude takes in memory: only extensions whose code
// names one of them get these.
import { URL as UrlClass, URLSearchParams as UrlSearchParamsClass } from "whatwg-url";
import { digest } from "./digest";
import { sugar } from "./env";
import { install } from "./global";
import { fetch, http } from "./http";
import { crypto } from "./random";
import { Request } from "./request";
import { Response } from "./response";
import { ReadableStream } from "./stream";

install({ ReadableStream, Request, Response, URL: UrlClass, URLSearchParams: UrlSearchParamsClass, fetch });

Object.assign(crypto, { subtle: { digest } });
sugar.set("stile:capability/http", http);
