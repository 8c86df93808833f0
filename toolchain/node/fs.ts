// node:fs, on the binding that the manifest names as "fs".
import * as files from "./files";
import promises from "./fs-promises";
import { createReadStream, createWriteStream, ReadStream, WriteStream } from "./fs-streams";

/** A function whose last argument is called with the error, or with null and what another one returns, in a job of its own. */
const called = (f: (...args: any[]) => any) => (...args: any[]) => {
  const callback = args.pop();
  if (typeof callback !== "function") throw Object.assign(new TypeError('The "cb" argument must be of type function.'), { code: "ERR_INVALID_ARG_TYPE" });
  let result: [unknown, unknown?];
  try {
    result = [null, f(...args)];
  } catch (error) {
    result = [error];
  }
  queueMicrotask(() => callback(...result));
};

export const accessSync = files.access;
export const appendFileSync = files.appendFile;
export const chmodSync = files.chmod;
export const closeSync = files.close;
export const copyFileSync = files.copyFile;
export const cpSync = files.cp;
export const existsSync = files.exists;
export const fstatSync = files.fstat;
export const fsyncSync = (_: number): void => {};
export const ftruncateSync = files.truncate;
export const lstatSync = files.lstat;
export const mkdirSync = files.mkdir;
export const mkdtempSync = files.mkdtemp;
export const openSync = files.open;
export const readFileSync = files.readFile;
export const readSync = files.read;
export const readdirSync = files.readdir;
export const readlinkSync = files.readlink;
export const realpathSync = /* @__PURE__ */ Object.assign((path: files.PathLike) => files.realpath(path), { native: files.realpath });
export const renameSync = files.rename;
export const rmSync = files.rm;
export const rmdirSync = files.rmdir;
export const statSync = files.stat;
export const symlinkSync = files.symlink;
export const truncateSync = files.truncate;
export const unlinkSync = files.unlink;
export const writeFileSync = files.writeFile;
export const writeSync = files.write;

export const access = /* @__PURE__ */ called(files.access);
export const appendFile = /* @__PURE__ */ called(files.appendFile);
export const chmod = /* @__PURE__ */ called(files.chmod);
export const close = /* @__PURE__ */ called(files.close);
export const copyFile = /* @__PURE__ */ called(files.copyFile);
export const cp = /* @__PURE__ */ called(files.cp);
export const exists = (path: files.PathLike, callback: (there: boolean) => void): void => {
  const there = files.exists(path);
  queueMicrotask(() => callback(there));
};
export const fstat = /* @__PURE__ */ called(files.fstat);
export const fsync = /* @__PURE__ */ called(fsyncSync);
export const ftruncate = /* @__PURE__ */ called(files.truncate);
export const lstat = /* @__PURE__ */ called(files.lstat);
export const mkdir = /* @__PURE__ */ called(files.mkdir);
export const mkdtemp = /* @__PURE__ */ called(files.mkdtemp);
export const open = /* @__PURE__ */ called(files.open);
export const read = /* @__PURE__ */ called(files.read);
export const readFile = /* @__PURE__ */ called(files.readFile);
export const readdir = /* @__PURE__ */ called(files.readdir);
export const readlink = /* @__PURE__ */ called(files.readlink);
export const realpath = /* @__PURE__ */ Object.assign(called(files.realpath), { native: /* @__PURE__ */ called(files.realpath) });
export const rename = /* @__PURE__ */ called(files.rename);
export const rm = /* @__PURE__ */ called(files.rm);
export const rmdir = /* @__PURE__ */ called(files.rmdir);
export const stat = /* @__PURE__ */ called(files.stat);
export const symlink = /* @__PURE__ */ called((target, path) => files.symlink(target, path));
export const truncate = /* @__PURE__ */ called(files.truncate);
export const unlink = /* @__PURE__ */ called(files.unlink);
export const write = /* @__PURE__ */ called(files.write);
export const writeFile = /* @__PURE__ */ called(files.writeFile);

function refused(name: string): () => never {
  return () => {
    throw new TypeError(`fs.${name} is not available: a tool's call sees files as they are when it asks`);
  };
}
export const watch = /* @__PURE__ */ refused("watch");
export const watchFile = /* @__PURE__ */ refused("watchFile");
export { constants, Dirent, Stats } from "./files";
import { constants, Dirent, Stats } from "./files";
export { createReadStream, createWriteStream, promises, ReadStream, WriteStream };
export default {
  accessSync, appendFileSync, chmodSync, closeSync, copyFileSync, cpSync, existsSync, fstatSync, fsyncSync, ftruncateSync, lstatSync, mkdirSync, mkdtempSync, openSync, readFileSync,
  readSync, readdirSync, readlinkSync, realpathSync, renameSync, rmSync, rmdirSync, statSync, symlinkSync, truncateSync, unlinkSync, writeFileSync, writeSync, access, appendFile, chmod,
  close, copyFile, cp, exists, fstat, fsync, ftruncate, lstat, mkdir, mkdtemp, open, read, readFile, readdir, readlink, realpath, rename, rm, rmdir, stat, symlink, truncate, unlink,
  write, writeFile, watch, watchFile, constants, Stats, Dirent, createReadStream, createWriteStream, promises, ReadStream, WriteStream,
};
