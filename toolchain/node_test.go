package toolchain

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// nodeTools builds one-tool extensions of bodies of async functions, with some imports.
type nodeTools struct {
	*Toolchain
	store *workspace.Store
}

func newNodeTools(t *testing.T) nodeTools {
	t.Helper()
	cacheDir, keyDir := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	made, err := New(t.Context(), h, Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	store, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "workspace"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return nodeTools{made, store}
}

func (n nodeTools) call(t *testing.T, files, imports, body string, r host.Request) (string, error) {
	t.Helper()
	text := fmt.Sprintf("import { extension } from \"stile\";\n%s\nexport default extension({ tools: { t: { description: \"test\", run: async (input, env) => { %s } } } });", imports, body)
	c, err := n.Build(t.Context(), Source{FS: fstest.MapFS{"tool.js": {Data: []byte(text)}}, Entry: "tool.js", Files: files})
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	r.Tool, r.Input = "t", []byte("{}")
	result, err := c.Do(t.Context(), r)
	return string(result.Output), err
}

// node:fs has the files of one binding, with its rights, and nothing without one.
func TestFilesOfNode(t *testing.T) {
	n := newNodeTools(t)
	whole := n.store.Workspace("w")
	if _, err := n.call(t, "notes", `import fs from "fs";`, `fs.mkdirSync("/in"); fs.writeFileSync("/in/a", "inside"); fs.writeFileSync("/out", "outside"); fs.symlinkSync("../out", "/in/link");`, host.Request{Env: host.Env{"notes": whole}}); err != nil {
		t.Fatal(err)
	}
	below, err := whole.Subdirectory(t.Context(), "in")
	if err != nil {
		t.Fatal(err)
	}
	readOnly, err := whole.ReadOnly(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const codes = `const code = (f) => { try { return f(); } catch (e) { return e.code ?? e.name + ": " + e.message; } };`
	for name, test := range map[string]struct {
		files, body, want string
		env               host.Env
	}{
		"no binding named": {
			"", `return code(() => fs.readFileSync("/in/a", "utf8"));`, `UnboundError: fs has no files: name a workspace binding in the manifest, as in \"fs\": \"notes\"`, host.Env{"notes": whole},
		},
		"a binding that is not there": {"notes", `return code(() => fs.readFileSync("a"));`, "UnboundError: env.notes is not bound (bound: nothing)", host.Env{}},
		"another binding":             {"other", `return code(() => fs.readFileSync("a"));`, "UnboundError: env.other is not bound (bound: notes)", host.Env{"notes": whole}},
		"dots":                        {"notes", `return ["/../out", "../out", "/x/../../out", "..\\out", "//out"].map((p) => code(() => fs.readFileSync(p, "utf8")));`, `["ENOENT","ENOENT","ENOENT","EINVAL","ENOENT"]`, host.Env{"notes": below}},
		"a link that leads out":       {"notes", `return code(() => fs.readFileSync("link", "utf8"));`, `"EACCES"`, host.Env{"notes": below}},
		"a link of its own":           {"notes", `return code(() => { fs.symlinkSync("../out", "mine"); });`, `"EACCES"`, host.Env{"notes": below}},
		"only to read": {
			"notes", `return [() => fs.readFileSync("in/a", "utf8"), () => fs.writeFileSync("x", "1"), () => fs.appendFileSync("in/a", "1"), () => fs.mkdirSync("d"), () => fs.unlinkSync("in/a"), () => fs.renameSync("in/a", "b"), () => fs.chmodSync("in/a", 0o600)].map(code);`,
			`["inside","EACCES","EACCES","EACCES","EACCES","EACCES","EACCES"]`,
			host.Env{"notes": readOnly},
		},
		"the operation by itself": {
			"notes", `const operate = globalThis[Symbol.for("stileFiles")]; return ["drop", "subdirectory", "constructor", "__proto__", "readOnly"].map((m) => code(() => operate(m, "in")).slice(0, 9));`,
			`["TypeError","TypeError","TypeError","TypeError","TypeError"]`,
			host.Env{"notes": whole},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := n.call(t, test.files, `import fs from "node:fs";`, codes+test.body, host.Request{Env: test.env})
			if err != nil || !strings.Contains(got, test.want) {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
	// A denial that nobody catches stays one, for the person who could grant it.
	_, err = n.call(t, "notes", `import fs from "node:fs";`, `fs.writeFileSync("x", "1");`, host.Request{Env: host.Env{"notes": readOnly}})
	if denied, ok := errors.AsType[*host.DeniedError](err); !ok || !strings.Contains(denied.Error(), "notes") {
		t.Errorf("got %v", err)
	}
}

// The parts of path.win32 can be looked at. What calls one is told what to write.
func TestPathOfWindows(t *testing.T) {
	got, err := newNodeTools(t).call(t, "", `import path, { win32 } from "node:path";`, `const { basename } = require("path").win32; let said; try { basename("a\\b"); } catch (e) { said = e.message; }
		return [said, win32 === path.win32 && path.posix.win32 === win32 && win32.posix === path.posix, win32.sep, path.basename("a/b")];`, host.Request{})
	const want = `["path.win32.basename is not available: paths are separated by / here; write path.basename with \"\\\" replaced by \"/\"",true,"\\","b"]`
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// What stands in for modules of node is code of the guest: it reaches nothing of the prelude, and does not outlive a call.
func TestNodeModulesReachNothing(t *testing.T) {
	n := newNodeTools(t)
	for name, test := range map[string]struct{ imports, body, want string }{
		"names of the prelude": {
			`import util from "util"; import "process"; import Stream from "stream";`,
			`const f = (...args) => Function(...args);
			return ["host", "memory", "block", "shared", "require", "module"].map((name) => { try { return f("return typeof " + name)(); } catch (e) { return e.name; } });`,
			`["undefined","undefined","undefined","undefined","undefined","undefined"]`,
		},
		"constructors": {
			`import { Buffer } from "buffer"; import events from "events"; import { inspect } from "util"; import crypto from "crypto"; import fs from "fs";`,
			`const seen = new Set(), found = [];
			const walk = (value, depth) => {
				if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value) || depth > 6) return;
				seen.add(value);
				if (value instanceof ArrayBuffer && value.byteLength > 1 << 20) found.push(value.byteLength);
				for (const key of Reflect.ownKeys(value)) { try { walk(Reflect.getOwnPropertyDescriptor(value, key).value, depth + 1); } catch {} }
				try { walk(Object.getPrototypeOf(value), depth + 1); } catch {}
			};
			for (const root of [Buffer, events, inspect, crypto, fs, process, globalThis, ...Object.getOwnPropertySymbols(globalThis).map((s) => globalThis[s])]) walk(root, 0);
			return [found, seen.size > 1000];`,
			`[[],true]`,
		},
		"loaders": {
			``, `return ["binding", "dlopen", "mainModule", "_linkedBinding"].map((name) => { try { process[name]("fs"); return "called"; } catch (e) { return e.name; } });`,
			`["TypeError","TypeError","TypeError","TypeError"]`,
		},
		"a polluted prototype": {
			`import fs from "fs"; import { EventEmitter } from "events"; import qs from "querystring"; import url from "url";`,
			`Object.prototype.code = "polluted"; Object.prototype.files = "notes"; Array.prototype.push = () => { throw new Error("broken"); };
			let said; try { fs.readFileSync("a"); } catch (e) { said = e.name; }
			return [said, qs.parse("__proto__=x&constructor=y").__proto__, typeof url.parse("http://a/").host];`,
			`["UnboundError",`,
		},
		"after that": {``, `return [typeof {}.code, typeof [].push];`, `["undefined","function"]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := n.call(t, "", test.imports, test.body, host.Request{})
			if err != nil || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// Each of these would take long or much: its time and memory are the call's.
func TestNodeModulesAreCharged(t *testing.T) {
	n := newNodeTools(t)
	for name, test := range map[string]struct{ imports, body string }{
		"Buffer":         {``, `let b = Buffer.alloc(1 << 20); for (;;) b = Buffer.concat([b, b]);`},
		"hex":            {``, `let s = "ab".repeat(1 << 20); for (;;) s = Buffer.from(s).toString("hex");`},
		"digest":         {`import crypto from "crypto";`, `const h = crypto.createHash("sha512"); for (;;) h.update(Buffer.alloc(1 << 20));`},
		"inspect":        {`import util from "util";`, `const o = []; for (let i = 0; i < 1e6; i++) o.push({ i }); for (;;) util.inspect(o, { maxArrayLength: null, depth: null });`},
		"equality":       {`import util from "util";`, `const s = () => new Set(Array.from({ length: 20000 }, (_, i) => ({ i }))); util.isDeepStrictEqual(s(), s());`},
		"glob":           {`import path from "path";`, `for (;;) path.matchesGlob("a".repeat(10000), "*a".repeat(5000) + "b");`},
		"querystring":    {`import qs from "querystring";`, `for (;;) qs.parse("a&".repeat(1e6), "&", "=", { maxKeys: 0 });`},
		"url":            {`import url from "url";`, `for (;;) url.parse("http://" + "a.".repeat(1e5));`},
		"setImmediate":   {``, `const again = () => setImmediate(again); again(); await new Promise(() => {});`},
		"nextTick":       {``, `const again = () => process.nextTick(again); again(); await new Promise(() => {});`},
		"messages":       {``, `const { port1, port2 } = new MessageChannel(); port2.onmessage = () => port1.postMessage(1); port1.postMessage(1); await new Promise(() => {});`},
		"a port unread":  {``, `const { port1 } = new MessageChannel(); for (;;) port1.postMessage("x".repeat(1 << 16));`},
		"stream":         {`import { Readable } from "stream";`, `for await (const piece of new Readable({ read() { this.push("x".repeat(1 << 16)); } })) void piece;`},
		"events":         {`import { EventEmitter } from "events";`, `const e = new EventEmitter(); e.setMaxListeners(0); for (;;) e.on("x", () => {});`},
		"rejections":     {``, `self.addEventListener("unhandledrejection", (e) => { e.preventDefault(); Promise.reject(1); }); Promise.reject(1); await new Promise(() => {});`},
		"legacy text":    {``, `const d = new TextDecoder("gb18030"); for (;;) d.decode(new Uint8Array(1 << 20).fill(0x81));`},
		"URLPattern":     {``, `const pathname = Array.from({ length: 100 }, (_, i) => "/:a" + i).join(""); for (;;) new URLPattern({ pathname }).test({ pathname: "/a".repeat(100) });`},
		"URLs of Blobs":  {``, `for (;;) URL.createObjectURL(new Blob(["x".repeat(1000)]));`},
		"marks":          {``, `for (;;) performance.mark("m", { detail: "x".repeat(1000) });`},
		"assert":         {`import assert from "assert";`, `let a = {}; for (let i = 0; i < 1e5; i++) a = { a }; for (;;) { try { assert.deepStrictEqual(a, { ...a, b: 1 }); } catch (e) { if (!(e instanceof Error)) throw e; } }`},
		"zlib":           {`import zlib from "zlib";`, `for (;;) zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(1 << 20)));`},
		"a bomb":         {`import zlib from "zlib";`, `let b = Buffer.alloc(1 << 20); for (let i = 0; i < 3; i++) b = zlib.deflateSync(b); let c = Buffer.concat(Array(200).fill(zlib.deflateRawSync(Buffer.alloc(1 << 20), { level: 9 }))); for (;;) { b = zlib.gunzipSync(zlib.gzipSync(Buffer.concat([c, b]))); c = Buffer.concat([c, c]); }`},
		"string_decoder": {`import { StringDecoder } from "string_decoder";`, `const d = new StringDecoder("utf8"); for (;;) d.write(Buffer.alloc(1 << 20));`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := n.call(t, "", test.imports, test.body, host.Request{Limits: host.Limits{CPU: 300 * time.Millisecond, Memory: 64 << 20}})
			limit, ok := errors.AsType[*host.LimitError](err)
			if !ok || limit.Limit != "cpu" && limit.Limit != "memory" && limit.Limit != "stack" {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
		})
	}
}
