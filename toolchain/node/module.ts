// node:module. What is imported is in the bundle, and nothing is loaded later.
import { isAbsolute } from "./path";

/** A require of names that the bundler did not see, which throws as that of a package does. */
export const createRequire = (_: string | URL) => {
  const fail = (name: string): never => {
    throw Object.assign(new Error(`require(${JSON.stringify(`${name}`)}): what createRequire loads is not in the bundle: only what import or require name as a string is`), { code: "MODULE_NOT_FOUND" });
  };
  return Object.assign((name: string) => fail(name), { resolve: (name: string) => (isAbsolute(`${name}`) ? name : fail(name)), cache: {}, extensions: {} });
};
export const builtinModules: string[] = [];
export const isBuiltin = (name: string): boolean => `${name}`.startsWith("node:");
export class Module {
  static createRequire = createRequire;
  static builtinModules = builtinModules;
  static isBuiltin = isBuiltin;
  static _extensions = {};
  static _cache = {};
  exports = {};
  constructor(public id = "") {}
}
export default Module;
