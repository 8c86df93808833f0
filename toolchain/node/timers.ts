// node:timers: the globals.
const { setTimeout, setInterval, clearTimeout, clearInterval, setImmediate, clearImmediate } = globalThis as any;
export { setTimeout, setInterval, clearTimeout, clearInterval, setImmediate, clearImmediate };
export { default as promises } from "./timers-promises";
import promises from "./timers-promises";
export default { setTimeout, setInterval, clearTimeout, clearInterval, setImmediate, clearImmediate, promises };
