// bindings: clock, random, console
// Modules of Node.js without files.
import assert from "node:assert";
import strict from "assert/strict";
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import buffer, { Buffer as Same } from "node:buffer";
import crypto, { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import EventEmitter, { once, on } from "node:events";
import os from "os";
import path, { join } from "node:path";
import { performance as perf } from "node:perf_hooks";
import nodeProcess from "node:process";
import querystring from "querystring";
import { Readable, Transform, Writable, pipeline } from "node:stream";
import { pipeline as piped } from "node:stream/promises";
import { StringDecoder } from "string_decoder";
import timers from "timers/promises";
import * as tty from "tty";
import url, { fileURLToPath, pathToFileURL } from "node:url";
import util, { inspect, isDeepStrictEqual, parseArgs, promisify, styleText, stripVTControlCharacters, types } from "node:util";
import diagnostics from "node:diagnostics_channel";
import { equal, ok, rejects, throws } from "./assert";

declare const Buffer: any, process: any, setImmediate: any, clearImmediate: any, require: any, __dirname: string;

// At top level too, where there are no capabilities.
const top = [Buffer.from("é").toString("hex"), process.env.HOME, typeof process.versions.node, path.resolve("a/../b"), __dirname];
throws(() => randomBytes(4), { message: "top level" });
throws(() => setImmediate(() => {}), { message: "top level" });

export default async function (): Promise<unknown> {
  equal(top, ["c3a9", undefined, "undefined", "/b", "/"]);
  equal([Buffer === buffer.Buffer, Same === Buffer, nodeProcess === process, require("events") === EventEmitter], [true, true, true, true]);

  equal(Buffer.from("aGk", "base64").toString(), "hi");
  equal([Buffer.from([1, 2]).toString("base64"), Buffer.from("ff", "hex")[0], Buffer.concat([Buffer.from("a"), Buffer.from("b")]).toString(), Buffer.byteLength("é")], ["AQI=", 255, "ab", 2]);
  equal([Buffer.from("x\ufeffy").toString(), Buffer.from("\ufeffy").toString(), Buffer.from([0xff]).toString(), Buffer.from("abc").toString("utf8", 1, 2)], ["x\ufeffy", "\ufeffy", "\ufffd", "b"]);
  equal([Buffer.alloc(3).fill(1).readUInt16LE(0), JSON.stringify(Buffer.from("a")), Buffer.isBuffer(new Uint8Array(1)), Buffer.from("abc").equals(Buffer.from("abc"))], [257, '{"type":"Buffer","data":[97]}', false, true]);
  equal([Buffer.from("héllo", "latin1").toString("latin1"), Buffer.from("ab", "utf16le").length], ["héllo", 4]);
  ok(Buffer.from("abc").subarray(1) instanceof Buffer && Buffer.from("a") instanceof Uint8Array, "a part of a Buffer is one");
  const odd = Buffer.from([251, 255, 254]);
  equal([odd.toString("base64url"), odd.toString("base64"), Buffer.from("-__-", "base64url").equals(odd), Buffer.isEncoding("Base64URL"), Buffer.isEncoding("x"), Buffer.byteLength("-__-", "base64url"), Buffer.alloc(3).write("-__-", "base64url")],
    ["-__-", "+//+", true, true, false, 3, 3]);
  equal([Buffer.from("a").toString("base64url"), Buffer.alloc(4, "YQ", "base64url").toString(), Buffer.from("xa").indexOf("YQ", "base64url")], ["YQ", "aaaa", 1]);
  equal([buffer.isUtf8(Buffer.from([0xc3])), buffer.isAscii(Buffer.from("a"))], [false, true]);

  equal(createHash("sha256").update("a").update(Buffer.from("bc")).digest("hex"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  equal([createHash("md5").update("").digest("hex"), createHash("SHA1").update("abc").digest("base64")], ["d41d8cd98f00b204e9800998ecf8427e", "qZk+NkcGgWq6PiVxeFDCbJzQ2J0="]);
  equal(createHmac("sha256", "key").update("The quick brown fox jumps over the lazy dog").digest("hex"), "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
  const hash = createHash("sha1").update("a");
  equal([hash.copy().digest("hex") === hash.digest("hex"), randomBytes(5).length, crypto.randomUUID().length], [true, 5, 36]);
  throws(() => hash.digest(), { code: "ERR_CRYPTO_HASH_FINALIZED" });
  throws(() => createHash("sha3-256"), { message: "@noble/hashes" });
  const key = crypto.createSecretKey("key", "utf8");
  equal([key.type, key.symmetricKeySize, key.export().toString(), key.export({ format: "jwk" }).k, key.equals(crypto.createSecretKey(Buffer.from("key")))], ["secret", 3, "key", "a2V5", true]);
  equal(createHmac("sha256", key).update("x").digest("hex"), createHmac("sha256", "key").update("x").digest("hex"));
  throws(() => new crypto.KeyObject("secret", null), { message: "crypto.KeyObject is not available" });
  throws(() => crypto.createCipheriv(), { message: "crypto.createCipheriv is not available" });
  equal([timingSafeEqual(Buffer.from("a"), Buffer.from("a")), timingSafeEqual(Buffer.from("a"), Buffer.from("b"))], [true, false]);
  throws(() => timingSafeEqual(Buffer.from("a"), Buffer.from("ab")), { name: "RangeError" });
  const drawn = Array.from({ length: 100 }, () => crypto.randomInt(3, 6));
  ok(drawn.every((n) => n >= 3 && n < 6), "randomInt is in its range");
  equal((await promisify(crypto.randomBytes)(3)).length, 3);

  const emitter = new EventEmitter();
  const seen: unknown[] = [];
  emitter.on("x", (value: unknown) => seen.push(value));
  equal([emitter.emit("x", 1), emitter.emit("y"), seen], [true, false, [1]]);
  const next = once(emitter, "x");
  emitter.emit("x", 2);
  equal(await next, [2]);
  const failing = once(emitter, "x");
  emitter.emit("error", new Error("oops"));
  await rejects(failing, { message: "oops" });
  const values = on(emitter, "n");
  emitter.emit("n", 1);
  emitter.emit("n", 2);
  equal([(await values.next()).value, (await values.next()).value], [[1], [2]]);
  await values.return!();
  equal(emitter.listenerCount("n"), 0);
  throws(() => emitter.emit("error", new TypeError("nobody listens")), { name: "TypeError" });

  equal([os.platform(), os.EOL, os.hostname(), os.tmpdir(), os.cpus().length, os.availableParallelism()], ["browser", "\n", "localhost", "/tmp", 1, 1]);
  equal([join("/a", "..", "b.txt"), path.extname("a.tar.gz"), path.relative("/a/b", "/a/c"), path.parse("/x/y.z").name, path.posix.sep, path.matchesGlob("a/b/c.ts", "a/**/*.[tj]s")], ["/b.txt", ".gz", "../c", "y", "/", true]);
  equal([querystring.stringify({ a: "1 2", b: ["x", "y"] }), querystring.parse("a=1&a=2").a], ["a=1%202&b=x&b=y", ["1", "2"]]);
  equal([url.parse("http://u:p@h:1/p?q#f").auth, url.resolve("http://a/b/c", "../d"), fileURLToPath("file:///a%20b"), pathToFileURL("/a b?").href], ["u:p", "http://a/d", "/a b", "file:///a%20b%3F"]);
  throws(() => fileURLToPath("http://a/b"), { name: "TypeError" });

  equal(new StringDecoder("utf8").write(Buffer.from([0xe2, 0x82])), "");
  equal([util.format("%s %d %j", "a", 1, { b: 2 }), inspect({ a: [1, { b: 2 }] }), util.inherits.length > 1], ['a 1 {"b":2}', "{ a: [ 1, { b: 2 } ] }", true]);
  equal([isDeepStrictEqual({ a: [1, new Map([[{ k: 1 }, 2]])] }, { a: [1, new Map([[{ k: 1 }, 2]])] }), isDeepStrictEqual(new Set([1]), new Set([2])), isDeepStrictEqual([1], ["1"])], [true, false, false]);
  equal([types.isDate(new Date(0)), types.isDate({}), types.isUint8Array(Buffer.alloc(1)), types.isPromise(Promise.resolve()), types.isMap(Object.create(Map.prototype))], [true, false, true, true, false]);
  const parsed = parseArgs({ args: ["-v", "--name=x", "rest"], options: { v: { type: "boolean", short: "v" }, name: { type: "string" } }, allowPositionals: true });
  equal([parsed.values.v, parsed.values.name, parsed.positionals], [true, "x", ["rest"]]);
  throws(() => parseArgs({ args: ["--no"], options: {} }), { code: "ERR_PARSE_ARGS_UNKNOWN_OPTION" });
  equal(stripVTControlCharacters(styleText(["bold", "red"], "x")), "x");
  equal(await promisify((a: number, callback: (error: unknown, value: number) => void) => callback(null, a + 1))(1), 2);
  await rejects(promisify((callback: (error: unknown) => void) => callback(new Error("no")))(), { message: "no" });

  assert(true);
  assert.deepStrictEqual({ a: [1] }, { a: [1] });
  throws(() => assert.strictEqual(1, 2), { name: "AssertionError", code: "ERR_ASSERTION" });
  throws(() => strict.equal(1, "1"), { name: "AssertionError" });
  throws(() => assert.deepEqual({ a: 1 }, { a: 2 }));

  const upper = new Transform({ transform: (chunk: any, _: unknown, done: any) => done(null, `${chunk}`.toUpperCase()) });
  let text = "";
  await piped(Readable.from(["a", "b"]), upper, new Writable({ write: (chunk: any, _: unknown, done: any) => ((text += chunk), done()) }));
  equal(text, "AB");
  const all: string[] = [];
  for await (const piece of Readable.from(["x", "y"])) all.push(`${piece}`);
  equal(all, ["x", "y"]);
  ok(Readable.prototype instanceof EventEmitter, "a stream is an EventEmitter");
  await rejects(promisify(pipeline)(Readable.from([1]), new Writable({ objectMode: true, write: (_: any, __: any, done: any) => done(new Error("full")) })), { message: "full" });

  const order: string[] = [];
  const cleared = setImmediate(() => order.push("cleared"));
  clearImmediate(cleared);
  setImmediate((a: string) => order.push(a), "immediate");
  process.nextTick((a: string) => order.push(a), "tick");
  Promise.resolve().then(() => order.push("job"));
  await timers.setImmediate();
  equal(order, ["tick", "job", "immediate"]);
  equal(await timers.setTimeout(1, "late"), "late");
  await rejects(timers.setTimeout(1000, 0, { signal: AbortSignal.abort(new Error("stop")) }), { message: "stop" });

  equal([new AsyncLocalStorage().getStore(), new AsyncResource("x").runInAsyncScope((a: number) => a, null, 3)], [undefined, 3]);
  throws(() => new AsyncLocalStorage<number>().run(1, () => 1), { message: "AsyncLocalStorage.run is not available" });
  equal([tty.isatty(1), perf === performance, process.argv.slice(2), process.platform, process.cwd(), process.version], [false, true, [], "browser", "/", ""]);
  ok(process.hrtime.bigint() >= 0n && process.hrtime()[0] >= 0 && process.uptime() >= 0, "the time since the start is known");
  throws(() => process.exit(1), { message: "a tool ends when it returns or throws" });
  equal([process.on("exit", () => {}) === process, Object.prototype.toString.call(process), process.binding && process.versions.node], [true, "[object Object]", undefined]);
  const channel = diagnostics.channel("x");
  channel.subscribe((message: unknown) => seen.push(message));
  channel.publish("told");
  equal(seen.at(-1), "told");

  process.env.SET = "by the tool";
  equal(process.env.SET, "by the tool");
  process.stdout.write("out\n");
  process.stderr.write("err");
  return [["info", "out"], ["error", "err"]];
}
