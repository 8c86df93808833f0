// The web APIs of the network and of hashes, which take half of the prelude's memory. Only extensions whose code names one of
// them get these.
import { URL as UrlClass, URLSearchParams as UrlSearchParamsClass } from "whatwg-url";
import { hereResponse, isHere } from "./data";
import { digest } from "./digest";
import { UnboundError } from "./errors";
import http from "../../capabilities/http/sugar";
import { install } from "./global";
import { Body } from "./body";
import { telling } from "./missing";
import { crypto } from "./random";
import { Request, type RequestInit } from "./request";
import { Response } from "./response";
import { bindings, handle } from "./session";
import { ReadableStream } from "./stream";

install({ ReadableStream, Request, Response, URL: UrlClass, URLSearchParams: UrlSearchParamsClass, fetch });

telling(Body.prototype, "a response or request");

Object.assign(crypto, { subtle: telling({ digest }, "crypto.subtle") });

function networkKind(): string | undefined {
  try {
    return bindings().get("network");
  } catch {
    throw new Error("fetch is not available at top level; use it inside a tool's run");
  }
}

/** The global fetch: the http binding named `network`, which the manifest's short form makes. */
async function fetch(input: string | URL | Request, init?: RequestInit | null): Promise<Response> {
  if (isHere(input instanceof Request ? input.url : (input = `${input}`))) return hereResponse(new Request(input, init));
  if (networkKind() !== "stile:capability/http") {
    const [origin] = /^https?:\/\/[\w.:[\]-]{1,260}(?=[/?#]|$)/.exec(input instanceof Request ? input.url : `${input}`) ?? []; // as toolchain.Unbound reads it
    throw new UnboundError(`fetch${origin ? ` of ${origin}` : ""} needs the http binding "network"`);
  }
  return http(handle("network")).fetch(input, init);
}
