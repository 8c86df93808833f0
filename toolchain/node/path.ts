// node:path. Paths are those of POSIX everywhere.
import path from "@jspm/core/nodelibs/browser/path.js";
export const { basename, delimiter, dirname, extname, format, isAbsolute, join, normalize, parse, relative, resolve, sep } = path;
export const toNamespacedPath = (name: unknown) => name;

/** Whether a path matches a glob of *, **, ? and [...]. */
export function matchesGlob(name: string, glob: string): boolean {
  const names = normalize(name).split("/");
  const globs = normalize(glob).split("/");
  // The parts of the path that the parts of the glob so far can end at.
  let ends = new Set([0]);
  for (const part of globs) {
    const next = new Set<number>();
    if (part === "**") for (let at = Math.min(...ends); at <= names.length; at++) next.add(at);
    else for (const at of ends) if (at < names.length && matchesName(names[at], part)) next.add(at + 1);
    if (!next.size) return false;
    ends = next;
  }
  return ends.has(names.length);
}

function matchesName(name: string, glob: string): boolean {
  let ends = new Set([0]);
  for (let i = 0; i < glob.length; i++) {
    const next = new Set<number>();
    if (glob[i] === "*") for (let at = Math.min(...ends); at <= name.length; at++) next.add(at);
    else {
      const close = glob[i] === "[" ? glob.indexOf("]", i + 2) : -1;
      const list = close > 0 ? glob.slice(i + 1, close) : "";
      for (const at of ends) if (at < name.length && (close > 0 ? inList(name[at], list) : glob[i] === "?" || glob[i] === name[at])) next.add(at + 1);
      if (close > 0) i = close;
    }
    if (!next.size) return false;
    ends = next;
  }
  return ends.has(name.length);
}

function inList(char: string, list: string): boolean {
  const not = list[0] === "!" || list[0] === "^";
  const chars = not ? list.slice(1) : list;
  let found = false;
  for (let i = 0; i < chars.length; i++) {
    if (chars[i + 1] === "-" && i + 2 < chars.length) {
      found ||= chars[i] <= char && char <= chars[i + 2];
      i += 2;
    } else found ||= chars[i] === char;
  }
  return found !== not;
}

const posix: Record<string, unknown> = { ...path, matchesGlob, toNamespacedPath };
posix.posix = posix;
// Packages read the parts of win32 long before they call one.
const win32: Record<string, unknown> = { sep: "\\", delimiter: ";", posix };
for (const name of Object.keys(posix)) {
  if (typeof posix[name] !== "function") continue;
  win32[name] = () => {
    throw new TypeError(`path.win32.${name} is not available: paths are separated by / here; write path.${name} with "\\" replaced by "/"`);
  };
}
posix.win32 = win32.win32 = win32;
export { posix, win32 };
export default posix;
