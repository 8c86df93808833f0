// A directory of the machine as a workspace. Every operation ends before the next one of any guest begins, so no guest can change a path
// between its check and its use. Other programs of the machine could: this host trusts them.
import { createHash, randomUUID } from "node:crypto";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { runInNewContext } from "node:vm";

const fail = (tag, val) => Object.assign(Object.create(null), { tag, val });
const MOST = 262144; // bytes of one call
const TEXT = 16 << 20; // bytes of a file that is read as a whole
const LINKS = 40; // that a path may follow
const ENTRIES = 100000; // that a search may visit
const PAGE = 1000;

const codes = { ENOENT: "not-found", EEXIST: "already-exists", EISDIR: "invalid", ENOTDIR: "invalid", ENOTEMPTY: "invalid", EINVAL: "invalid", ENAMETOOLONG: "invalid" };

/** Makes an error of the contract of one of the system. */
function attempt(path, f) {
  try {
    return f();
  } catch (error) {
    if (error?.tag || !error?.code) throw error;
    throw fail(codes[error.code] ?? "unavailable", `${path}: ${error.code}`);
  }
}

const stat = (path) => attempt(path, () => fs.lstatSync(path, { throwIfNoEntry: false }));
const byBytes = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** The names of a path, read as text alone. */
function parts(operation, path) {
  if (Buffer.byteLength(path) > 4096) throw fail("invalid", "the path has more than 4096 bytes");
  if (/[\\\p{Cc}]/u.test(path)) throw fail("invalid", `the path ${JSON.stringify(path)} has a character that no path may have`);
  const names = [];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) throw outside(operation, path);
  }
  for (const name of names) {
    if (Buffer.byteLength(name) > 255 || name.trim() !== name || name.endsWith(".")) throw fail("invalid", `the name ${JSON.stringify(name)}`);
  }
  return names;
}

const outside = (operation, path) => fail("denied", { binding: "", operation: `${operation} ${path}`, reason: "the path leaves the directory that was granted", remedy: "" });

/** Follows links from a directory below top to what a path names. The last name may be missing, or is not followed. */
function reach(self, operation, path, { follow = true } = {}) {
  for (let i = 1; i <= self.base.length; i++) { // the directory itself is where it was, and no link
    if (!stat(join(self.top, ...self.base.slice(0, i)))?.isDirectory()) throw fail("not-found", "/");
  }
  const rest = parts(operation, path);
  const at = [];
  const real = () => join(self.top, ...self.base, ...at);
  for (let links = 0; rest.length > 0; ) {
    const name = rest.shift();
    if (name === "..") {
      if (at.pop() === undefined) throw outside(operation, path);
      continue;
    }
    at.push(name);
    const found = stat(real());
    if (!found && rest.length > 0) continue; // what follows is missing as well
    if (!found?.isSymbolicLink() || (rest.length === 0 && !follow)) {
      if (found && rest.length > 0 && !found.isDirectory()) throw fail("invalid", `${path}: a file on the way`);
      continue;
    }
    if (++links > LINKS) throw fail("invalid", `${path}: too many links`);
    const target = attempt(path, () => fs.readlinkSync(real()));
    at.pop();
    if (target.startsWith("/")) throw outside(operation, path);
    rest.unshift(...target.split("/").filter((n) => n !== "" && n !== "."));
  }
  return { real: real(), at, info: stat(real()) };
}

/** What a path names, of the wanted type. */
function existing(self, operation, path, wanted) {
  const found = reach(self, operation, path);
  if (!found.info) throw fail("not-found", path);
  if (wanted === "file" ? !found.info.isFile() : !found.info.isDirectory()) throw fail("invalid", `${path} is no ${wanted}`);
  return found;
}

/** An entry to change: not the directory itself, and not without the right. */
function changing(self, operation, path, options) {
  if (self.readOnly) throw fail("denied", { binding: "", operation: `${operation} ${path}`, reason: "the binding is read-only", remedy: `"access": "read-write"` });
  const found = reach(self, operation, path, options);
  if (found.at.length === 0) throw fail("invalid", "this is the directory itself; name something in it");
  return found;
}

function spend(self, n) {
  const { grant } = self;
  grant.bytes -= n;
  if (grant.bytes < 0) throw fail("exhausted", "bytes");
}

function content(self, path) {
  const { real, info } = existing(self, "read", path, "file");
  if (info.size > TEXT) throw fail("too-large", BigInt(info.size));
  const bytes = attempt(path, () => fs.readFileSync(real));
  spend(self, bytes.length);
  return bytes;
}

const digest = (bytes) => "sha256:" + createHash("sha256").update(bytes).digest("hex");

function text(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw fail("invalid", "it is not UTF-8");
  }
}

/** Writes a file, in the directories that it needs. */
function put(self, operation, path, bytes, append = false) {
  if (/(^|\/)\.{0,2}$/.test(path)) throw fail("invalid", `${path} names a directory, not a file`);
  const { real, info } = changing(self, operation, path);
  if (info && !info.isFile()) throw fail("invalid", `${path} is no file`);
  spend(self, bytes.length);
  attempt(path, () => {
    fs.mkdirSync(dirname(real), { recursive: true });
    if (append) return fs.appendFileSync(real, bytes);
    const made = `${dirname(real)}/.new-${randomUUID()}`;
    fs.writeFileSync(made, bytes, { mode: info?.mode ?? 0o644, flag: "wx" });
    fs.renameSync(made, real);
  });
}

function few(bytes) {
  if (bytes.length > MOST) throw fail("invalid", `at most ${MOST} bytes a call`);
  return bytes;
}

const kindOf = (info) => (info.isDirectory() ? "directory" : info.isSymbolicLink() ? "link" : "file");
const status = (info) => ({ kind: kindOf(info), size: BigInt(info.isFile() ? info.size : 0), modified: BigInt(Math.floor(info.mtimeMs)), mode: info.mode & 0o777 });
const shown = (info) => info && (info.isFile() || info.isDirectory() || info.isSymbolicLink());

function names(real, path) {
  return attempt(path, () => fs.readdirSync(real)).filter((n) => shown(stat(join(real, n)))).sort(byBytes);
}

/** Everything below a directory, in the order of paths, without following links. */
function below(self, operation) {
  const all = [];
  const visit = (real, prefix) => {
    for (const name of names(real, prefix)) {
      const info = stat(join(real, name));
      if (all.push({ path: prefix + name, real: join(real, name), info }) > ENTRIES) throw fail("unavailable", `more than ${ENTRIES} entries`);
      if (info.isDirectory()) visit(join(real, name), prefix + name + "/");
    }
  };
  visit(existing(self, operation, "", "directory").real, "");
  return all;
}

/** A glob as a regular expression for paths. */
function glob(pattern) {
  if (pattern === "" || pattern.length > 1024) throw fail("invalid", "the glob");
  let re = pattern.includes("/") ? "" : "(?:.*/)?";
  let braces = 0;
  for (let i = 0; i < pattern.length; i++) {
    const c = pattern[i];
    const begins = i === 0 || pattern[i - 1] === "/";
    if (begins && pattern.startsWith("**/", i)) (re += "(?:.*/)?"), (i += 2);
    else if (begins && pattern.slice(i) === "**") (re += ".*"), (i += 1);
    else if (c === "*") re += "[^/]*";
    else if (c === "?") re += "[^/]";
    else if (c === "{") (re += "(?:"), braces++;
    else if (c === "}" && braces > 0) (re += ")"), braces--;
    else if (c === "," && braces > 0) re += "|";
    else if (c === "[") {
      const end = pattern.indexOf("]", i + 2);
      if (end < 0) throw fail("invalid", `the glob ${pattern}`);
      re += "[" + pattern.slice(i + 1, end).replace(/^!/, "^").replace(/[\\[\]&|~/]/g, "\\$&") + "]";
      i = end;
    } else {
      const literal = c === "\\" && i + 1 < pattern.length ? pattern[++i] : c;
      re += literal.replace(/[\\^$.|?+*()[\]{}/]/, "\\$&");
    }
  }
  if (braces > 0) throw fail("invalid", `the glob ${pattern}`);
  return `^(?:${re})$`;
}

/** Where a pattern matches each of some texts, or undefined. A slow pattern ends after a second. */
function search(pattern, flags, texts) {
  try {
    return runInNewContext("const re = new RegExp(pattern, flags); texts.map((t) => re.exec(t)?.index)", { pattern, flags, texts }, { timeout: 1000 });
  } catch (error) {
    throw fail("invalid", error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT" ? "the pattern takes too long" : `the pattern: ${error.message}`);
  }
}

const matching = (pattern, entries) => {
  const at = search(glob(pattern), "su", entries.map(({ path }) => path));
  return entries.filter((_, i) => at[i] !== undefined);
};

/** A page of entries after a cursor. */
function page(all, limit, cursor, of) {
  const from = cursor === undefined ? 0 : all.findIndex((e) => byBytes(of(e), cursor) > 0);
  const entries = from < 0 ? [] : all.slice(from, from + Math.min(limit || PAGE, PAGE));
  const more = from >= 0 && from + entries.length < all.length;
  return { entries, cursor: more ? of(entries.at(-1)) : undefined };
}

const lacks = (what) => () => {
  throw fail("unavailable", `this host has no ${what}`);
};

/** Opens a directory of the machine. */
export const open = ({ directory, access }) => ({ top: fs.realpathSync(directory), base: [], readOnly: access !== "read-write" });

/** The operations of a directory. `this` is the call. */
export const Directory = {
  read: (self, _, path) => text(content(self, path)),
  readWithDigest(self, _, path, max) {
    const bytes = content(self, path);
    let whole;
    try {
      if (BigInt(bytes.length) <= max) whole = text(bytes);
    } catch {} // bytes that are no text have none
    return { text: whole, digest: digest(bytes), size: BigInt(bytes.length) };
  },
  readLines(self, _, path, from, to) {
    if (from < 1 || (to !== undefined && to < from)) throw fail("invalid", "lines count from 1");
    const lines = text(content(self, path)).match(/[^\n]*\n|[^\n]+$/g) ?? [];
    return lines.slice(from - 1, to).join("");
  },
  readBytes(self, _, path, offset, length) {
    if (length > MOST) throw fail("invalid", `at most ${MOST} bytes a call`);
    return new Uint8Array(content(self, path).subarray(Number(offset), Number(offset) + length));
  },
  readBlob(self, _, path) {
    return this.own("Blob", { bytes: content(self, path), mediaType: "application/octet-stream" }, self.grant);
  },
  write: (self, _, path, value) => put(self, "write", path, Buffer.from(value)),
  writeBytes: (self, _, path, bytes) => put(self, "write", path, few(bytes)),
  writeBlob: (self, object, path, source) => put(self, "write", path, object(source).bytes),
  replace(self, _, path, value, expected) {
    const { info } = changing(self, "replace", path);
    if ((info === undefined) !== (expected === undefined) || (info && digest(content(self, path)) !== expected)) throw fail("conflict", `${path} has another content`);
    put(self, "replace", path, Buffer.from(value));
    return digest(Buffer.from(value));
  },
  append: (self, _, path, value) => put(self, "append", path, Buffer.from(value), true),
  appendBytes: (self, _, path, bytes) => put(self, "append", path, few(bytes), true),
  edit(self, _, path, replacements) {
    changing(self, "edit", path);
    if (replacements.length > PAGE) throw fail("invalid", `at most ${PAGE} replacements`);
    const before = text(content(self, path));
    const places = replacements.map(({ old, new: by }) => {
      const at = old === "" ? -1 : before.indexOf(old);
      if (at < 0 || before.indexOf(old, at + 1) >= 0) throw fail("invalid", `${JSON.stringify(old)} does not occur exactly once`);
      return { at, end: at + old.length, by };
    });
    places.sort((a, b) => a.at - b.at);
    let after = "";
    let from = 0;
    for (const { at, end, by } of places) {
      if (at < from) throw fail("invalid", "two replacements overlap");
      after += before.slice(from, at) + by;
      from = end;
    }
    put(self, "edit", path, Buffer.from(after + before.slice(from)));
  },
  list(self, _, path, limit, cursor) {
    const { real } = existing(self, "list", path, "directory");
    const { entries, cursor: next } = page(names(real, path), limit, cursor, (name) => name);
    return { entries: entries.map((name) => ({ name, status: status(stat(join(real, name))) })), cursor: next };
  },
  find(self, _, pattern, limit, cursor) {
    const { entries, cursor: next } = page(matching(pattern, below(self, "find")), limit, cursor, (e) => e.path);
    return { paths: entries.map((e) => e.path), cursor: next };
  },
  grep(self, _, pattern, { include, exclude, context }, limit, cursor) {
    let files = below(self, "grep").filter(({ info }) => info.isFile() && info.size <= TEXT);
    if (include.length > 0) files = [...new Set(include.flatMap((g) => matching(g, files)))].sort((a, b) => byBytes(a.path, b.path));
    for (const g of exclude) files = files.filter((f) => !matching(g, files).includes(f));
    search(pattern, "u", []);
    const matches = [];
    let partial = 0;
    for (const { path, real } of files) {
      let lines;
      try {
        lines = text(fs.readFileSync(real)).replace(/\n$/, "").split("\n");
      } catch {
        partial++;
        continue;
      }
      search(pattern, "u", lines).forEach((at, i) => {
        if (at === undefined) return;
        const around = Math.min(context, 20);
        matches.push({ path, line: i + 1, column: Buffer.byteLength(lines[i].slice(0, at)) + 1, text: lines[i].slice(0, 2000), before: lines.slice(Math.max(0, i - around), i), after: lines.slice(i + 1, i + 1 + around) });
      });
    }
    const from = Number(cursor ?? 0);
    const some = matches.slice(from, from + Math.min(limit || PAGE, PAGE));
    for (const m of some) spend(self, Buffer.byteLength(m.text));
    return { matches: some, partial, cursor: from + some.length < matches.length ? String(from + some.length) : undefined };
  },
  stat(self, _, path) {
    const { info } = reach(self, "stat", path, { follow: false });
    if (!shown(info)) throw fail("not-found", path);
    return status(info);
  },
  setMode(self, _, path, mode) {
    const { real, info } = changing(self, "set-mode", path);
    if (!info) throw fail("not-found", path);
    if (mode > 0o777) throw fail("invalid", "a mode has at most the bits 0o777");
    attempt(path, () => fs.chmodSync(real, mode));
  },
  makeLink(self, _, path, target) {
    const { real, at } = changing(self, "make-link", path, { follow: false });
    const depth = target.split("/").reduce((d, n) => (d < 0 || n === "" || n === "." ? d : n === ".." ? d - 1 : d + 1), at.length - 1);
    if (target.startsWith("/") || depth < 0) throw outside("make-link", `${path} to ${target}`);
    if (target === "" || /\p{Cc}/u.test(target)) throw fail("invalid", "the target");
    attempt(path, () => (fs.mkdirSync(dirname(real), { recursive: true }), fs.symlinkSync(target, real)));
  },
  readLink(self, _, path) {
    const { real, info } = reach(self, "read-link", path, { follow: false });
    if (!info) throw fail("not-found", path);
    if (!info.isSymbolicLink()) throw fail("invalid", `${path} is no link`);
    return attempt(path, () => fs.readlinkSync(real));
  },
  makeDirectory(self, _, path) {
    const { real } = changing(self, "make-directory", path);
    attempt(path, () => fs.mkdirSync(real, { recursive: true }));
  },
  move(self, _, source, target) {
    const from = changing(self, "move", source, { follow: false });
    const to = changing(self, "move", target, { follow: false });
    if (!from.info) throw fail("not-found", source);
    if (to.info) throw fail("already-exists", target);
    attempt(target, () => (fs.mkdirSync(dirname(to.real), { recursive: true }), fs.renameSync(from.real, to.real)));
  },
  copy(self, _, source, target) {
    if (self.readOnly) changing(self, "copy", target);
    put(self, "copy", target, content(self, source));
  },
  remove(self, _, path, recursive) {
    const { real, info } = changing(self, "remove", path, { follow: false });
    if (!info) throw fail("not-found", path);
    attempt(path, () => {
      if (!info.isDirectory()) fs.unlinkSync(real);
      else if (recursive) fs.rmSync(real, { recursive: true });
      else fs.rmdirSync(real);
    });
  },
  subdirectory(self, _, path) {
    const { at } = existing(self, "subdirectory", path, "directory");
    return this.own("Directory", { ...self, base: [...self.base, ...at] }, self.grant);
  },
  readOnly(self) {
    return this.own("Directory", { ...self, readOnly: true }, self.grant);
  },
  diff: lacks("diffs"),
  diffRevision: lacks("history"),
  history: lacks("history"),
  readRevision: lacks("history"),
  restore: lacks("history"),
  snapshot: lacks("snapshots"),
  snapshots: lacks("snapshots"),
  restoreSnapshot: lacks("snapshots"),
  removeSnapshot: lacks("snapshots"),
};
