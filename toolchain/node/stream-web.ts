// node:stream/web: the globals.
const {
  ByteLengthQueuingStrategy, CompressionStream, CountQueuingStrategy, DecompressionStream, ReadableStream, TextDecoderStream, TextEncoderStream, TransformStream, WritableStream,
} = globalThis as any;
export { ByteLengthQueuingStrategy, CompressionStream, CountQueuingStrategy, DecompressionStream, ReadableStream, TextDecoderStream, TextEncoderStream, TransformStream, WritableStream };
export default { ByteLengthQueuingStrategy, CompressionStream, CountQueuingStrategy, DecompressionStream, ReadableStream, TextDecoderStream, TextEncoderStream, TransformStream, WritableStream };
