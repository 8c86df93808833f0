// The parts of packages that the prelude uses, so that its types can be checked without the packages.
declare module "@noble/hashes/legacy.js" {
  export function md5(data: Uint8Array): Uint8Array;
  export function ripemd160(data: Uint8Array): Uint8Array;
  export function sha1(data: Uint8Array): Uint8Array;
}
declare module "@noble/hashes/sha2.js" {
  export function sha224(data: Uint8Array): Uint8Array;
  export function sha512_224(data: Uint8Array): Uint8Array;
  export function sha512_256(data: Uint8Array): Uint8Array;
  export function sha256(data: Uint8Array): Uint8Array;
  export function sha384(data: Uint8Array): Uint8Array;
  export function sha512(data: Uint8Array): Uint8Array;
}
declare module "web-streams-polyfill" {
  const madeByteLengthQueuingStrategy: typeof ByteLengthQueuingStrategy;
  const madeCountQueuingStrategy: typeof CountQueuingStrategy;
  const madeReadableByteStreamController: typeof ReadableByteStreamController;
  const madeReadableStream: typeof ReadableStream;
  const madeReadableStreamBYOBReader: typeof ReadableStreamBYOBReader;
  const madeReadableStreamBYOBRequest: typeof ReadableStreamBYOBRequest;
  const madeReadableStreamDefaultController: typeof ReadableStreamDefaultController;
  const madeReadableStreamDefaultReader: typeof ReadableStreamDefaultReader;
  const madeTransformStream: typeof TransformStream;
  const madeTransformStreamDefaultController: typeof TransformStreamDefaultController;
  const madeWritableStream: typeof WritableStream;
  const madeWritableStreamDefaultController: typeof WritableStreamDefaultController;
  const madeWritableStreamDefaultWriter: typeof WritableStreamDefaultWriter;
  export {
    madeByteLengthQueuingStrategy as ByteLengthQueuingStrategy,
    madeCountQueuingStrategy as CountQueuingStrategy,
    madeReadableByteStreamController as ReadableByteStreamController,
    madeReadableStream as ReadableStream,
    madeReadableStreamBYOBReader as ReadableStreamBYOBReader,
    madeReadableStreamBYOBRequest as ReadableStreamBYOBRequest,
    madeReadableStreamDefaultController as ReadableStreamDefaultController,
    madeReadableStreamDefaultReader as ReadableStreamDefaultReader,
    madeTransformStream as TransformStream,
    madeTransformStreamDefaultController as TransformStreamDefaultController,
    madeWritableStream as WritableStream,
    madeWritableStreamDefaultController as WritableStreamDefaultController,
    madeWritableStreamDefaultWriter as WritableStreamDefaultWriter,
  };
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
declare module "@exodus/bytes/fallback/encoding.labels.js" {
  const labels: Record<string, string[]>;
  export default labels;
}
declare module "@exodus/bytes/fallback/single-byte.encodings.js" {
  const encodings: Record<string, unknown>;
  export default encodings;
}
declare module "@exodus/bytes/single-byte.js" {
  export function createSinglebyteDecoder(encoding: string, loose?: boolean): (bytes: Uint8Array) => string;
}
declare module "@exodus/bytes/multi-byte.js" {
  export function createMultibyteDecoder(encoding: string, loose?: boolean): (bytes: Uint8Array, stream?: boolean) => string;
}
declare module "urlpattern-polyfill/dist/urlpattern.js" {
  export const URLPattern: object;
}
declare module "@jspm/core/nodelibs/browser/*" {
  const module: any;
  export default module;
  export const Readable: any;
  export const Writable: any;
}
declare module "@noble/hashes/hmac.js" {
  export const hmac: any;
}
