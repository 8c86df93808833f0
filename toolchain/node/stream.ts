// node:stream. As in Node.js, the module is the constructor that streams of the first kind extend.
import { Stream } from "@jspm/core/nodelibs/browser/stream.js";

const { addAbortSignal, compose, destroy, getDefaultHighWaterMark, isDestroyed, isDisturbed, isErrored, isReadable, isWritable, setDefaultHighWaterMark } = Stream as any;
export * from "@jspm/core/nodelibs/browser/stream.js";
export { addAbortSignal, compose, destroy, getDefaultHighWaterMark, isDestroyed, isDisturbed, isErrored, isReadable, isWritable, setDefaultHighWaterMark };
export default Stream;
