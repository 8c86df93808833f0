package toolchain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// Packages may name what is not there, as long as nothing runs it.
func TestAbsent(t *testing.T) {
	const use = `import v from "p"; import { extension } from "stile"; export default extension({ tools: { t: { description: "x", run: () => v() } } });`
	_, chain := newToolchain(t, host.Options{})
	for name, test := range map[string]struct {
		p     string // index.js, CommonJS
		m     string // or index.mjs
		want  string // result
		fails string // of the call
		built string // problem of the build
	}{
		"guarded by try":              {p: `let fs; try { fs = require("node:net") } catch { fs = null } module.exports = () => fs`, want: `null`},
		"guarded by if":               {p: `const fs = typeof process === "undefined_" ? require("node:net") : 1; module.exports = () => fs`, want: `1`},
		"guarded at the top":          {p: `try { require("net").readFileSync("/etc/passwd") } catch (e) { module.exports = () => e.message }`, want: `"\"net\" is built into node and not available here: network access is a capability: use an http binding, such as env.api.fetch(url)"`},
		"the code of a package":       {p: `let gone; try { gone = require("gone") } catch (e) { if (e.code !== "MODULE_NOT_FOUND") throw e } module.exports = () => gone === undefined`, want: `true`},
		"the code of a module":        {p: `let code; try { require("node:net") } catch (e) { code = e.code } module.exports = () => code`, want: `"MODULE_NOT_FOUND"`},
		"the code of an import":       {m: `const code = (e) => e.code; export default () => Promise.all([import("gone").catch(code), import("node:net").catch(code), import("./" + "x.js").catch(code)])`, want: `["ERR_MODULE_NOT_FOUND","ERR_MODULE_NOT_FOUND","ERR_MODULE_NOT_FOUND"]`},
		"both codes of one package":   {p: `module.exports = async () => { const codes = []; try { require("gone") } catch (e) { codes.push(e.code) } try { await import("gone") } catch (e) { codes.push(e.code) } return codes }`, want: `["MODULE_NOT_FOUND","ERR_MODULE_NOT_FOUND"]`},
		"the code of a computed path": {p: `module.exports = (x = "x") => { try { require("./" + x) } catch (e) { return e.code } }`, want: `"MODULE_NOT_FOUND"`},
		"used in a function":          {p: `const { readFileSync: r } = require("net"); module.exports = () => r("/etc/passwd")`, fails: `"net" is built into node and not available here: network access is a capability: use an http binding, such as env.api.fetch(url); the package uses its readFileSync`},
		"deep uses":                   {p: `const { promises } = require("net"); module.exports = () => promises.readFile("x")`, fails: "uses its promises.readFile"},
		"extended":                    {p: `const { Server } = require("net"); class S extends Server {} module.exports = () => new S()`, fails: `"net" is built into node`},
		"used at the top":             {p: `const data = require("net").readFileSync("/etc/passwd"); module.exports = () => data`, built: `network access is a capability`},
		"constructed at the top":      {p: `const a = new (require("https").Agent)(); module.exports = () => a`, built: `network access is a capability`},
		"an instance of it":           {p: `const { Server } = require("net"); module.exports = () => { try { return {} instanceof Server } catch (e) { return "threw" } }`, want: `false`},
		"its instances":               {p: `const fs = require("net"); module.exports = () => fs instanceof Error`, want: `false`},
		"a package that is not there": {p: `module.exports = () => require("gone")`, fails: `package "gone" is not in node_modules`},
		"the same at the top":         {p: `const gone = require("gone"); module.exports = () => gone`, built: `package "gone" is not in node_modules`},
		"a machine's path":            {p: `module.exports = () => require("/etc/passwd")`, fails: `"/etc/passwd" is an absolute path`},
		"a computed path":             {p: `const root = "/etc/"; module.exports = () => require(root + "passwd")`, fails: `require("/etc/passwd"): this name is computed`},
		"a computed relative path":    {p: `module.exports = (x = "x") => require("./" + x + ".js")`, fails: `require("./x.js"): this name is computed`},
		"a computed path, at the top": {p: `const found = require(["/etc", "passwd"].join("/")); module.exports = () => found`, built: `require("/etc/passwd"): this name is computed`},
		"a template":                  {p: "module.exports = (x = 1) => require(`./lang/${x}.js`)", fails: `require("./lang/1.js"): this name is computed`},
		"a computed import":           {m: "const f = async (x) => { try { return await import(x) } catch (e) { return e.message } }; export default () => f('node:' + 'net')", want: `"import(\"node:net\"): this name is computed when the code runs, and only what is written as a string is bundled"`},
		"a computed import, awaited":  {m: "const dir = '/etc/'; const x = await import(`${dir}passwd`); export default () => x", built: `import("/etc/passwd"): this name is computed`},
		"an import that nobody makes": {m: "export default () => 2; export const f = () => import(`./${Math.random()}.js`)", want: `2`},
		"two on a line":               {m: "const a = (x) => import(x), /* import(y) */ b = (x) => import ( x ); export default () => a('é').catch((e) => b(e.message.length)).catch((e) => e.message.slice(0, 11))", want: `"import(\"102"`},
		"after other line ends":       {m: "const s = 1;\r\n\u2028const t = 2;\u2029/*\r*/ const a = (x) => import(x); export default () => a(s + t).catch((e) => e.message.slice(0, 11))", want: `"import(\"3\")"`},
		"a module by import":          {m: `import fs, { readFileSync } from "node:net"; import * as net from "tls"; export default () => [typeof fs, typeof readFileSync, typeof net.connect]`, want: `["function","function","function"]`},
		"a module by import, used":    {m: `import { readFileSync } from "node:net"; export default () => readFileSync("x")`, fails: `the package uses its readFileSync`},
		"a module by import, default": {m: `import fs from "node:net"; export default () => fs.existsSync("x")`, fails: `the package uses its existsSync`},
		"a module, used at the top":   {m: `import { readFileSync } from "node:net"; const x = readFileSync("x"); export default () => x`, built: `the package uses its readFileSync`},
		"a module when it runs":       {m: `export default async () => { try { return await import("node:net") } catch (e) { return e.message.slice(0, 10) } }`, want: `"\"node:net\""`},
		"a URL when it runs":          {m: `export default async () => { try { return await import("https://example.com/x.js") } catch (e) { return e.message.slice(0, 33) } }`, want: `"\"https://example.com/x.js\" is a U"`},
		"a name that is lacking":      {m: `import { Readable, duplexPair } from "node:stream"; import { unwatchFile, F_OK } from "fs"; export default () => [typeof Readable, typeof duplexPair, typeof unwatchFile, F_OK]`, want: `["function","function","function",0]`},
		"such a name, used":           {m: `import { duplexPair } from "node:stream"; export default () => duplexPair()`, fails: `duplexPair of "node:stream" is not available here`},
		"such a name, at the top":     {m: `import { getCiphers } from "crypto"; const all = getCiphers(); export default () => all`, built: `code or a package that does without getCiphers`},
		"such a part, at the top":     {p: `const { getCiphers } = require("crypto"); const all = getCiphers(); module.exports = () => all`, built: `code or a package that does without getCiphers of node:crypto`},
		"all names are copied":        {p: `const of = require("http"), http = {}; for (const key of Object.getOwnPropertyNames(of)) if (key !== "prototype") http[key] = of[key]; class A extends http.Agent {} module.exports = () => [typeof A, http.METHODS.includes("GET"), http.STATUS_CODES[404], http.METHODS === of.METHODS]`, want: `["function",true,"Not Found",true]`},
		"such a class, made":          {p: `const { ...http } = require("http"); class A extends http.Agent {} module.exports = () => new A()`, fails: `the package uses its Agent`},
		"constants":                   {p: `const c = require("constants"); module.exports = () => [c.O_RDWR, c.hasOwnProperty("O_RDONLY"), c.hasOwnProperty("x")]`, want: `[2,true,false]`},
		"a require of its own":        {m: `import { createRequire } from "node:module"; const require = createRequire(import.meta.url); export default () => require("node:path").sep`, want: `"/"`},
		"one by another name":         {m: `import { createRequire } from "module"; const load = createRequire(import.meta.url); export default () => load("./data.json")`, fails: `require("./data.json"): what createRequire loads is not in the bundle`},
		"the version of node":         {p: `const [major] = process.versions.node.split("."); module.exports = () => [major, process.versions.node.match(/0$/)[0], typeof process.versions.node]`, want: `["20","0","undefined"]`},
		"another use of the version":  {p: `const v = process.versions.node.slice(1); module.exports = () => v`, built: `a package for browsers or workers: this one asks which Node.js it runs in`},
		"a runtime that it knows":     {p: `throw new TypeError("Unable to determine current node version")`, built: `a package for browsers or workers`},
		"a stream of the first kind":  {p: `const Stream = require("stream"), util = require("util"); function A() { Stream.call(this); this.readable = true } util.inherits(A, Stream); module.exports = async () => { const a = new A(), seen = []; a.on("data", (x) => seen.push(x)); a.emit("data", 1); a.emit("data", 2); await null; return [seen, Stream.Stream === Stream, typeof Stream.Readable, Stream.getDefaultHighWaterMark(true), util.styleText("blue", "x").length, util.debuglog("x").enabled] }`, want: `[[1,2],true,"function",16,11,false]`},
		"files at the top":            {p: `const text = require("fs").readFileSync("/a"); module.exports = () => text`, built: `a package that reads no files while it is loaded`},
		"a tracing channel":           {m: `import { tracingChannel, channel } from "node:diagnostics_channel"; export default async () => { const seen = [], t = tracingChannel("a"); t.subscribe({ start: (c) => seen.push("start", c.n), end: () => seen.push("end"), asyncEnd: (c) => seen.push(c.result), error: (c) => seen.push(c.error) }); t.traceSync(() => 1, { n: 1 }); await t.tracePromise(async () => 2, { n: 2 }); try { t.traceSync(() => { throw 3 }, { n: 3 }) } catch {} t.traceCallback((done) => done(null, 4), 0, { n: 4 }, null, () => seen.push("called")); return [seen, t.hasSubscribers, channel("tracing:a:start").hasSubscribers, channel("b").hasSubscribers] }`, want: `[["start",1,"end","start",2,"end",2,"start",3,3,"end","start",4,"called",4,"end"],true,true,false]`},
		"Intl at the top":             {p: `const f = new Intl.NumberFormat("en"); module.exports = () => f.format(1)`, built: `top-level code threw ReferenceError: Intl is not defined; write toISOString() and toFixed()`},
		"Intl at the top, guarded":    {p: `let f; try { f = new Intl.NumberFormat("en") } catch { f = { format: String } } module.exports = () => f.format(1)`, want: `"1"`},
		"WebCrypto at the top":        {m: `const key = await crypto.subtle.generateKey("Ed25519", true, ["sign"]); export default () => typeof key`, built: `crypto.subtle.generateKey is not a function; crypto.subtle has: digest; write createHmac`},
		"an error after a caught one": {p: `module.exports = () => { try { new WebSocket("wss://example.com") } catch {} throw new Error("no connection") }`, fails: "no connection"},
		"a package by import":         {m: `import x from "gone"; export default () => x`, built: `package "gone" is not in node_modules`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{"main.ts": {Data: []byte(use)}, "node_modules/p/index.js": {Data: []byte(test.p)}}
			if test.m != "" {
				files["node_modules/p/package.json"] = &fstest.MapFile{Data: []byte(`{"main": "index.mjs"}`)}
				files["node_modules/p/index.mjs"] = &fstest.MapFile{Data: []byte(test.m)}
			}
			component, err := chain.Build(t.Context(), toolchain.Source{FS: files, Entry: "main.ts"})
			if bad, ok := errors.AsType[*toolchain.BuildError](err); ok && test.built != "" {
				if !strings.Contains(err.Error(), test.built) || bad.Problems[0].File == "" {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = component.Close() }()
			if test.built != "" {
				t.Fatal("built")
			}
			out, err := component.Call(t.Context(), "t", json.RawMessage(`{}`), host.Env{})
			got := string(out)
			switch {
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("got %s, %v", got, err)
			case test.fails != "" && strings.Contains(failedStack(err), "absent:"):
				t.Errorf("the stack has a module that stands for another: %s", failedStack(err))
			case test.fails == "" && (err != nil || got != test.want):
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func failedStack(err error) string {
	if guest, ok := errors.AsType[*host.GuestError](err); ok {
		return guest.Failure.Stack
	}
	return ""
}

// The source's own code may try whether a package is there. Everywhere else, a package that is not there is a problem of the build.
func TestAbsentOfTheSource(t *testing.T) {
	_, chain := newToolchain(t, host.Options{})
	const form = `import { extension } from "stile"; export default extension({ tools: { t: { description: "x", run: () => { %s } } } });`
	for name, test := range map[string]struct{ body, want, built string }{
		"a package":       {body: `try { return require("gone") } catch (e) { return [e.code, e.message.slice(0, 14)] }`, want: `["MODULE_NOT_FOUND","package \"gone\""]`},
		"a file":          {body: `try { return require("./gone.js") } catch (e) { return e.code }`, want: `"MODULE_NOT_FOUND"`},
		"a module":        {body: `try { return require("node:net") } catch (e) { return e.code }`, built: `"node:net" is built into node and not available here`},
		"without try":     {body: `return require("gone")`, built: `package "gone" is not in node_modules`},
		"import() in try": {body: `try { return import("gone") } catch (e) { return e.code }`, built: `package "gone" is not in node_modules`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			component, err := chain.Build(t.Context(), toolchain.Source{FS: fstest.MapFS{"main.js": {Data: fmt.Appendf(nil, form, test.body)}}, Entry: "main.js"})
			if test.built != "" {
				if !errors.As(err, new(*toolchain.BuildError)) || !strings.Contains(err.Error(), test.built) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = component.Close() }()
			if out, err := component.Call(t.Context(), "t", json.RawMessage(`{}`), host.Env{}); err != nil || string(out) != test.want {
				t.Errorf("got %s, %v", out, err)
			}
		})
	}
}
