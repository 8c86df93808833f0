package toolchain

import (
	"errors"
	"strings"
	"testing"
)

// A file of a package for browsers that lacks what is imported from it gives way to the file for servers. If that lacks it too, the problem is that file's.
func TestLackingExports(t *testing.T) {
	const manifest = `{"exports": {"browser": "./browser.js", "default": "./server.js"}}`
	for name, test := range map[string]struct {
		files map[string]string
		want  string // in the bundle, or in the error
	}{
		"by the source": {map[string]string{"main.ts": `import { a } from "p"; export default a`, "p/browser.js": `export const b = "browser"`, "p/server.js": `export const a = "server"`}, "server"},
		"by a package":  {map[string]string{"main.ts": `import q from "q"; export default q`, "q/index.js": `import { a } from "p"; export default a`, "p/browser.js": `export default "browser"`, "p/server.js": `export const a = "server"`}, "server"},
		"one after another": {map[string]string{
			"main.ts": `import { a } from "p"; export default a`, "p/browser.js": `export const z = 1`, "p/server.js": `export { b as a } from "q"`, "q/browser.js": `export const z = 1`, "q/server.js": `export { a as b } from "r"`,
			"r/browser.js": `export const z = 1`, "r/server.js": `export const a = "server"`,
		}, "server"},
		"what is there":     {map[string]string{"main.ts": `import { a } from "p"; export default a`, "p/browser.js": `export const a = "browser"`, "p/server.js": `export const a = "server"`}, "browser"},
		"in neither":        {map[string]string{"main.ts": `import { a } from "p"; export default a`, "p/browser.js": `export const z = 1`, "p/server.js": `export const z = 1`}, `No matching export in "node_modules/p/server.js" for import "a"`},
		"for browsers only": {map[string]string{"main.ts": `import { a } from "p"; export default a`, "p/browser.js": `export const z = 1`, "p/package.json": `{"exports": {"browser": "./browser.js"}}`}, `No matching export in "node_modules/p/browser.js" for import "a"`},
	} {
		files := map[string]string{}
		for file, text := range test.files {
			if pkg, _, ok := strings.Cut(file, "/"); ok {
				file = "node_modules/" + file
				if _, own := files["node_modules/"+pkg+"/package.json"]; !own && pkg != "q" || pkg == "q" && test.files["q/index.js"] == "" {
					files["node_modules/"+pkg+"/package.json"] = manifest
				}
			}
			files[file] = text
		}
		for file, text := range test.files { // its own, if it has one
			if strings.HasSuffix(file, "package.json") {
				files["node_modules/"+file] = text
			}
		}
		b, err := bundle(t.Context(), Source{FS: tree(files), Entry: "main.ts"}, nil)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = string(b.code)
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// Top-level code that needs native code is refused with the package that has it.
func TestNativeAtTheTop(t *testing.T) {
	s := newScripts(t)
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"its own":            {map[string]string{"p/index.js": `throw new Error("Cannot find native binding")`, "p/package.json": `{"napi": {"binaryName": "p"}}`}, "the package p needs native code"},
		"by another package": {map[string]string{"p/index.js": `require("build")("x")`, "p/package.json": `{"gypfile": true}`, "build/index.js": `module.exports = (x) => { throw new Error("No native build was found") }`}, "the package p needs native code"},
		"another error":      {map[string]string{"p/index.js": `throw new Error("no ISBN")`, "p/package.json": `{"gypfile": true}`}, "no ISBN"},
	} {
		files := map[string]string{"main.ts": `import p from "p"; import { extension } from "stile"; export default extension({ tools: { t: { description: "x", run: () => p } } })`}
		for file, text := range test.files {
			files["node_modules/"+file] = text
		}
		_, err := s.toolchain.Build(t.Context(), Source{FS: tree(files), Entry: "main.ts"})
		bad, ok := errors.AsType[*BuildError](err)
		if !ok || !strings.Contains(bad.Error(), test.want) || strings.Contains(bad.Error(), "native code") != strings.Contains(test.want, "native code") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A module of node that lacks names is ready before code that imports it, also where other code requires it.
func TestNamedAndRequired(t *testing.T) {
	s := newScripts(t)
	files := map[string]string{
		"main.ts":                     `import { a } from "p"; import q from "q"; import r from "r"; import { Writable } from "node:stream"; import { extension } from "stile"; export default extension({ tools: { t: { description: "x", run: () => typeof new Writable({ write() {} }).on + a.length + q(1) + r() + new Buffer.alloc(2).length } } })`,
		"node_modules/p/index.mjs":    `import { styleText } from "node:util"; export const a = styleText("bold", "x");`,
		"node_modules/p/package.json": `{"main": "index.mjs"}`,
		"node_modules/q/index.js":     `module.exports = (x) => require("util").inspect(x)`,
		"node_modules/r/index.js":     `module.exports = () => typeof require("zlib").createGzip`,
	}
	c, err := s.toolchain.Build(t.Context(), Source{FS: tree(files), Entry: "main.ts"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if result, err := c.Call(t.Context(), "t", []byte("{}"), nil); err != nil || string(result) != `"function101function2"` {
		t.Errorf("got %s, %v", result, err)
	}
}
