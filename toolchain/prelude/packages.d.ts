// The parts of packages that the prelude uses, so that its types are checked without them.
declare module "@noble/hashes/legacy.js" {
  export function sha1(data: Uint8Array): Uint8Array;
}
declare module "@noble/hashes/sha2.js" {
  export function sha256(data: Uint8Array): Uint8Array;
  export function sha384(data: Uint8Array): Uint8Array;
  export function sha512(data: Uint8Array): Uint8Array;
}
declare module "core-js-pure/web/url" {
  const value: typeof URL;
  export default value;
}
declare module "core-js-pure/web/url-search-params" {
  const value: typeof URLSearchParams;
  export default value;
}
