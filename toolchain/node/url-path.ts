// fileURLToPath, for files.ts, which needs nothing else of node:url.
export function fileURLToPath(url: URL): string {
  if (url.protocol !== "file:" || url.hostname || /%2f/i.test(url.pathname)) throw Object.assign(new TypeError("a URL of a file is wanted"), { code: "ERR_INVALID_URL_SCHEME" });
  return decodeURIComponent(url.pathname);
}
