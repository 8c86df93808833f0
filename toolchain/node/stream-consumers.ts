// node:stream/consumers: all that a stream has.
type Pieces = AsyncIterable<string | Uint8Array>;

async function collected(stream: Pieces): Promise<any> {
  const { Buffer } = globalThis as any;
  const pieces = [];
  for await (const piece of stream) pieces.push(typeof piece === "string" ? Buffer.from(piece) : piece);
  return Buffer.concat(pieces);
}
export const buffer = collected;
export const text = async (stream: Pieces): Promise<string> => new TextDecoder().decode(await collected(stream));
export const json = async (stream: Pieces): Promise<any> => JSON.parse(await text(stream));
export const arrayBuffer = async (stream: Pieces): Promise<ArrayBuffer> => Uint8Array.from(await collected(stream)).buffer;
export const blob = async (stream: Pieces): Promise<Blob> => new Blob([await collected(stream)]);
export default { arrayBuffer, blob, buffer, json, text };
