// bindings: workspace, clock
// node:fs on a binding.
import fs, { readFileSync } from "node:fs";
import { Buffer as B } from "node:buffer";
import * as promises from "fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { equal, ok, rejects, throws } from "./assert";

declare const __dirname: string, require: any;

throws(() => fs.readFileSync("a"), { message: "top level" });

export default async function (_: unknown, env: any): Promise<null> {
  fs.mkdirSync("/data/deep", { recursive: true });
  fs.writeFileSync("/data/a.txt", "héllo");
  equal([readFileSync("data/a.txt", "utf8"), fs.readFileSync(join(__dirname, "data/a.txt")).length, await env.workspace.read("data/a.txt")], ["héllo", 6, "héllo"]);
  equal([fs.readFileSync(new URL("file:///data/a.txt"), { encoding: "hex" }), fs.readFileSync(B.from("data/a.txt"), "base64")], ["68c3a96c6c6f", "aMOpbGxv"]);
  fs.appendFileSync("/data/a.txt", B.from("!"));
  equal(await promises.readFile("/data/a.txt", "utf8"), "héllo!");
  equal([fs.existsSync("/data"), fs.existsSync("/none"), fs.statSync("/data").isDirectory(), fs.statSync("/").isDirectory(), fs.statSync("/data/a.txt").size], [true, false, true, true, 7]);
  equal([fs.readdirSync("/data"), fs.readdirSync("/data", { withFileTypes: true }).map((e: any) => [e.name, e.isDirectory(), e.parentPath])], [["a.txt", "deep"], [["a.txt", false, "/data"], ["deep", true, "/data"]]]);
  fs.writeFileSync("/data/deep/b.txt", "b");
  equal(fs.readdirSync("/", { recursive: true }), ["data", "data/a.txt", "data/deep", "data/deep/b.txt"]);

  // Errors are those of node.
  const enoent = throws(() => fs.readFileSync("/none/x"), { code: "ENOENT", message: "ENOENT: no such file or directory, open '/none/x'" });
  equal([enoent.errno, enoent.syscall, enoent.path], [-2, "open", "/none/x"]);
  await rejects(promises.readFile("none"), { code: "ENOENT" });
  throws(() => fs.readFileSync("/data"), { code: "EISDIR" });
  throws(() => fs.readFileSync("/"), { code: "EISDIR" });
  throws(() => fs.writeFileSync("/data", "x"), { code: "EISDIR" });
  throws(() => fs.readdirSync("/data/a.txt"), { code: "ENOTDIR" });
  throws(() => fs.readdirSync("/none"), { code: "ENOENT" });
  throws(() => fs.mkdirSync("/data"), { code: "EEXIST" });
  throws(() => fs.mkdirSync("/none/deep"), { code: "ENOENT" });
  throws(() => fs.rmdirSync("/data"), { code: "ENOTEMPTY" });
  throws(() => fs.unlinkSync("/none"), { code: "ENOENT" });
  throws(() => fs.unlinkSync("/data"), { code: "EISDIR" });
  throws(() => fs.rmSync("/data"), { code: "ERR_FS_EISDIR" });
  throws(() => fs.accessSync("/none"), { code: "ENOENT" });
  throws(() => fs.readFileSync("a\0b"), { code: "ERR_INVALID_ARG_VALUE" });
  throws(() => fs.readFileSync({} as any), { code: "ERR_INVALID_ARG_TYPE" });
  throws(() => fs.readFileSync(""), { code: "ENOENT" });
  fs.rmSync("/none", { force: true });
  equal(fs.statSync("/none", { throwIfNoEntry: false }), undefined);
  throws(() => fs.writeFileSync("/data/a.txt", "x", { flag: "wx" }), { code: "EEXIST" });
  fs.writeFileSync("/data/new", "n", { flag: "wx" });
  equal(readFileSync("/data/new", "utf8"), "n");
  throws(() => fs.watch(), { message: "fs.watch is not available" });
  throws(() => (fs as any).readFile("x"), { code: "ERR_INVALID_ARG_TYPE" });

  // Paths do not lead out of the binding, not by dots and not by links.
  equal(readFileSync("/../../data/a.txt", "utf8"), "héllo!");
  equal(readFileSync("../../etc/../data/a.txt", "utf8"), "héllo!");
  throws(() => readFileSync("/etc/passwd"), { code: "ENOENT" });
  throws(() => fs.symlinkSync("../../../etc/passwd", "/data/out"), { code: "EACCES" });
  fs.symlinkSync("/data/a.txt", "/data/deep/link");
  equal([readFileSync("/data/deep/link", "utf8"), fs.lstatSync("/data/deep/link").isSymbolicLink(), fs.statSync("/data/deep/link").isFile(), fs.readlinkSync("/data/deep/link"), fs.realpathSync("/data/deep/link")], ["héllo!", true, true, "../../data/a.txt", "/data/a.txt"]);
  fs.symlinkSync("loop", "/data/loop");
  throws(() => fs.statSync("/data/loop"), { code: "ELOOP" });
  fs.unlinkSync("/data/loop");

  fs.renameSync("/data/new", "/data/moved");
  fs.writeFileSync("/data/over", "old");
  fs.renameSync("/data/moved", "/data/over");
  fs.copyFileSync("/data/over", "/data/copy");
  // What is to be replaced stays if that fails.
  throws(() => fs.renameSync("/data/deep", "/data/over"), { code: "ENOTDIR" });
  throws(() => fs.renameSync("/data", "/data/deep"), { code: "EINVAL" });
  throws(() => fs.renameSync("/data/none", "/data/over"), { code: "ENOENT" });
  equal([readFileSync("/data/over", "utf8"), readFileSync("/data/deep/b.txt", "utf8"), fs.readdirSync("/data").filter((name) => name.startsWith("over"))], ["n", "b", ["over"]]);
  throws(() => fs.copyFileSync("/data/over", "/data/copy", fs.constants.COPYFILE_EXCL), { code: "EEXIST" });
  fs.cpSync("/data", "/backup", { recursive: true });
  throws(() => fs.cpSync("/data", "/data/deep/x", { recursive: true }), { code: "ERR_FS_CP_EINVAL" });
  equal([readFileSync("/data/over", "utf8"), readFileSync("/backup/copy", "utf8"), readFileSync("/backup/deep/b.txt", "utf8")], ["n", "n", "b"]);
  fs.rmSync("/backup", { recursive: true });
  fs.chmodSync("/data/copy", 0o600);
  equal([fs.existsSync("/backup"), fs.statSync("/data/copy").mode & 0o777], [false, 0o600]);
  const temporary = fs.mkdtempSync("/tmp-");
  ok(temporary !== fs.mkdtempSync("/tmp-") && fs.statSync(temporary).isDirectory(), "each directory is new");

  // Open files.
  const fd = fs.openSync("/data/fd", "w+");
  equal([fs.writeSync(fd, "abcdef"), fs.writeSync(fd, B.from("XY"), 0, 2, 1), fs.readFileSync("/data/fd", "utf8"), fs.fstatSync(fd).size], [6, 2, "aXYdef", 6]);
  const into = B.alloc(4);
  equal([fs.readSync(fd, into, 0, 4, 1), into.toString(), fs.readSync(fd, into), fs.readSync(fd, into, 0, 4, 0)], [4, "XYde", 0, 4]);
  fs.ftruncateSync(fd, 2);
  fs.closeSync(fd);
  throws(() => fs.closeSync(fd), { code: "EBADF" });
  throws(() => fs.writeSync(fs.openSync("/data/fd", "r"), "x"), { code: "EBADF" });
  throws(() => fs.openSync("/data/fd", "q"), { code: "ERR_INVALID_ARG_VALUE" });
  const handle = await promises.open("/data/fd", "a+");
  await handle.write("z");
  equal([await handle.readFile("utf8"), (await handle.read({ position: 0 })).bytesRead, (await handle.stat()).size], ["", 3, 3]);
  await handle.close();
  await promises.writeFile("/data/lines", "a\r\n\nb\n");
  const lined = await promises.open("/data/lines");
  const lines: string[] = [];
  for await (const line of lined.readLines()) lines.push(line);
  equal(lines, ["a", "", "b"]);
  await rejects(lined.close(), { code: "EBADF" });

  equal(await promisify(fs.readFile as any)("/data/fd", "utf8"), "aXz");
  const found = await new Promise((resolve) => fs.stat("/none", (error: any, stats: any) => resolve([error.code, stats])));
  equal(found, ["ENOENT", undefined]);
  equal(await new Promise((resolve) => fs.exists("/data", resolve)), true);
  equal([require("fs") === fs, fs.promises.readFile === promises.readFile], [true, true]);

  const large = "0123456789".repeat(60_000);
  await promises.writeFile("/large", large);
  equal([(await promises.stat("/large")).size, readFileSync("/large", "utf8") === large], [600_000, true]);
  await pipeline(fs.createReadStream("/large", { start: 10, end: 299_999 }), fs.createWriteStream("/part"));
  equal([fs.statSync("/part").size, (await text(fs.createReadStream("/part") as any)).slice(0, 12)], [299_990, "012345678901"]);
  await rejects(text(fs.createReadStream("/none") as any), { code: "ENOENT" });
  return null;
}
