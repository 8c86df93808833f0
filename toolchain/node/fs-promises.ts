// node:fs/promises.
import * as files from "./files";

/** A function that returns a promise of what another one returns. */
const promised = <F extends (...args: any[]) => any>(f: F) => async (...args: Parameters<F>): Promise<ReturnType<F>> => f(...args);

export class FileHandle {
  constructor(readonly fd: number) {}
  read = async (buffer: any, ...rest: any[]) => {
    if (!ArrayBuffer.isView(buffer)) {
      rest = [buffer?.offset ?? 0, buffer?.length, buffer?.position];
      buffer = buffer?.buffer ?? new Uint8Array(16_384);
    }
    return { bytesRead: files.read(this.fd, buffer, ...(rest as [])), buffer };
  };
  write = async (data: any, ...rest: any[]) => ({ bytesWritten: files.write(this.fd, data, ...rest), buffer: data });
  readFile = async (options?: files.Encoding) => files.readFile(this.fd, options);
  writeFile = async (data: any, options?: files.Encoding) => files.writeFile(this.fd, data, options);
  appendFile = async (data: any, options?: files.Encoding) => files.appendFile(this.fd, data, options);
  stat = async () => files.fstat(this.fd);
  truncate = async (length?: number) => files.truncate(this.fd, length);
  sync = async () => {};
  datasync = async () => {};
  close = async () => files.close(this.fd);
  /** The lines of the rest of the file. Behind the last one, or when the reader stops, the handle is closed. */
  async *readLines(): AsyncGenerator<string> {
    try {
      const lines = String(await this.readFile("utf8")).split(/\r?\n/);
      if (lines.at(-1) === "") lines.pop();
      yield* lines;
    } finally {
      await this.close();
    }
  }
  [Symbol.asyncDispose] = () => this.close();
}

export const access = /* @__PURE__ */ promised(files.access);
export const appendFile = /* @__PURE__ */ promised(files.appendFile);
export const chmod = /* @__PURE__ */ promised(files.chmod);
export const copyFile = /* @__PURE__ */ promised(files.copyFile);
export const cp = /* @__PURE__ */ promised(files.cp);
export const lstat = /* @__PURE__ */ promised(files.lstat);
export const mkdir = /* @__PURE__ */ promised(files.mkdir);
export const mkdtemp = /* @__PURE__ */ promised(files.mkdtemp);
export const open = async (path: files.PathLike, flags?: string | number) => new FileHandle(files.open(path, flags));
export const readFile = /* @__PURE__ */ promised(files.readFile);
export const readdir = /* @__PURE__ */ promised(files.readdir);
export const readlink = /* @__PURE__ */ promised(files.readlink);
export const realpath = /* @__PURE__ */ promised(files.realpath);
export const rename = /* @__PURE__ */ promised(files.rename);
export const rm = /* @__PURE__ */ promised(files.rm);
export const rmdir = /* @__PURE__ */ promised(files.rmdir);
export const stat = /* @__PURE__ */ promised(files.stat);
export const symlink = /* @__PURE__ */ promised(files.symlink);
export const truncate = /* @__PURE__ */ promised(files.truncate);
export const unlink = /* @__PURE__ */ promised(files.unlink);
export const writeFile = /* @__PURE__ */ promised(files.writeFile);
export { constants } from "./files";
import { constants } from "./files";
export default {
  access, appendFile, chmod, copyFile, cp, lstat, mkdir, mkdtemp, open, readFile, readdir, readlink, realpath, rename, rm, rmdir, stat, symlink, truncate, unlink, writeFile, constants,
};
