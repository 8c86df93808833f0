// fetch of what is here: a data: URL, and the URL of a Blob. It needs no capability. See https://fetch.spec.whatwg.org/#data-urls.
import type { Blob } from "./blob";
import { abortOf, type Request } from "./request";
import { Response } from "./response";

const hex = /^[0-9a-f]{2}/i;

/** The bytes of a text that is ASCII or percent-encoded UTF-8. */
function decoded(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 37 && hex.test(text.slice(at + 1, at + 3))) {
      bytes[length++] = parseInt(text.slice(at + 1, at + 3), 16);
      at += 2;
    } else bytes[length++] = code;
  }
  return bytes.slice(0, length);
}

let blobAt: ((url: string) => Blob | undefined) | undefined;

/** Has fetch find the Blobs that a part of the prelude gives URLs. */
export function findBlobs(find: (url: string) => Blob | undefined): void {
  blobAt = find;
}

/** Whether a URL needs no capability. */
export function isHere(url: string): boolean {
  return /^\s*(data|blob):/i.test(url);
}

/** The answer to a request of a URL that needs no capability. */
export function hereResponse(request: Request): Response {
  abortOf(request)?.throwIfAborted();
  if (request.url.startsWith("blob:")) {
    const blob = request.method === "GET" ? blobAt?.(request.url) : undefined;
    if (!blob) throw new TypeError(`fetch: there is no Blob at ${request.url.slice(0, 100)}, or the method is not GET`);
    return new Response(blob, { headers: { "content-length": `${blob.size}`, "content-type": blob.type } });
  }
  const failed = (why: string) => new TypeError(`fetch: ${why} in a data: URL`);
  if (request.method !== "GET" && request.method !== "HEAD") throw failed(`the method ${request.method}`);
  const [url] = request.url.split("#");
  const comma = url!.indexOf(",");
  if (comma < 0) throw failed("no comma");
  let type = url!.slice("data:".length, comma).trim();
  let bytes = decoded(url!.slice(comma + 1));
  const marked = /; *base64$/i.exec(type);
  if (marked) {
    type = type.slice(0, marked.index);
    try {
      let text = "";
      for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
      bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    } catch {
      throw failed("invalid base64");
    }
  }
  if (type.startsWith(";")) type = `text/plain${type}`;
  if (!/^[!#$%&'*+\-.^_`|~\w]+\/[!#$%&'*+\-.^_`|~\w]+[\t ]*(;|$)/.test(type)) type = "text/plain;charset=US-ASCII";
  return new Response(request.method === "HEAD" ? null : bytes, { headers: { "content-type": type } });
}
