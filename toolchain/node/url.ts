// node:url.
import legacy from "@jspm/core/nodelibs/browser/url.js";
import { resolve as absolute } from "./path";

const URL = globalThis.URL;
const URLSearchParams = globalThis.URLSearchParams;
const parse = (...args: any[]) => legacy.parse(...args);
const resolve = (...args: any[]) => legacy.resolve(...args);
const resolveObject = (...args: any[]) => legacy.resolveObject(...args);
const Url = /* @__PURE__ */ (() => legacy.Url)();

function wrong(text: string): TypeError {
  return Object.assign(new TypeError(text), { code: "ERR_INVALID_URL" });
}
export function fileURLToPath(from: string | URL): string {
  const url = new URL(from);
  if (url.protocol !== "file:") throw wrong("fileURLToPath: the scheme is not file");
  if (url.hostname) throw wrong("fileURLToPath: the URL has a host");
  if (/%2f/i.test(url.pathname)) throw wrong("fileURLToPath: the path has an encoded /");
  return decodeURIComponent(url.pathname);
}
export function pathToFileURL(name: string): URL {
  const path = absolute(name) + (name.endsWith("/") && absolute(name) !== "/" ? "/" : "");
  return new URL(`file://${path.split("/").map((part) => encodeURIComponent(part)).join("/")}`);
}
export function format(url: any, options: { auth?: boolean; fragment?: boolean; search?: boolean } = {}): string {
  if (!(url instanceof URL)) return legacy.format(url);
  const copy = new URL(url);
  const { auth = true, fragment = true, search = true } = options;
  if (!auth) copy.username = copy.password = "";
  if (!fragment) copy.hash = "";
  if (!search) copy.search = "";
  return copy.href;
}
export function urlToHttpOptions({ protocol, hostname, hash, search, pathname, href, port, username, password }: URL): object {
  const auth = username || password ? { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` } : {};
  return { protocol, hostname: hostname.replace(/^\[|\]$/g, ""), hash, search, pathname, path: pathname + search, href, ...(port && { port: Number(port) }), ...auth };
}
const host = (name: string) => URL.parse(`ws://${name}`)?.hostname ?? "";
export const domainToASCII = host;
export { URL, URLSearchParams, Url, parse, resolve, resolveObject };
export default { URL, URLSearchParams, Url, parse, resolve, resolveObject, format, fileURLToPath, pathToFileURL, urlToHttpOptions, domainToASCII };
