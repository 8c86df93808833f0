// What an extension's code finds when it starts: the web APIs that npm code expects, and the SDK behind "stile".
import UrlClass from "core-js-pure/web/url";
import UrlSearchParamsClass from "core-js-pure/web/url-search-params";
import { AbortController, AbortSignal } from "./abort";
import { Blob } from "./blob";
import { installClock } from "./clock";
import { structuredClone } from "./clone";
import { installConsole } from "./console";
import { TextDecoder, TextEncoder } from "./encoding";
import { CapabilityError, DeniedError } from "./errors";
import { CustomEvent, Event, EventTarget } from "./events";
import { extension } from "./extension";
import { define } from "./global";
import { Headers } from "./headers";
import { fetch } from "./http";
import { installRandom } from "./random";
import { Request } from "./request";
import { watchErrors } from "./resources";
import { Response } from "./response";
import { clearTimer, setInterval, setTimeout } from "./timers";

const web = {
  AbortController,
  AbortSignal,
  Blob,
  CustomEvent,
  Event,
  EventTarget,
  Headers,
  Request,
  Response,
  TextDecoder,
  TextEncoder,
  URL: UrlClass,
  URLSearchParams: UrlSearchParamsClass,
  clearInterval: clearTimer,
  clearTimeout: clearTimer,
  fetch,
  setInterval,
  setTimeout,
  structuredClone,
};
for (const [name, value] of Object.entries(web)) {
  // The bundler renames what is called like a global.
  Object.defineProperty(value, "name", { value: name, configurable: true });
  define(name, value);
}
// The polyfill's private store, which it keeps in a closure as well.
delete (globalThis as Record<string, unknown>)["__core-js_shared__"];

installClock();
installConsole();
installRandom();
watchErrors();

// What the module "stile" exports.
Object.defineProperty(globalThis, Symbol.for("stile.sdk"), {
  value: Object.freeze({ extension, CapabilityError, DeniedError }),
});
