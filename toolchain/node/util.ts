// node:util.
import util from "@jspm/core/nodelibs/browser/util.js";
import { isDeepStrictEqual } from "./equal";
import { parseArgs } from "./parse-args";
import types from "./util-types";

const { TextDecoder, TextEncoder } = globalThis;
export { isDeepStrictEqual, parseArgs, TextDecoder, TextEncoder, types };

export function stripVTControlCharacters(text: string): string {
  return text.replace(/[\x1b\x9b][[\]()#;?]*(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]/g, "");
}
export const toUSVString = (text: unknown): string => `${text}`.toWellFormed();

const styles: Record<string, [number, number]> = {
  bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], inverse: [7, 27], strikethrough: [9, 29], black: [30, 39], red: [31, 39], green: [32, 39], yellow: [33, 39],
  blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], gray: [90, 39], grey: [90, 39],
};
export function styleText(format: string | string[], text: string): string {
  return [format].flat().reduceRight((styled, name) => {
    if (!Object.hasOwn(styles, name)) throw new TypeError(`styleText: there is no style ${name}`);
    return `\x1b[${styles[name][0]}m${styled}\x1b[${styles[name][1]}m`;
  }, text);
}
export function formatWithOptions(_options: object, ...data: unknown[]): string {
  return util.format(...data);
}
/** Rejects when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true })));
}
/** Nothing is logged: there is no environment that asks for it. */
export const debuglog = (_: string) => /* @__PURE__ */ Object.assign(() => {}, { enabled: false });
export const debug = debuglog;
export const isArray = Array.isArray;
export const { callbackify, deprecate, format, inherits, inspect, promisify, _extend, isBoolean, isBuffer, isDate, isError, isFunction, isNull, isNullOrUndefined, isNumber, isObject, isPrimitive, isRegExp, isString, isSymbol, isUndefined, log } = util;
inspect.custom ??= Symbol.for("nodejs.util.inspect.custom");
Object.assign(util, { TextDecoder, TextEncoder, aborted, debug, debuglog, formatWithOptions, isDeepStrictEqual, parseArgs, stripVTControlCharacters, styleText, toUSVString, types });
export default util;
