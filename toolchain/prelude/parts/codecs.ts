// What node:zlib compresses with. toolchain/node/zlib.ts is made of these.
import { Codec, compress, decompress } from "../codec";

Object.defineProperty(globalThis, Symbol.for("stileCodec"), {
  value: (decompresses: boolean, format: string, level: number) => {
    const codec = new Codec(decompresses ? decompress(`${format}`) : compress(`${format}`, level), "node:zlib");
    return { step: codec.step.bind(codec), close: codec.close.bind(codec) };
  },
});
