package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/turns"
)

// tree makes a source tree from names and contents.
func tree(files map[string]string) fstest.MapFS {
	m := make(fstest.MapFS, len(files))
	for name, content := range files {
		m[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return m
}

func bundleTree(t *testing.T, entry string, files map[string]string) (*bundled, error) {
	t.Helper()
	return bundle(t.Context(), Source{FS: tree(files), Entry: entry}, nil)
}

// mod is a tree with the package "p" in node_modules, its files named without that prefix.
func mod(entry string, p map[string]string) map[string]string {
	files := map[string]string{"main.ts": entry}
	for name, content := range p {
		files["node_modules/p/"+name] = content
	}
	return files
}

// Each source is bundled. The output contains some texts and lacks others.
func TestBundleResolution(t *testing.T) {
	const use = `import v from "p"; export default v;`
	tests := map[string]struct {
		files map[string]string
		has   []string
		lacks []string
	}{
		"relative": {files: map[string]string{
			"main.ts":      `import { a } from "./a"; import { b } from "./lib/b.js"; import { c } from "./dir"; export default [a, b, c] as const;`,
			"a.ts":         `export const a: string = "in a";`,
			"lib/b.ts":     `import { a } from ".."; import { up } from "../a2.mjs"; export const b = "in b" + a + up;`,
			"index.ts":     `export const a = "in index";`,
			"a2.mts":       `export const up = "in a2";`,
			"dir/index.js": `export const c = "in dir";`,
		}, has: []string{"in a", "in b", "in index", "in a2", "in dir"}},
		"exact name before its twin": {files: map[string]string{
			"main.ts": `import v from "./a.js"; export default v;`, "a.js": `export default "js";`, "a.ts": `export default "ts";`,
		}, has: []string{`"js"`}, lacks: []string{`"ts"`}},
		"JSON and text": {files: map[string]string{
			"main.ts": `import j from "./j.json"; import t from "./t.txt"; import h from "./h.html" with { type: "text" }; import k from "./j.json" with { type: "json" }; export default [j, t, h, k];`,
			"j.json":  `{"j": "in j"}`, "t.txt": "in t", "h.html": "in h",
		}, has: []string{"in j", "in t", "in h"}},
		"bytes": {files: map[string]string{
			"main.ts": `import b from "./b.bin" with { type: "bytes" }; export default b;`, "b.bin": "\x00\x01",
		}, has: []string{"AAE="}},
		"dynamic import": {files: map[string]string{
			"main.ts": `export default () => import("./a");`, "a.ts": `export default "in a";`,
		}, has: []string{"in a"}},
		"the SDK": {files: map[string]string{
			"main.ts": `import { extension } from "stile"; export default extension({});`, "node_modules/stile/index.js": "export const extension = 'fake'",
		}, has: []string{`Symbol.for("stile.sdk")`}, lacks: []string{"fake"}},
		"types leave no import": {files: map[string]string{
			"main.ts": `import type { A } from "nowhere"; import { B } from "/etc/passwd"; export default (a: A, b: B) => 1;`,
		}},
		"package main":           {files: mod(use, map[string]string{"package.json": `{"main": "lib/m"}`, "lib/m.js": `module.exports = "in m"`}), has: []string{"in m"}},
		"package main folder":    {files: mod(use, map[string]string{"package.json": `{"main": "lib"}`, "lib/index.js": `module.exports = "in m"`}), has: []string{"in m"}},
		"package without main":   {files: mod(use, map[string]string{"index.js": `module.exports = "in m"`}), has: []string{"in m"}},
		"main that is not there": {files: mod(use, map[string]string{"package.json": `{"main": "gone.js"}`, "index.js": `module.exports = "in m"`}), has: []string{"in m"}},
		"main that leaves":       {files: mod(use, map[string]string{"package.json": `{"main": "../../main.ts"}`, "index.js": `module.exports = "in m"`}), has: []string{"in m"}},
		"module before main":     {files: mod(use, map[string]string{"package.json": `{"main": "m.js", "module": "e.js"}`, "m.js": `module.exports = "m"`, "e.js": `export default "in e"`}), has: []string{"in e"}},
		"main for require": {files: mod(`const v = require("p"); export default v;`,
			map[string]string{"package.json": `{"main": "m.js", "module": "e.js"}`, "m.js": `module.exports = "in m"`, "e.js": `export default "e"`}), has: []string{"in m"}},
		"exports": {files: mod(`import a from "p"; import b from "p/sub"; import c from "p/f/x/y"; export default [a, b, c];`, map[string]string{
			"package.json": `{"name": "p", "main": "no.js", "exports": {".": {"node": "./no.js", "types": "./no.d.ts", "import": "./a.mjs", "default": "./no.js"}, "./sub": ["not/valid", "./b.js"], "./f/*": "./feature/*.js", "./f/internal/*": null}}`,
			"no.js":        "no", "a.mjs": `import d from "p/sub"; export default "in a" + d`, "b.js": `export default "in b"`, "feature/x/y.js": `export default "in c"`,
		}), has: []string{"in a", "in b", "in c"}},
		"exports as one string":      {files: mod(use, map[string]string{"package.json": `{"exports": "./a.js"}`, "a.js": `export default "in a"`}), has: []string{"in a"}},
		"the order of conditions":    {files: mod(use, map[string]string{"package.json": `{"exports": {"default": "./a.js", "import": "./b.js"}}`, "a.js": `export default "in a"`, "b.js": `export default "b"`}), has: []string{"in a"}},
		"nested conditions":          {files: mod(use, map[string]string{"package.json": `{"exports": {"browser": {"require": "./b.js"}, "default": "./a.js"}}`, "a.js": `export default "in a"`, "b.js": "b"}), has: []string{"in a"}},
		"the most specific pattern":  {files: mod(`export { default } from "p/a/b/c"`, map[string]string{"package.json": `{"exports": {"./*": "./1.js", "./a/*": "./2.js", "./a/b*": "./3.js", "./a/*/c": "./4.js"}}`, "3.js": `export default "in 3"`}), has: []string{"in 3"}},
		"scoped package":             {files: map[string]string{"main.ts": `export { default } from "@s/p/x"`, "node_modules/@s/p/x.js": `export default "in x"`}, has: []string{"in x"}},
		"nearest node_modules first": {files: map[string]string{"main.ts": `import "./a/b"; export default 1`, "a/b.ts": `import "q"`, "a/node_modules/q/index.js": `console.log("near")`, "node_modules/q/index.js": `console.log("far")`}, has: []string{"near"}, lacks: []string{"far"}},
		"JavaScript first in packages": {
			files: mod(`export { default } from "p/x"`, map[string]string{"x.js": `export default "js"`, "x.ts": `export default "ts"`}),
			has:   []string{`"js"`},
		},
		"package imports": {files: map[string]string{
			"package.json": `{"name": "me", "exports": "./self.ts", "imports": {"#a": "./a.ts", "#lib/*": "./lib/*.ts", "#p": {"default": "p"}}}`,
			"main.ts":      `import a from "#a"; import b from "#lib/b"; import c from "#p"; import d from "me"; export default [a, b, c, d]`,
			"a.ts":         `export default "in a"`, "lib/b.ts": `export default "in b"`, "node_modules/p/index.js": `export default "in p"`, "self.ts": `export default "in self"`,
		}, has: []string{"in a", "in b", "in p", "in self"}},
		"browser replacements": {files: mod(use, map[string]string{
			"package.json": `{"main": "m.js", "browser": {"fs": false, "./node.js": "./web.js", "ws": "./web.js", "./gone": false}}`,
			"m.js":         `require("fs"); require("./gone"); module.exports = require("./node") + require("ws")`,
			"gone.js":      `console.log("gone")`, "node.js": `module.exports = "node"`, "web.js": `module.exports = "in web"`,
		}), has: []string{"in web"}, lacks: []string{`"node"`, `"gone"`}},
		"installed package before a builtin": {files: map[string]string{"main.ts": `export { default } from "buffer/"; export * from "events"`, "node_modules/buffer/index.js": `export default "in buffer"`, "node_modules/events/index.js": `export const e = "in events"`}, has: []string{"in buffer", "in events"}},
		"require in try":                     {files: mod(use, map[string]string{"index.js": `try { module.exports = require("net") } catch { module.exports = "no net" }`}), has: []string{"no net"}},
		"unused exports": {files: map[string]string{
			"main.ts": `import { a } from "p"; export default a`, "node_modules/p/package.json": `{"sideEffects": ["./effect.js"]}`,
			"node_modules/p/index.js": `export { a } from "./a"; export { b } from "./b"; import "./effect"`,
			"node_modules/p/a.js":     `export const a = "in a"`, "node_modules/p/b.js": `console.log("b is loaded"); export const b = 1`,
			"node_modules/p/effect.js": `console.log("effect")`,
		}, has: []string{"in a", "effect"}, lacks: []string{"b is loaded"}},
		"the author's sideEffects count for nothing": {files: map[string]string{
			"package.json": `{"sideEffects": false}`, "main.ts": `import "./a"; export default 1`, "a.ts": `console.log("in a")`,
		}, has: []string{"in a"}},
		"tsconfig.json counts for nothing": {files: map[string]string{
			"tsconfig.json": `{"compilerOptions": {"paths": {"p": ["./fake.ts"]}, "jsxFactory": "evil", "experimentalDecorators": true}, "extends": "/etc/x.json"}`,
			"main.ts":       `import p from "p"; export default p`, "fake.ts": `export default "fake"`, "node_modules/p/index.js": `export default "in p"`,
		}, has: []string{"in p"}, lacks: []string{"fake"}},
		"development code":               {files: map[string]string{"main.ts": `if (process.env.NODE_ENV !== "production") require("./slow"); export default global.x`, "slow.js": `console.log("slow")`}, has: []string{"globalThis.x"}, lacks: []string{"slow"}},
		"decorators are lowered":         {files: map[string]string{"main.ts": `const d = (...a) => {}; @d class A { @d m() {} } export default A`}, lacks: []string{"@d"}},
		"using and top-level await stay": {files: map[string]string{"main.ts": `using x = null; await 1; export default x`}, has: []string{"using ", "await 1"}},
		"legal comments go":              {files: map[string]string{"main.ts": "/*! legal */ export default 1 //! legal"}, lacks: []string{"legal"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := bundleTree(t, "main.ts", test.files)
			if err != nil {
				t.Fatal(err)
			}
			alike(t, Source{FS: tree(test.files), Entry: "main.ts"}, out, nil)
			for _, s := range test.has {
				if !strings.Contains(string(out.code), s) {
					t.Errorf("lacks %q:\n%s", s, out.code)
				}
			}
			for _, s := range test.lacks {
				if strings.Contains(string(out.code), s) {
					t.Errorf("has %q:\n%s", s, out.code)
				}
			}
		})
	}
}

// Each line of code is refused with a problem at its import.
func TestBundleRefusals(t *testing.T) {
	tests := map[string]struct{ code, want string }{
		"parent":                {`import x from "../secret.json"`, "leaves the source tree"},
		"parent, roundabout":    {`import x from "./a/../../secret.json"`, "leaves the source tree"},
		"parent alone":          {`import x from ".."`, "leaves the source tree"},
		"absolute":              {`import x from "/etc/passwd"`, "absolute path"},
		"absolute text":         {`import x from "/etc/passwd" with { type: "text" }`, "absolute path"},
		"protocol relative":     {`import x from "//example.com/x.js"`, "URL"},
		"file URL":              {`import x from "file:///etc/passwd"`, "URL"},
		"http URL":              {`import x from "http://example.com/x.js"`, "URL"},
		"https URL in require":  {`try { require("https://example.com/x.js") } catch {}`, "URL"},
		"data URL":              {`import x from "data:text/javascript,export default 1"`, "URL"},
		"data URL, broken line": {`import x from "data:text/javascript,\nexport default 1"`, "no file name has"},
		"drive":                 {`import x from "C:\\secret.json"`, "drive"},
		"drive with slash":      {`import x from "c:/secret.json"`, "drive"},
		"backslash":             {`import x from ".\\..\\secret.json"`, "backslash"},
		"UNC":                   {`import x from "\\\\host\\share"`, "backslash"},
		"NUL":                   {`import x from "./a\0.ts"`, "no file name has"},
		"line break":            {`import x from "./a\n"`, "no file name has"},
		"lone surrogate":        {`import x from "./\ud800"`, "no file name has"},
		"empty":                 {`import x from ""`, "empty name"},
		"long":                  {`import x from "./` + strings.Repeat("a/", 1000) + `"`, "1024 is the limit"},
		"link out":              {`import x from "./link.json"`, "is a link out of the folder of the extension"},
		"link out, folder":      {`import x from "./linked/secret.json"`, "is a link out of the folder of the extension"},
		"link out, package":     {`import x from "linked"`, "is a link out of the folder of the extension"},
		"net":                   {`import x from "net"`, "http binding"},
		"node:net":              {`import x from "node:net"`, "http binding"},
		"dns/promises":          {`import x from "dns/promises"`, "http binding"},
		"node:http, required":   {`const h = require("node:http")`, "http binding"},
		"child_process":         {`await import("child_process")`, "starts no processes"},
		"tls, required":         {`const tls = require("tls")`, "http binding"},
		"node:invented":         {`import x from "node:invented"`, "does not run in node"},
		"part of the SDK":       {`import x from "stile/x"`, "exported by"},
		"unknown in the SDK":    {`import { x } from "stile"; x()`, "No matching export"},
		"unknown file":          {`import x from "./nowhere"`, "does not exist"},
		"unknown package":       {`import x from "nowhere"`, "not in node_modules: npm install puts it there"},
		"unknown, dynamic":      {`try { await import("./nowhere") } catch {}`, "does not exist"},
		"no package name":       {`import x from "@scope"`, "not the name of a package"},
		"hidden package":        {`import x from ".hidden"`, "not the name of a package"},
		"not exported":          {`import x from "p/hidden.js"`, "does not export"},
		"exported as null":      {`import x from "p/null/x"`, "but not under the conditions"},
		"exports, many stars":   {`import x from "stars/` + strings.Repeat("a", 900) + `"`, "not a path in the package"},
		"exports, many targets": {`import x from "targets"`, "no more than 1000 are looked at"},
		"exports leave":         {`import x from "p/leave"`, "not a path in the package"},
		"pattern leaves":        {`import x from "p/any/../../main.ts"`, "not a path in the package"},
		"pattern into modules":  {`import x from "p/any/node_modules/q/x.js"`, "not a path in the package"},
		"target is absolute":    {`import x from "p/absolute"`, "not a path in the package"},
		"target is missing":     {`import x from "p/missing"`, "does not exist"},
		"subpath leaves":        {`import x from "q/../../secret"`, "leaves its package"},
		"no imports":            {`import x from "#x"`, "no package.json"},
		"broken package":        {`import x from "broken"`, "not JSON"},
		"deep package":          {`import x from "deep"`, "nested deeper"},
		"huge package":          {`import x from "huge"`, "larger than"},
		"folder":                {`import x from "./folder"`, "does not exist"},
		"unknown kind":          {`import x from "./style.css"`, "not TypeScript"},
		"unknown attribute":     {`import x from "./a.json" with { type: "css" }`, "cannot be imported with"},
		"computed import":       {`const x = "a"; await import("./" + x)`, "written as a string"},
		"computed, template":    {"const x = 'a'; await import(`../../../${x}/passwd`)", "written as a string"},
		"computed, comment":     {"const x = 'a'; await import /* ( */ (`../../../${x}`)", "written as a string"},
		"computed, odd space":   {"const x = 'a'; await import\u00a0(`./${x}`)", "written as a string"},
		"computed require":      {`const x = "a"; require("../" + x)`, "written as a string"},
		"computed, escaped":     {`const x = "a"; requ\u0069re("../" + x)`, "written as a string"},
		"computed, by enum":     {`enum E { A = "./" }; const x = "a"; require(E.A + x)`, "written as a string"},
		"syntax":                {`const x = ;`, "Unexpected"},
	}
	outside := t.TempDir()
	dir := filepath.Join(outside, "tree")
	files := map[string]string{
		"../secret.json": `{"secret": true}`, "../pkg/index.js": "export default 1", "a.ts": "export default 1", "a.json": "{}", "style.css": "", "folder/x": "",
		"node_modules/p/package.json": `{"exports": {".": "./x.js", "./null/*": null, "./leave": "./../../main.ts", "./any/*": "./*", "./absolute": "/etc/passwd", "./missing": "./gone.js"}}`,
		"node_modules/p/hidden.js":    "", "node_modules/p/node_modules/q/x.js": "", "node_modules/q/index.js": "",
		"node_modules/broken/package.json": `{"main": `, "node_modules/deep/package.json": strings.Repeat(`{"exports":`, 10_000),
		"node_modules/stars/package.json":   `{"exports": {"./*": "./` + strings.Repeat("*/", 500) + `x.js"}}`,
		"node_modules/targets/package.json": `{"exports": [` + strings.Repeat(`["no"],`, 2000) + `"./x.js"]}`, "node_modules/targets/x.js": "",
		"node_modules/huge/package.json": `{"main": "` + strings.Repeat("x", 1<<20) + `"}`,
	}
	for name, content := range files {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link.json": "../secret.json", "linked": "..", "node_modules/linked": "../../pkg"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "main.ts")
			if err := os.WriteFile(file, []byte("export const ok = 1;\n"+test.code+"; console.log(typeof x);"), 0o600); err != nil {
				t.Fatal(err)
			}
			source, closer, err := Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = closer.Close() }()
			_, err = bundle(t.Context(), source, nil)
			alike(t, source, nil, err)
			var failure *BuildError
			if !errors.As(err, &failure) {
				t.Fatalf("got %v", err)
			}
			p := failure.Problems[0]
			if !strings.Contains(p.Text, test.want) || p.File != "main.ts" || p.Line != 2 || p.Column < 1 || p.Snippet == "" {
				t.Fatalf("want %q, got %+v", test.want, p)
			}
			if strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "source:") || strings.Contains(err.Error(), "bundle.go") {
				t.Fatalf("the error shows what it should not: %v", err)
			}
		})
	}
}

func TestBundleEntry(t *testing.T) {
	files := map[string]string{"a.json": "{}", "dir/x.ts": "export default 1", "a*b.ts": "export default 1", "evil\x1b[2J.ts": "x y"}
	for entry, want := range map[string]string{
		"gone.ts": "cannot be read", "../a.ts": "not a path", "/a.ts": "not a path", "": "not a path", "a.json": "neither TypeScript",
		"dir": "neither TypeScript", "evil\x1b[2J.ts": "Expected \";\"",
	} {
		_, err := bundleTree(t, entry, files)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: got %v, want %q", entry, err, want)
		}
	}
	for _, entry := range []string{"dir/x.ts", "a*b.ts"} {
		if _, err := bundleTree(t, entry, files); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.ts")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"gone.ts", "gone/x.ts", "link.ts", "."} {
		if _, c, err := Open(filepath.Join(dir, file)); err == nil {
			_ = c.Close()
			t.Errorf("%s was opened", file)
		}
	}
}

// A source map named by the author is not read, neither from the disk nor from the tree.
func TestBundleReadsNoSourceMap(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.map")
	content := `{"version": 3, "sources": ["stolen.ts"], "sourcesContent": ["secret"], "mappings": "AAAA", "names": []}`
	if err := os.WriteFile(secret, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, comment := range []string{
		"//# sourceMappingURL=file://" + secret, "/*# sourceMappingURL=file://" + secret + " */", "//@ sourceMappingURL=" + secret,
		"//# sourceMappingURL=data:application/json," + strings.ReplaceAll(content, " ", ""), "//# sourceMappingURL=main.ts.map",
	} {
		out, err := bundleTree(t, "main.ts", map[string]string{"main.ts": "export default [1,\n2]\n" + comment, "main.ts.map": content})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out.sourceMap), "stolen") || !strings.Contains(string(out.sourceMap), `"sources":["main.ts"]`) {
			t.Errorf("%s: %s", comment, out.sourceMap)
		}
	}
}

func TestBundleSourceMap(t *testing.T) {
	out, err := bundleTree(t, "src/main.ts", map[string]string{
		"src/main.ts":             "import { fail } from \"p\";\nimport type { X } from \"./x\";\n\nexport default (x: X) => {\n  fail(\"ß\");\n};\n",
		"node_modules/p/index.js": "export function fail(m) {\n  throw new Error(m);\n}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{"new Error": "[    at (node_modules/p/index.js:2:9)]", `fail("`: "[    at (src/main.ts:5:3)]"} {
		at := strings.Index(string(out.code), what)
		line := strings.Count(string(out.code[:at]), "\n")
		column := at - strings.LastIndex(string(out.code[:at]), "\n") - 1
		frames := host.MapStack(out.sourceMap, fmt.Sprintf("    at extension.js:%d:%d", line+1, column+1))
		if got := fmt.Sprint(frames); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	if strings.Contains(string(out.sourceMap), "sourcesContent") || strings.Contains(string(out.code), "sourceMappingURL") {
		t.Error("the source map holds sources, or the code names it")
	}
	var paths []string
	for _, f := range out.files {
		paths = append(paths, f.path)
	}
	if got := strings.Join(paths, " "); got != "node_modules/p/index.js src/main.ts" {
		t.Errorf("files: %s", got)
	}
}

func TestBundleIsDeterministic(t *testing.T) {
	files := map[string]string{"main.ts": ""}
	for i := range 50 {
		files["main.ts"] += fmt.Sprintf("import { x as x%d } from './m%d'; export { x%d };\n", i, i, i)
		files[fmt.Sprintf("m%d.ts", i)] = fmt.Sprintf("import { x as y } from './m%d'; const helper = () => y; export const x = helper; console.log(%d)", (i+7)%50, i)
	}
	first, err := bundleTree(t, "main.ts", files)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := bundleTree(t, "main.ts", files)
		if err != nil {
			t.Fatal(err)
		}
		if string(again.code) != string(first.code) || string(again.sourceMap) != string(first.sourceMap) || fmt.Sprint(again.files) != fmt.Sprint(first.files) {
			t.Fatal("two builds of one source differ")
		}
	}
}

func TestUses(t *testing.T) {
	out, err := bundleTree(t, "main.ts", map[string]string{"main.ts": `export default (env: any) => [env.notes.read(), env["other"], env.größe, notUsedType as string]; declare const notUsedType: unknown; type Gone = 1;`})
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]bool{"read": true, "notes": true, "other": true, "rea": false, "Gone": false} {
		if out.Uses(word) != want {
			t.Errorf("Uses(%q) is %v", word, !want)
		}
	}
}

func TestBundleLimits(t *testing.T) {
	many := map[string]string{"main.ts": ""}
	for i := range 4001 {
		many["main.ts"] += fmt.Sprintf("import './f%d.json';\n", i)
		many[fmt.Sprintf("f%d.json", i)] = "1"
	}
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"one large file": {map[string]string{"main.ts": `import t from "./t.txt"; export default t`, "t.txt": strings.Repeat("x", 8<<20+1)}, "larger than 8192 KiB"},
		"two large files": {map[string]string{
			"main.ts": `import t from "./t.txt"; import u from "./u.txt"; export default [t, u]`,
			"t.txt":   strings.Repeat("x", 5<<20), "u.txt": strings.Repeat("x", 5<<20),
		}, "larger than 8 MiB"},
		"many targets": {mod(`import v from "p"; export default v`, map[string]string{
			"package.json": `{"exports": ["x"` + strings.Repeat(`,"x"`, 200_000) + `]}`,
		}), "the target is not a path in the package"},
		"many files":    {many, "more than 4000 files"},
		"many problems": {map[string]string{"main.ts": strings.Repeat("x y;\n", 100) + strings.Repeat("import './a';\n", 100)}, "Expected"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := bundleTree(t, "main.ts", test.files)
			var failure *BuildError
			if !errors.As(err, &failure) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %.300v", err)
			}
			if n := len(failure.Problems); n > 20 {
				t.Fatalf("%d problems", n)
			}
		})
	}
}

func TestBundleCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := bundle(ctx, Source{FS: tree(map[string]string{"main.ts": "export default 1"}), Entry: "main.ts"}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// stuck is a source tree whose files do not open until it is released.
type stuck struct {
	fs.FS
	asked, released chan struct{}
}

func (s stuck) Open(name string) (fs.File, error) {
	close(s.asked)
	<-s.released
	return s.FS.Open(name)
}

func TestBundleIsAbandoned(t *testing.T) {
	source := stuck{tree(map[string]string{"main.ts": "export default 1"}), make(chan struct{}), make(chan struct{})}
	defer close(source.released)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-source.asked
		cancel()
	}()
	if _, err := bundle(ctx, Source{FS: source, Entry: "main.ts"}, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// A cancelled build counts until its work has ended. Builds that wait for it can be cancelled too.
func TestBuildsAreBounded(t *testing.T) {
	plain := Source{FS: tree(map[string]string{"main.ts": "export default 1"}), Entry: "main.ts"}
	released := make(chan struct{})
	for range maxBuilds {
		source := stuck{plain.FS, make(chan struct{}), released}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-source.asked
			cancel()
		}()
		if _, err := bundle(ctx, Source{FS: source, Entry: "main.ts"}, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var busy *BusyError
	if _, err := bundle(ctx, plain, nil); !errors.As(err, &busy) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(released)
	if _, err := bundle(t.Context(), plain, nil); err != nil {
		t.Error(err)
	}
}

// TestBuildsTakeTurns has one owner request many builds. The next slot goes to another owner's build and code.
func TestBuildsTakeTurns(t *testing.T) {
	const many = 20
	greedy, other := turns.For(t.Context(), "agent:greedy"), turns.For(t.Context(), "agent:other")
	release := make(chan struct{})
	var ended sync.WaitGroup
	for range maxBuilds + many {
		ended.Go(func() {
			if err := waitForBuilds(greedy); err != nil {
				t.Error(err)
			}
			<-release
			building.Give()
		})
	}
	waiting := func(n int) {
		for building.Waiting() != n {
			runtime.Gosched()
		}
	}
	waiting(many)
	for i, build := range []func() error{
		func() error {
			_, err := bundle(other, Source{FS: tree(map[string]string{"main.ts": "export default 1"}), Entry: "main.ts"}, nil)
			return err
		},
		func() error {
			_, err := Program{Name: "code.ts", Text: "1"}.transform(other, api.SourceMapNone, nil)
			return err
		},
	} {
		done := make(chan error, 1)
		go func() { done <- build() }()
		waiting(many - i + 1)
		release <- struct{}{} // one of many ends
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(2 * time.Minute): // it waits for all of them
			t.Error("another of many was next")
			close(release)
			ended.Wait()
			return
		}
		waiting(many - i - 1)
	}
	close(release)
	ended.Wait()
}

// No message refers to text that the bundler adds: an error at the end of a file refers to the end of the author's text.
func TestUnexpectedEnd(t *testing.T) {
	for text, want := range map[string]string{
		"export default {\n": "main.ts:2:1: Expected identifier but found end of file", "export default {": "main.ts:1:1: Expected identifier but found end of file",
		"export default {\n//# sourceMappingURL=stile:no\n": "main.ts:3:1: Expected identifier but found end of file",
		"export default `a\n":                               "main.ts:2:1: Unterminated string literal",
		"export default [\n  1;\n]":                         "main.ts:2:4: Expected \"]\" but found \";\"\n    1;\n     ^",
	} {
		if _, err := bundleTree(t, "main.ts", map[string]string{"main.ts": text}); err == nil || err.Error() != want {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestBuildErrorText(t *testing.T) {
	_, err := bundleTree(t, "main.ts", map[string]string{"main.ts": "// ä\n\timport größe from './g\u202er';\x1b[31m\nexport default größe"})
	if err == nil {
		t.Fatal("built")
	}
	if got := err.Error(); strings.ContainsAny(got, "\x1b\u202e\t") || !strings.HasPrefix(got, "main.ts:2:") {
		t.Fatalf("got %q", got)
	}
	e := &BuildError{[]Problem{{File: "a.ts", Line: 1, Column: 3, Text: "bad", Snippet: "x y\n  ^"}, {Text: "worse"}}}
	if got, want := e.Error(), "a.ts:1:3: bad\n    x y\n      ^\nworse"; got != want {
		t.Fatalf("got %q", got)
	}
	if text, err := json.Marshal(e.Problems[1]); err != nil || string(text) != `{"text":"worse"}` {
		t.Fatal(string(text), err)
	}
}

func FuzzPackage(f *testing.F) {
	for _, s := range []string{
		`{"main": "a", "exports": {".": "./a.js"}}`, `{"exports": {"./*": "./*"}}`, `{"exports": ["./a", {"import": "./b"}]}`, `{"browser": {"./x": false}}`,
		`{"imports": {"#a": "./a.js", "#*": "p/*"}}`, `{"sideEffects": ["**/{a,b}*"]}`,
	} {
		f.Add(s, "p/a")
		f.Add(s, "./x/../y")
	}
	f.Fuzz(func(t *testing.T, text, specifier string) {
		r := resolver{packages: make(map[string]*packageJSON), pages: make(map[string]string), files: tree(map[string]string{
			"main.ts": "", "package.json": text, "node_modules/p/package.json": text, "node_modules/p/a.js": "", "node_modules/p/node_modules/q/x.js": "", "sub/b.ts": "",
		})}
		r.read = func(name string, _ int64) ([]byte, error) { return []byte(text), nil }
		for _, importer := range []string{"main.ts", "sub/b.ts", "node_modules/p/a.js"} {
			for _, require := range []bool{false, true} {
				found, err := r.resolve(specifier, importer, require)
				if err != nil || found.empty {
					continue
				}
				if kind, err := r.stat(found.path); err != nil || kind != isFile {
					t.Fatalf("%q from %s is %q: %v, %v", specifier, importer, found.path, kind, err)
				}
			}
		}
	})
}
