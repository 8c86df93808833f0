// node:stream/promises.
import stream from "@jspm/core/nodelibs/browser/stream.js";
const { promises } = stream;
export default promises;
export const { finished, pipeline } = promises;
