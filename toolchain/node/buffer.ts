// node:buffer. The class is the global Buffer; see prelude/parts/buffer.ts.
const { Buffer } = globalThis as any;
const { kMaxLength, kStringMaxLength, SlowBuffer, INSPECT_MAX_BYTES } = (globalThis as any)[Symbol.for("stile.buffer")];
export const constants = { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: kStringMaxLength };
const { atob, btoa, Blob } = globalThis;

function view(bytes: ArrayBuffer | ArrayBufferView): Uint8Array {
  return bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
export function isUtf8(bytes: ArrayBuffer | ArrayBufferView): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(view(bytes) as any);
    return true;
  } catch {
    return false;
  }
}
export function isAscii(bytes: ArrayBuffer | ArrayBufferView): boolean {
  return view(bytes).every((byte) => byte < 128);
}
export { Buffer, SlowBuffer, kMaxLength, kStringMaxLength, INSPECT_MAX_BYTES, atob, btoa, Blob };
export default { Buffer, SlowBuffer, kMaxLength, kStringMaxLength, INSPECT_MAX_BYTES, constants, atob, btoa, Blob, isUtf8, isAscii };
