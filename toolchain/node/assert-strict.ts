// node:assert/strict.
import assert from "@jspm/core/nodelibs/browser/assert.js";
const { strict } = assert;
export default strict;
export const { AssertionError, deepEqual, deepStrictEqual, doesNotReject, doesNotThrow, equal, fail, ifError, match, notDeepEqual, notDeepStrictEqual, notEqual, notStrictEqual, ok, rejects, strictEqual, throws } = strict;
export { strict };
