// The parts of packages that the prelude uses, so that its types can be checked without the packages.
declare module "@noble/hashes/legacy.js" {
  export function sha1(data: Uint8Array): Uint8Array;
}
declare module "@noble/hashes/sha2.js" {
  export function sha256(data: Uint8Array): Uint8Array;
  export function sha384(data: Uint8Array): Uint8Array;
  export function sha512(data: Uint8Array): Uint8Array;
}
declare module "whatwg-url" {
  const url: typeof URL;
  const params: typeof URLSearchParams;
  export { url as URL, params as URLSearchParams };
}
declare module "whatwg-url/lib/url-state-machine.js" {
  /** The href of a URL that the parser would change little of; undefined for others. See plainURLs in toolchain/idna.go. */
  export function plainHref(text: string): string | undefined;
}
