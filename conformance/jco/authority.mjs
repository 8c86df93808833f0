// What calls may do: their bindings, the handles of their guests, and every operation.
import { createHash, randomBytes } from "node:crypto";
import { request as send } from "node:http";
import { BlockList, isIP } from "node:net";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { Directory, open } from "./workspace.mjs";

const fail = (tag, val) => Object.assign(Object.create(null), { tag, val });
const buckets = new Map(); // by store; they last as long as the host
const MOST = 262144;

const blocked = new BlockList();
for (const [net, bits] of [["0.0.0.0", 8], ["10.0.0.0", 8], ["100.64.0.0", 10], ["127.0.0.0", 8], ["169.254.0.0", 16], ["172.16.0.0", 12], ["192.0.0.0", 24], ["192.0.2.0", 24], ["192.168.0.0", 16], ["198.18.0.0", 15], ["198.51.100.0", 24], ["203.0.113.0", 24], ["224.0.0.0", 3]]) blocked.addSubnet(net, bits, "ipv4");
// Of IPv6, only global unicast addresses are public, without those that stand for others.
const global6 = new BlockList();
global6.addSubnet("2000::", 3, "ipv6");
for (const [net, bits] of [["2001::", 23], ["2001:db8::", 32], ["2002::", 16], ["3fff::", 20]]) blocked.addSubnet(net, bits, "ipv6");

const isPublic = (address) => (isIP(address) === 4 ? !blocked.check(address, "ipv4") : global6.check(address, "ipv6") && !blocked.check(address, "ipv6"));

function within(address, prefixes = []) {
  const list = new BlockList();
  for (const prefix of prefixes) {
    const [net, bits] = prefix.split("/");
    list.addSubnet(net, Number(bits), isIP(net) === 4 ? "ipv4" : "ipv6");
  }
  return list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}

/** Whether the segments of a path match a pattern. */
function matches(pattern, path) {
  const match = (p, s) => {
    if (p.length === 0) return s.length === 0;
    if (p[0] === "**") return match(p.slice(1), s) || (s.length > 0 && match(p, s.slice(1)));
    if (s.length === 0) return false;
    const text = new RegExp("^" + p[0].split("*").map((t) => t.replace(/[\\^$.|?+()[\]{}]/g, "\\$&")).join("[^/]*") + "$", "s");
    return text.test(s[0]) && match(p.slice(1), s.slice(1));
  };
  return match(pattern.slice(1).split("/"), path.slice(1).split("/"));
}

const safe = /^(accept|accept-language|cache-control|content-language|content-type|if-.*|pragma|range|user-agent)$/;
const named = /^(authorization|cookie|x-http-method.*|x-method-override|x-original-.*|x-rewrite-.*|x-forwarded.*|forwarded)$/;
const never = /^(host|connection|content-length|transfer-encoding|te|trailer|upgrade|keep-alive|expect|proxy-.*)$/;

function allowsHeader(rule, name) {
  const list = (rule.headers ?? []).map((h) => h.toLowerCase());
  return !never.test(name) && (safe.test(name) || list.includes(name) || (list.includes("*") && !named.test(name)));
}

/** Why a rule does not allow a request; undefined if it does. */
function refuses(rule, { method, url, headers }) {
  if (url.protocol !== (rule.scheme || "https") + ":") return "its scheme";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const wanted = rule.host;
  if (wanted !== "*" && !(wanted.startsWith("*.") ? host.endsWith(wanted.slice(1)) : host === wanted)) return "its host";
  const standard = url.protocol === "https:" ? 443 : 80;
  if (Number(url.port || standard) !== (rule.port ?? standard)) return "its port";
  const methods = rule.methods?.length ? rule.methods : ["GET", "HEAD"];
  if (["CONNECT", "TRACE"].includes(method) || !(methods.includes(method) || methods.includes("*"))) return "its method";
  let path;
  try {
    path = url.pathname.split("/").map(decodeURIComponent);
  } catch {
    return "its path";
  }
  if (path.some((s) => /[/\\\0]/.test(s) || s === ".." || s === ".") || !matches(rule.path || "/**", path.join("/"))) return "its path";
  for (const { name } of headers) if (!allowsHeader(rule, name.toLowerCase())) return `the header ${name}`;
}

/** One call: its env, its handles, and what it has done. */
export class Call {
  #handles = new Map();
  #next = 1;
  #bindings = new Map();
  #looked = new Map();
  #pending = new Set();
  #stops = new Set();
  operations = [];
  denials = [];
  end = () => {};

  constructor({ env = {}, limits = {}, names = {} }, of) {
    this.names = names;
    this.most = { handles: limits.handles ?? 1000, pending: limits.pending ?? 64 };
    if (of) Object.assign(this, { cpu: of.cpu, wall: of.wall, began: of.began });
    const now = Date.now();
    for (const [name, spec] of Object.entries(env)) {
      const { operations = Infinity, bytes = Infinity, expires } = spec.grant ?? {};
      const grant = { name, operations: operations || Infinity, bytes: bytes || Infinity, expires: expires ? now + expires : Infinity };
      grant.ended = new Promise((_, reject) => (grant.reject = reject));
      grant.ended.catch(() => {});
      this.#bindings.set(name, { spec, grant });
    }
    this.env = this.#add({ type: "Env", bindings: this.#bindings });
  }

  revoke(name, reason) {
    const { grant } = this.#bindings.get(name);
    grant.error = fail("revoked", reason);
    grant.reject(grant.error);
    for (const stop of [...this.#stops]) if (stop.grant === grant) stop(grant.error);
  }

  close() {
    for (const stop of [...this.#stops]) stop(fail("unavailable", "the call has ended"));
    this.#handles.clear();
  }

  /** How a call ended whose guest reports an error. */
  failure({ tag, val }) {
    if (tag === "denied") {
      const denial = this.denials.find((d) => d.binding === val.binding && d.operation === val.operation && d.reason === val.reason);
      if (denial) return { outcome: "denied", denial };
      return { outcome: "failed", message: "it claims a denial that did not happen" };
    }
    if (tag === "exhausted") {
      const [limit] = val.split(":");
      if (["memory", "stack", "promise"].includes(limit)) return { outcome: "limit", limit };
      return { outcome: "failed", message: `it claims a limit: ${val}` };
    }
    if (tag === "unknown-tool") return { outcome: "unknown-tool" };
    if (tag === "invalid-input") return { outcome: "invalid-input" };
    return { outcome: "failed", message: val?.message };
  }

  #add(object) {
    if (this.#handles.size >= this.most.handles) this.limit = "handles";
    const handle = this.#next++;
    this.#handles.set(handle, object);
    return { handle, type: object.type };
  }

  #own(type, object, grant) {
    return this.#add(Object.assign(object, { type, grant }));
  }

  /** Waits for a promise as a pollable. */
  #pollable(promise, grant, cancel) {
    const pollable = { type: "Pollable", isReady: false, grant };
    pollable.done = promise.then(() => {}, () => {}).then(() => {
      pollable.isReady = true;
      this.#pending.delete(pollable);
    });
    pollable.dispose = () => {
      this.#pending.delete(pollable);
      cancel?.();
    };
    this.#pending.add(pollable);
    if (this.#pending.size > this.most.pending) this.limit = "pending";
    return this.#add(pollable);
  }

  /** Makes an operation of the guest. Its answer is a value or an error. */
  async operate({ resource, method, handle, args }) {
    const self = handle === undefined ? undefined : this.#handles.get(handle);
    if (method === "dispose") {
      self?.dispose?.();
      this.#handles.delete(handle);
      return {};
    }
    // jco's tables say which handles the guest has. What they let through is checked here again.
    const trap = (message) => this.end({ outcome: "trap", message });
    if (method !== "poll" && self?.type !== resource) return trap(`there is no ${resource} with this handle`);
    const object = (arg) => this.#handles.get(arg?.handle) ?? trap("there is no such handle") ?? {};
    const grant = self?.grant;
    const counted = grant && resource !== "Pollable" && method !== "subscribe";
    const name = `${resource.toLowerCase()}.${method.replace(/[A-Z]/g, (c) => "-" + c.toLowerCase())}`;
    try {
      if (counted) {
        if (grant.error) throw grant.error;
        if (Date.now() >= grant.expires) throw fail("expired");
        if (grant.operations-- <= 0) throw fail("exhausted", "operations");
      }
      const made = operations[resource][method].call(this, self, object, ...args);
      // Pollables are ready when a grant ends; everything else fails then.
      const value = await (counted ? Promise.race([made, grant.ended]) : made);
      if (counted) this.operations.push({ binding: grant.name, func: name });
      return { value };
    } catch (error) {
      if (!error?.tag) throw error;
      if (error.tag === "denied" && !error.val.binding) Object.assign(error.val, { binding: grant.name });
      if (error.tag === "denied") this.denials.push(error.val);
      if (counted) this.operations.push({ binding: grant.name, func: name, error: error.tag });
      return { error };
    }
  }

  /** The addresses of a host, from this call's resolver alone. */
  lookUp(host) {
    if (isIP(host)) return [host];
    const answers = this.names[host];
    if (!answers?.length) throw fail("unavailable", `there is no name ${host}`);
    const n = this.#looked.get(host) ?? 0;
    this.#looked.set(host, n + 1);
    return answers[Math.min(n, answers.length - 1)];
  }

  /** Sends one hop, and resolves with its response. */
  async hop(sets, { method, url, headers, body, grant }) {
    const denied = (reason) => fail("denied", { binding: grant.name, operation: `${method} ${url.href.replace(/#.*/, "")}`, reason, remedy: "" });
    let deciding;
    for (const rules of sets) {
      const rule = rules.find((r) => refuses(r, { method, url, headers }) === undefined);
      if (!rule) throw denied(rules.length ? `no rule allows ${refuses(rules[0], { method, url, headers })}` : "no rule allows anything");
      deciding ??= rule;
    }
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const literal = isIP(host) && deciding.host === host;
    const allowed = this.lookUp(host).filter((a) => literal || isPublic(a) || within(a, deciding.addresses));
    if (allowed.length === 0) throw denied("its address is not public");
    if (url.protocol !== "http:") throw fail("unavailable", "this host speaks no TLS");
    return new Promise((resolve, reject) => {
      const plain = Object.fromEntries(headers.map(({ name, value }) => [name, value]));
      if (body) plain["Content-Length"] = body.length;
      const r = send({ host: allowed[0], port: url.port || 80, method, path: url.pathname + url.search, headers: { ...plain, Host: url.host, "Accept-Encoding": "gzip", Connection: "close" }, agent: false });
      const stop = Object.assign((error) => { reject(error); r.destroy(); }, { grant });
      this.#stops.add(stop);
      r.on("close", () => this.#stops.delete(stop));
      r.on("error", (error) => reject(fail("unavailable", String(error.code ?? error))));
      r.on("response", (response) => resolve({ response, rule: deciding }));
      r.end(body);
    });
  }

  /** Sends a request with its redirects, and reads the body. */
  exchange(client, { method, url, headers, body, redirect }) {
    const e = { chunks: [], size: 0, waiting: [], grant: client.grant };
    const progress = () => { for (const wake of e.waiting.splice(0)) wake(); };
    e.until = (ready) => new Promise((resolve) => {
      const check = () => (e.ended || ready() ? resolve() : e.waiting.push(check));
      check();
    });
    const work = async () => {
      for (let hops = 0; ; hops++) {
        const { response, rule } = await this.hop(client.sets, { method, url, headers, body, grant: client.grant });
        const { statusCode: status, headers: got } = response;
        const moved = [301, 302, 303, 307, 308].includes(status) && got.location !== undefined;
        if (moved && redirect !== "manual") {
          response.destroy();
          if (redirect === "error") throw fail("unavailable", "the server redirects");
          if (hops >= 20) throw fail("unavailable", "too many redirects");
          let target;
          try { target = new URL(got.location, url); } catch { throw fail("unavailable", "the server redirects to nowhere"); }
          if (target.username || target.password || !/^https?:$/.test(target.protocol)) throw fail("denied", { binding: client.grant.name, operation: `${method} ${target.href}`, reason: "no rule allows its scheme", remedy: "" });
          if (status === 303 || (method === "POST" && status < 303)) {
            if (method !== "HEAD") method = "GET";
            body = undefined;
            headers = headers.filter(({ name }) => !/^content-/i.test(name));
          }
          if (target.origin !== url.origin) headers = headers.filter(({ name }) => !/^(authorization|cookie)$/i.test(name));
          url = target;
          continue;
        }
        e.head = { status, url: url.href, redirected: hops > 0, headers: Object.entries(got).filter(([name]) => name !== "content-encoding").map(([name, value]) => ({ name, value: String(value) })) };
        progress();
        const decoder = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress }[got["content-encoding"]]?.();
        const most = rule.maxResponse || 16 << 20;
        try {
          for await (const chunk of decoder ? response.pipe(decoder) : response) {
            e.size += chunk.length;
            if (e.size > most) {
              response.destroy();
              throw fail("too-large", BigInt(most));
            }
            e.chunks.push(chunk);
            progress();
          }
        } catch (error) {
          throw client.grant.error ?? (error?.tag ? error : fail("unavailable", String(error)));
        }
        return;
      }
    };
    e.done = work().catch((error) => {
      if (!error?.tag) throw error;
      e.error = error;
    }).then(() => {
      e.ended = true;
      progress();
    });
    return e;
  }

  own = (type, object, grant) => this.#own(type, object, grant);
  pollable = (promise, grant, cancel) => this.#pollable(promise, grant, cancel);
}

const text = (bytes) => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw fail("invalid", "it is not UTF-8");
  }
};
const MIN = -(1n << 63n);
const MAX = (1n << 63n) - 1n;

/** The operations of each resource. `this` is the call, self the object of the handle, and object returns that of another. */
const operations = {
  Env: {
    names: (self) => [...self.bindings].map(([name, b]) => [name, b.made?.kind ?? `stile:capability/${b.spec.kind}@0.1.0`]),
    subset(self, _, names) {
      const missing = names.find((name) => !self.bindings.has(name));
      if (missing !== undefined) throw `there is no binding ${missing}`;
      return this.own("Env", { bindings: new Map(names.map((name) => [name, self.bindings.get(name)])) });
    },
    get(self, _, kind, name) {
      const b = self.bindings.get(name);
      if (b?.spec.kind !== kind) throw fail("denied", { binding: name, operation: `use ${name}`, reason: `there is no ${kind} binding of this name`, remedy: "" });
      const { spec, grant, derived } = b;
      if (derived) return this.own(derived.type, { ...derived }, grant);
      switch (kind) {
        case "workspace":
          return this.own("Directory", open(spec), grant);
        case "http":
          return this.own("Client", { sets: [spec.rules ?? []], budget: spec }, grant);
        case "kv": {
          if (!buckets.has(spec.store)) buckets.set(spec.store, new Map());
          return this.own("Bucket", { entries: buckets.get(spec.store) }, grant);
        }
        case "clock":
          return this.own("Clock", { start: process.hrtime.bigint() }, grant);
        case "random":
          return this.own("Random", {}, grant);
        case "console":
          return this.own("Console", {}, grant);
        case "blob":
          grant.held ??= 0;
          return this.own("Store", { most: spec.bytes || 64 << 20 }, grant);
      }
    },
    put(self, object, kind, name, value) {
      if (!/^[!-~]{1,64}$/.test(name)) throw fail("invalid", "the name");
      const derived = object(value);
      self.bindings.set(name, { spec: { kind }, grant: derived.grant, derived });
    },
  },
  Pollable: {
    ready: (self) => self.isReady,
    block: (self) => self.done,
    async poll(_, object, list) {
      if (list.length === 0) return this.end({ outcome: "trap", message: "poll of an empty list" });
      const all = list.map(object);
      if (!all.some((p) => p.isReady)) await Promise.race(all.map((p) => p.done));
      return all.flatMap((p, i) => (p.isReady ? [i] : []));
    },
  },
  Clock: {
    now: () => BigInt(Date.now()),
    monotonic: (self) => process.hrtime.bigint() - self.start,
    subscribe(self, _, nanoseconds) {
      let timer;
      return this.pollable(new Promise((resolve) => (timer = setTimeout(resolve, Math.min(Number(nanoseconds / 1000000n), 2 ** 31 - 1)))), self.grant, () => clearTimeout(timer));
    },
  },
  Random: {
    u64: () => randomBytes(8).readBigUInt64LE(),
    bytes: (_, __, length) => {
      if (length > 65536) throw fail("invalid", "at most 65536 bytes");
      return new Uint8Array(randomBytes(length));
    },
  },
  Console: { log: () => {} },
  Directory,
  Bucket: {
    get: (self, _, key) => self.entries.get(key),
    set: (self, _, key, value) => {
      if (key === "") throw fail("invalid", "an empty key");
      self.entries.set(key, value);
    },
    delete: (self, _, key) => self.entries.delete(key),
    list: (self, _, prefix, limit, cursor) => {
      const all = [...self.entries].filter(([key]) => key.startsWith(prefix)).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      const from = cursor === undefined ? 0 : Number(cursor);
      const end = from + Math.min(limit || 1000, 1000);
      return { entries: all.slice(from, end).map(([key, value]) => ({ key, value })), cursor: end < all.length ? String(end) : undefined };
    },
    increment: (self, _, key, delta) => {
      const text = self.entries.get(key) ?? "0";
      if (!/^-?[0-9]+$/.test(text)) throw fail("invalid", "the value is no integer");
      const sum = BigInt(text) + delta;
      if (sum < MIN || sum > MAX) throw fail("invalid", "the sum has more than 64 bits");
      self.entries.set(key, String(sum));
      return sum;
    },
    compareAndSet: (self, _, key, expected, value) => {
      if (self.entries.get(key) !== expected) return false;
      if (value === undefined) self.entries.delete(key);
      else self.entries.set(key, value);
      return true;
    },
  },
  Store: {
    create(self, _, mediaType) {
      return this.own("Writer", { chunks: [], mediaType, most: self.most }, self.grant);
    },
    finish(self, object, writer) {
      const { chunks, mediaType } = object(writer);
      return this.own("Blob", { bytes: Buffer.concat(chunks), mediaType }, self.grant);
    },
  },
  Writer: {
    append: (self, _, bytes) => write(self, Buffer.from(bytes)),
    appendText: (self, _, text) => write(self, Buffer.from(text)),
    appendBlob: (self, object, source) => write(self, object(source).bytes),
  },
  Blob: {
    size: (self) => BigInt(self.bytes.length),
    mediaType: (self) => self.mediaType,
    digest: (self) => "sha256:" + createHash("sha256").update(self.bytes).digest("hex"),
    text: (self, _, max) => {
      if (self.bytes.length > max) throw fail("too-large", BigInt(self.bytes.length));
      return text(self.bytes);
    },
    bytes: (self, _, offset, length) => {
      if (length > MOST) throw fail("invalid", `at most ${MOST} bytes`);
      return new Uint8Array(self.bytes.subarray(Number(offset), Number(offset) + length));
    },
    packed: (self, _, offset, length) => {
      if (length > MOST) throw fail("invalid", `at most ${MOST} bytes`);
      return wordText(self.bytes.subarray(Number(offset), Number(offset) + length));
    },
  },
  Client: {
    start(self, object, r) {
      let url;
      try {
        url = new URL(r.url);
      } catch {
        throw fail("invalid", "the URL");
      }
      if (url.username || url.password) throw fail("invalid", "a URL with a user");
      const body = { none: () => undefined, text: (v) => Buffer.from(v), bytes: (v) => Buffer.from(v), blob: (v) => object(v).bytes }[r.content.tag](r.content.val);
      const request = { method: r.method, url, headers: r.headers, body, redirect: r.redirect };
      for (const rules of self.sets) {
        if (!rules.some((rule) => refuses(rule, request) === undefined)) {
          throw fail("denied", { binding: self.grant.name, operation: `${r.method} ${url.href}`, reason: rules.length ? `no rule allows ${refuses(rules[0], request)}` : "no rule allows anything", remedy: "" });
        }
      }
      return this.own("Exchange", this.exchange(self, request), self.grant);
    },
    narrow(self, _, rules) {
      return this.own("Client", { sets: [...self.sets, rules], budget: self.budget }, self.grant);
    },
    rules: (self) => self.sets.at(-1).map((r) => ({ scheme: r.scheme || "https", host: r.host, port: r.port, methods: r.methods ?? ["GET", "HEAD"], path: r.path || "/**", headers: r.headers ?? [] })),
  },
  Exchange: {
    subscribe(self, _, { tag, val }) {
      const ready = { head: () => self.head, body: () => self.size > val, whole: () => false }[tag];
      return this.pollable(Promise.race([self.until(ready), self.grant.ended]), self.grant);
    },
    async head(self) {
      await self.until(() => self.head);
      if (!self.head) throw self.error;
      return self.head;
    },
    async text(self, _, max) {
      await self.until(() => false);
      if (self.error) throw self.error;
      if (self.size > max) throw fail("too-large", BigInt(self.size));
      return text(Buffer.concat(self.chunks));
    },
    async blob(self, _, part) {
      const offset = Number(part?.offset ?? 0);
      await self.until(() => part !== undefined && self.size > offset);
      if (self.error) throw self.error;
      const bytes = Buffer.concat(self.chunks);
      const type = self.head.headers.find(({ name }) => name === "content-type")?.value ?? "";
      return this.own("Blob", { bytes: part === undefined ? bytes : bytes.subarray(offset, offset + Math.min(part.len, MOST)), mediaType: type }, self.grant);
    },
  },
};

function write(writer, bytes) {
  if (bytes.length > MOST && !(bytes instanceof Uint8Array)) throw fail("invalid", `at most ${MOST} bytes`);
  if (writer.grant.held + bytes.length > writer.most) throw fail("exhausted", "bytes of blobs");
  writer.grant.held += bytes.length;
  writer.chunks.push(bytes);
}

/** The text of words that `packed` of stile:capability/blob returns: the number of bytes, and the bytes. */
function wordText(bytes) {
  const words = Buffer.alloc(8 + Math.ceil(bytes.length / 8) * 8);
  words.writeUInt32LE(bytes.length);
  bytes.copy(words, 8);
  const out = [];
  for (let at = 0; at < words.length; at += 56) {
    const group = words.subarray(at, at + 56);
    const high = new Uint8Array(8);
    for (let n = 0; n < group.length; n++) {
      high[n & 7] |= (group[n] & 0x80) >> (1 + (n >> 3));
      out.push(group[n] & 0x7f);
    }
    out.push(...high);
  }
  return Buffer.from(out).toString("latin1");
}
