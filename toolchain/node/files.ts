// The files of the binding that the manifest names as "fs", with the errors of node. Both fs and fs/promises are made of this.
import { resolve } from "./path";
import { fileURLToPath } from "./url-path";

const { Buffer } = globalThis as any;
// One operation of that binding, by the name of its method; see prelude/parts/files.ts.
const operate: (method: string, ...args: any[]) => any = (globalThis as any)[Symbol.for("stileFiles")];

export type PathLike = string | Uint8Array | URL;
export type Encoding = string | { encoding?: string | null } | null | undefined;

// The most bytes of one operation.
const piece = 262_144;
// The most bytes of a file that is changed elsewhere than at its end.
const rewritten = 16 << 20;
const maxLinks = 40;

const codes: Record<string, [string, number, string]> = {
  "not-found": ["ENOENT", -2, "no such file or directory"],
  denied: ["EACCES", -13, "permission denied"],
  revoked: ["EACCES", -13, "permission denied"],
  expired: ["EACCES", -13, "permission denied"],
  "already-exists": ["EEXIST", -17, "file already exists"],
  conflict: ["EBUSY", -16, "resource busy or locked"],
  "too-large": ["EFBIG", -27, "file too large"],
  exhausted: ["EDQUOT", -122, "disk quota exceeded"],
  unavailable: ["EIO", -5, "i/o error"],
  interrupted: ["EINTR", -4, "interrupted system call"],
  "timed-out": ["ETIMEDOUT", -110, "connection timed out"],
  invalid: ["EINVAL", -22, "invalid argument"],
};

export function failed(code: string, errno: number, text: string, syscall: string, path?: string, cause?: unknown): Error {
  const error = new Error(`${code}: ${text}, ${syscall}${path === undefined ? "" : ` '${path}'`}${cause instanceof Error ? ` (${cause.message})` : ""}`, { cause });
  return Object.assign(error, { errno, code, syscall }, path === undefined ? {} : { path });
}
const isDirectory = (syscall: string, path: string, cause?: unknown) => failed("EISDIR", -21, "illegal operation on a directory", syscall, path, cause);
const noDirectory = (syscall: string, path: string, cause?: unknown) => failed("ENOTDIR", -20, "not a directory", syscall, path, cause);
const badFile = (syscall: string) => failed("EBADF", -9, "bad file descriptor", syscall);

/** An operation, with node's error for it. */
function run(syscall: string, path: string, method: string, ...args: any[]): any {
  try {
    return operate(method, ...args);
  } catch (error) {
    throw explained(error, syscall, path);
  }
}

function explained(error: any, syscall: string, path: string): unknown {
  const known = Object.hasOwn(codes, error?.code) ? codes[error.code] : undefined;
  if (!known) return error; // no binding, or an argument that is wrong
  if (error.code === "invalid") {
    // The text is not for programs, so the kind of the file tells.
    const kind = kindOf(path);
    if (syscall === "scandir" && kind === "file") return noDirectory(syscall, path, error);
    if (syscall === "rmdir" && kind === "directory") return failed("ENOTEMPTY", -39, "directory not empty", syscall, path, error);
    if (syscall !== "scandir" && kind === "directory") return isDirectory(syscall, path, error);
  }
  return failed(...known, syscall, path, error);
}

function kindOf(path: string): string | undefined {
  try {
    return operate("stat", inside(path)).kind;
  } catch {
    return undefined;
  }
}

/** The absolute path that an argument means. */
export function absolute(path: PathLike): string {
  const text = path instanceof Uint8Array ? Buffer.from(path).toString() : typeof path === "string" ? path : path instanceof URL ? fileURLToPath(path) : undefined;
  if (text === undefined) throw Object.assign(new TypeError('The "path" argument must be of type string or an instance of Buffer or URL.'), { code: "ERR_INVALID_ARG_TYPE" });
  if (text.includes("\0")) throw Object.assign(new TypeError('The argument "path" must be a string without null bytes.'), { code: "ERR_INVALID_ARG_VALUE" });
  if (text === "") throw failed("ENOENT", -2, "no such file or directory", "open", "");
  return resolve("/", text);
}

/** A path as the binding has it. */
const inside = (path: string): string => path.slice(1);

export function encodingOf(given: Encoding): string | undefined {
  return (typeof given === "string" ? given : given?.encoding) ?? undefined;
}
function text(bytes: Uint8Array, encoding: string | undefined): any {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return encoding && encoding !== "buffer" ? buffer.toString(encoding) : buffer;
}
export function bytesOf(data: any, encoding?: string): Uint8Array {
  if (typeof data === "string") return Buffer.from(data, encoding);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw Object.assign(new TypeError('The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView.'), { code: "ERR_INVALID_ARG_TYPE" });
}

interface Status {
  kind: "file" | "directory" | "link";
  size: bigint;
  modified: bigint;
  mode: number;
}
const types = { file: 0o100000, directory: 0o040000, link: 0o120000 };

export class Stats {
  readonly dev = 0;
  readonly ino = 0;
  readonly nlink = 1;
  readonly uid = 0;
  readonly gid = 0;
  readonly rdev = 0;
  readonly blksize = 4096;
  readonly size: number;
  readonly blocks: number;
  readonly mode: number;
  readonly mtimeMs: number;
  readonly atimeMs: number;
  readonly ctimeMs: number;
  readonly birthtimeMs: number;
  readonly mtime: Date;
  readonly atime: Date;
  readonly ctime: Date;
  readonly birthtime: Date;
  #kind: Status["kind"];
  constructor({ kind, size, modified, mode }: Status) {
    this.#kind = kind;
    this.size = Number(size);
    this.blocks = Math.ceil(this.size / 512);
    this.mode = types[kind] | mode;
    this.mtimeMs = this.atimeMs = this.ctimeMs = this.birthtimeMs = Number(modified);
    this.mtime = this.atime = this.ctime = this.birthtime = new Date(Number(modified));
  }
  isFile = () => this.#kind === "file";
  isDirectory = () => this.#kind === "directory";
  isSymbolicLink = () => this.#kind === "link";
  isFIFO = () => false;
  isSocket = () => false;
  isBlockDevice = () => false;
  isCharacterDevice = () => false;
}

export class Dirent {
  readonly path: string;
  #kind: Status["kind"];
  constructor(readonly name: string, readonly parentPath: string, kind: Status["kind"]) {
    this.path = parentPath;
    this.#kind = kind;
  }
  isFile = () => this.#kind === "file";
  isDirectory = () => this.#kind === "directory";
  isSymbolicLink = () => this.#kind === "link";
  isFIFO = () => false;
  isSocket = () => false;
  isBlockDevice = () => false;
  isCharacterDevice = () => false;
}

const root: Status = { kind: "directory", size: 0n, modified: 0n, mode: 0o777 };

function status(path: string, syscall: string): Status {
  if (path !== "/") return run(syscall, path, "stat", inside(path));
  run(syscall, path, "list", "", 1, undefined); // says whether there is a binding
  return root;
}

/** The status of a path behind links, and that path. */
function followed(path: string, syscall: string): [Status, string] {
  let at = path;
  for (let links = 0; ; links++) {
    const found = status(at, syscall);
    if (found.kind !== "link") return [found, at];
    if (links === maxLinks) throw failed("ELOOP", -40, "too many symbolic links encountered", syscall, path);
    at = resolve(at, "..", run(syscall, at, "readLink", inside(at)));
  }
}

const missing = (error: any) => error?.code === "ENOENT" || error?.code === "ENOTDIR";

export function stat(path: PathLike, { throwIfNoEntry = true }: { throwIfNoEntry?: boolean } = {}): Stats | undefined {
  try {
    return new Stats(followed(absolute(path), "stat")[0]);
  } catch (error) {
    if (!throwIfNoEntry && missing(error)) return undefined;
    throw error;
  }
}
export function lstat(path: PathLike, { throwIfNoEntry = true }: { throwIfNoEntry?: boolean } = {}): Stats | undefined {
  try {
    return new Stats(status(absolute(path), "lstat"));
  } catch (error) {
    if (!throwIfNoEntry && missing(error)) return undefined;
    throw error;
  }
}
export function exists(path: PathLike): boolean {
  try {
    stat(path);
    return true;
  } catch (error: any) {
    if (!error?.syscall && !("code" in Object(error))) throw error; // no binding
    return false;
  }
}
/** Checks that a path exists. What the binding allows shows when it is used. */
export function access(path: PathLike): void {
  followed(absolute(path), "access");
}
export function realpath(path: PathLike): string {
  let at = "/";
  for (const name of absolute(path).split("/").filter(Boolean)) at = followed(resolve(at, name), "realpath")[1];
  return at;
}

function readRange(path: string, syscall: string, offset: number, length: number): Uint8Array {
  const pieces: Uint8Array[] = [];
  let size = 0;
  while (size < length) {
    const want = Math.min(piece, length - size);
    const bytes: Uint8Array = run(syscall, path, "readBytes", inside(path), BigInt(offset + size), want);
    if (bytes.length) pieces.push(bytes);
    size += bytes.length;
    if (bytes.length < want) break;
  }
  if (pieces.length === 1) return pieces[0];
  const all = new Uint8Array(size);
  let at = 0;
  for (const bytes of pieces) {
    all.set(bytes, at);
    at += bytes.length;
  }
  return all;
}

export function readFile(path: PathLike | number, options?: Encoding): any {
  const encoding = encodingOf(options);
  if (typeof path === "number") {
    const file = opened(path, "read");
    const all = readRange(file.path, "read", file.at, Infinity);
    file.at += all.length;
    return text(all, encoding);
  }
  const at = absolute(path);
  if (at === "/") throw isDirectory("read", at);
  return text(readRange(at, "open", 0, Infinity), encoding);
}

type WriteOptions = Encoding | { encoding?: string | null; flag?: string };

function put(path: string, bytes: Uint8Array, flag: string): void {
  if (path === "/") throw isDirectory("open", path);
  const append = flag.startsWith("a");
  if (flag.includes("x")) run("open", path, "replace", inside(path), "", undefined);
  if (flag.includes("x") && !bytes.length) return;
  for (let at = 0; at === 0 || at < bytes.length; at += piece)
    run("open", path, append || at > 0 ? "appendBytes" : "writeBytes", inside(path), bytes.subarray(at, at + piece));
}

/** A file that is created with x must not be there, which "conflict" says. */
function excluded(path: string, act: () => void): void {
  try {
    act();
  } catch (error: any) {
    if (error?.code !== "EBUSY") throw error;
    throw failed("EEXIST", -17, "file already exists", "open", path, error.cause);
  }
}

export function writeFile(path: PathLike | number, data: any, options?: WriteOptions, flag = "w"): void {
  const bytes = bytesOf(data, encodingOf(options as Encoding));
  if (typeof path === "number") return void write(path, bytes);
  const at = absolute(path);
  const how = (typeof options === "object" && options && "flag" in options && options.flag) || flag;
  excluded(at, () => put(at, bytes, how));
}
export function appendFile(path: PathLike | number, data: any, options?: WriteOptions): void {
  writeFile(path, data, options, "a");
}

type ListOptions = Encoding | { encoding?: string | null; withFileTypes?: boolean; recursive?: boolean };

function entries(path: string): { name: string; status: Status }[] {
  const all: { name: string; status: Status }[] = [];
  let cursor: string | undefined;
  do {
    const page = run("scandir", path, "list", inside(path), 1000, cursor);
    all.push(...page.entries);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return all;
}
export function readdir(path: PathLike, options?: ListOptions): any[] {
  const { withFileTypes = false, recursive = false } = typeof options === "object" && options ? (options as any) : {};
  const top = absolute(path);
  const found: (string | Dirent)[] = [];
  const walk = (dir: string, prefix: string) => {
    for (const { name, status } of entries(dir)) {
      found.push(withFileTypes ? new Dirent(name, dir, status.kind) : prefix + name);
      if (recursive && status.kind === "directory") walk(resolve(dir, name), `${prefix}${name}/`);
    }
  };
  walk(top, "");
  return found;
}

export function mkdir(path: PathLike, options?: number | { recursive?: boolean; mode?: number } | null): string | undefined {
  const at = absolute(path);
  const recursive = typeof options === "object" && !!options?.recursive;
  const kind = at === "/" ? "directory" : kindOf(at);
  if (kind && !(recursive && kind !== "file")) throw failed("EEXIST", -17, "file already exists", "mkdir", at);
  if (!recursive) {
    const above = resolve(at, "..");
    if (followed(above, "mkdir")[0].kind !== "directory") throw noDirectory("mkdir", at);
  }
  run("mkdir", at, "makeDirectory", inside(at));
  return recursive && !kind ? at : undefined;
}
let made = 0;
export function mkdtemp(prefix: string): string {
  for (;;) {
    const path = absolute(`${prefix}${(made++).toString(36).padStart(6, "0")}`);
    if (!kindOf(path)) {
      run("mkdtemp", path, "makeDirectory", inside(path));
      return path;
    }
  }
}
export function unlink(path: PathLike): void {
  const at = absolute(path);
  if (status(at, "unlink").kind === "directory") throw isDirectory("unlink", at);
  run("unlink", at, "remove", inside(at), false);
}
export function rmdir(path: PathLike, options?: { recursive?: boolean } | null): void {
  const at = absolute(path);
  if (status(at, "rmdir").kind !== "directory") throw noDirectory("rmdir", at);
  run("rmdir", at, "remove", inside(at), !!options?.recursive);
}
export function rm(path: PathLike, { force = false, recursive = false }: { force?: boolean; recursive?: boolean } = {}): void {
  const at = absolute(path);
  try {
    if (status(at, "rm").kind === "directory" && !recursive) throw failed("ERR_FS_EISDIR", -21, "Path is a directory: rm returned EISDIR (is a directory)", "rm", at);
    run("rm", at, "remove", inside(at), recursive);
  } catch (error) {
    if (!force || !missing(error)) throw error;
  }
}
/** Does what the binding does only at a free path. What was there is put aside, and comes back if that fails. */
function replacing(target: string, there: boolean, syscall: string, act: () => void): void {
  if (!there) return act();
  let aside: string;
  do aside = `${target}.${(made++).toString(36).padStart(6, "0")}`;
  while (kindOf(aside));
  run(syscall, target, "move", inside(target), inside(aside));
  try {
    act();
  } catch (error) {
    run(syscall, target, "move", inside(aside), inside(target));
    throw error;
  }
  run(syscall, target, "remove", inside(aside), true);
}
export function rename(from: PathLike, to: PathLike): void {
  const [source, target] = [absolute(from), absolute(to)];
  const kind = status(source, "rename").kind;
  const there = kindOf(target);
  if (there === "directory" && kind !== "directory") throw isDirectory("rename", target);
  if (there && there !== "directory" && kind === "directory") throw noDirectory("rename", target);
  if (target.startsWith(`${source}/`)) throw failed("EINVAL", -22, "invalid argument", "rename", target);
  if (there === "directory" && source !== target && entries(target).length) throw failed("ENOTEMPTY", -39, "directory not empty", "rename", target);
  if (source !== target) replacing(target, !!there, "rename", () => run("rename", source, "move", inside(source), inside(target)));
}
export function copyFile(from: PathLike, to: PathLike, mode = 0): void {
  const [source, target] = [absolute(from), absolute(to)];
  const [found, at] = followed(source, "copyfile");
  if (found.kind === "directory") throw isDirectory("copyfile", source);
  const there = kindOf(target);
  if (there && mode & constants.COPYFILE_EXCL) throw failed("EEXIST", -17, "file already exists", "copyfile", target);
  if (there === "directory") throw isDirectory("copyfile", target);
  if (at === target) return;
  replacing(target, !!there, "copyfile", () => run("copyfile", source, "copy", inside(at), inside(target)));
}
export function cp(from: PathLike, to: PathLike, { recursive = false, force = true, errorOnExist = false }: { recursive?: boolean; force?: boolean; errorOnExist?: boolean } = {}): void {
  const [source, target] = [absolute(from), absolute(to)];
  if (status(source, "cp").kind !== "directory") {
    if (kindOf(target) && !force) {
      if (errorOnExist) throw failed("ERR_FS_CP_EEXIST", -17, "Target already exists", "cp", target);
      return;
    }
    return copyFile(source, target);
  }
  if (!recursive) throw failed("ERR_FS_EISDIR", -21, "Recursive option not enabled, cannot copy a directory", "cp", source);
  if (target === source || target.startsWith(source === "/" ? "/" : `${source}/`)) throw failed("ERR_FS_CP_EINVAL", -22, "cannot copy a directory to a directory of its own", "cp", target);
  run("mkdir", target, "makeDirectory", inside(target));
  for (const { name } of entries(source)) cp(resolve(source, name), resolve(target, name), { recursive, force, errorOnExist });
}
export function symlink(target: PathLike, path: PathLike): void {
  const at = absolute(path);
  const to = target instanceof URL ? fileURLToPath(target) : `${target}`;
  run("symlink", at, "makeLink", inside(at), to.startsWith("/") ? `${"../".repeat(at.split("/").length - 2)}${to.slice(1)}` || "." : to);
}
export function readlink(path: PathLike): string {
  const at = absolute(path);
  return run("readlink", at, "readLink", inside(at));
}
export function chmod(path: PathLike, mode: number | string): void {
  const at = followed(absolute(path), "chmod")[1];
  run("chmod", at, "setMode", inside(at), (typeof mode === "string" ? parseInt(mode, 8) : mode) & 0o777);
}
export function truncate(path: PathLike | number, length = 0): void {
  const at = typeof path === "number" ? opened(path, "ftruncate").path : absolute(path);
  rewrite(at, "ftruncate", (old) => {
    const bytes = new Uint8Array(length);
    bytes.set(old.subarray(0, length));
    return bytes;
  }, length);
}

/** Replaces a file by what is made of it. */
function rewrite(path: string, syscall: string, make: (old: Uint8Array) => Uint8Array, size: number): void {
  if (Math.max(size, Number(status(path, syscall).size)) > rewritten) throw failed("EFBIG", -27, "file too large to change elsewhere than at its end", syscall, path);
  put(path, make(readRange(path, syscall, 0, Infinity)), "w");
}

// Open files. Their numbers begin after those of standard input, output and error.
interface Open {
  path: string;
  at: number;
  flags: string;
}
const files: (Open | undefined)[] = [undefined, undefined, undefined];
const known = /^(?:r|rs|sr|r\+|rs\+|sr\+|w|wx|xw|w\+|wx\+|xw\+|a|ax|xa|as|sa|a\+|ax\+|xa\+|as\+|sa\+)$/;
const letters = ["r", "w", "r+"]; // of O_RDONLY, O_WRONLY and O_RDWR

function flagsOf(flags: string | number): string {
  if (typeof flags === "number") {
    const { O_APPEND, O_CREAT, O_EXCL, O_TRUNC } = constants;
    const letter = flags & O_APPEND ? "a" : flags & (O_CREAT | O_TRUNC) ? "w" : letters[flags & 3];
    return `${letter}${flags & O_EXCL ? "x" : ""}${(flags & 3) === 2 && letter !== "r+" ? "+" : ""}`;
  }
  if (!known.test(flags)) throw Object.assign(new TypeError(`The argument 'flags' is invalid. Received '${flags}'`), { code: "ERR_INVALID_ARG_VALUE" });
  return flags;
}
function opened(fd: number, syscall: string): Open {
  const file = files[fd];
  if (!file) throw badFile(syscall);
  return file;
}
export function open(path: PathLike, flags: string | number = "r"): number {
  const at = absolute(path);
  const how = flagsOf(flags);
  if (how.includes("r")) {
    if (followed(at, "open")[0].kind === "directory" && how.includes("+")) throw isDirectory("open", at);
  } else if (how.includes("w") || !kindOf(at)) excluded(at, () => put(at, new Uint8Array(0), how));
  else if (how.includes("x")) throw failed("EEXIST", -17, "file already exists", "open", at);
  files.push({ path: at, at: 0, flags: how });
  return files.length - 1;
}
export function close(fd: number): void {
  opened(fd, "close");
  files[fd] = undefined;
}
export function fstat(fd: number): Stats {
  return new Stats(followed(opened(fd, "fstat").path, "fstat")[0]);
}
export function read(fd: number, target: ArrayBufferView, offset: any = 0, length?: number, position?: number | bigint | null): number {
  if (typeof offset === "object" && offset) ({ offset = 0, length, position } = offset);
  const file = opened(fd, "read");
  const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength).subarray(offset);
  const from = typeof position === "number" || typeof position === "bigint" ? Number(position) : file.at;
  const got = readRange(file.path, "read", from < 0 ? file.at : from, Math.min(length ?? bytes.length, bytes.length));
  bytes.set(got);
  if (from === file.at) file.at += got.length;
  return got.length;
}
export function write(fd: number, data: any, ...rest: any[]): number {
  const file = opened(fd, "write");
  if (file.flags === "r" || file.flags === "rs" || file.flags === "sr") throw badFile("write");
  let bytes: Uint8Array;
  let position: unknown;
  if (typeof data === "string") {
    position = rest[0];
    bytes = bytesOf(data, rest[1]);
  } else {
    const [offset = 0, length, at] = typeof rest[0] === "object" && rest[0] ? [rest[0].offset, rest[0].length, rest[0].position] : rest;
    position = at;
    const all = bytesOf(data);
    bytes = all.subarray(offset ?? 0, length === undefined || length === null ? all.length : (offset ?? 0) + length);
  }
  const size = Number(followed(file.path, "write")[0].size);
  const from = file.flags.includes("a") ? size : typeof position === "number" ? position : file.at;
  if (from === size) {
    if (bytes.length) put(file.path, bytes, "a");
  } else {
    const end = from + bytes.length;
    rewrite(file.path, "write", (old) => {
      const all = new Uint8Array(Math.max(old.length, end));
      all.set(old);
      all.set(bytes, from);
      return all;
    }, end);
  }
  if (typeof position !== "number") file.at = from + bytes.length;
  return bytes.length;
}

export const constants = {
  F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1, COPYFILE_FICLONE: 2, COPYFILE_FICLONE_FORCE: 4, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 0o100, O_EXCL: 0o200, O_TRUNC: 0o1000,
  O_APPEND: 0o2000, S_IFMT: 0o170000, S_IFREG: types.file, S_IFDIR: types.directory, S_IFLNK: types.link,
};
