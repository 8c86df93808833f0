package toolchain

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile"
	"github.com/stilehost/stile/internal/absent"
)

// fakeNode has a short path.js, and our own modules.
func fakeNode() (fs.FS, error) {
	return nodeFiles(fstest.MapFS{nodeLibs + "nodelibs/browser/path.js": {Data: []byte(`export default { join: "a path" }`)}}), nil
}

// Node's modules are replaced by those that come with the engine, unless a package means one of its own dependencies.
func TestNodeModules(t *testing.T) {
	files := map[string]string{
		"node_modules/p/package.json": `{"dependencies": {"events": "1"}}`, "node_modules/p/index.js": `module.exports = require("events") + require("node:path").join`,
		"node_modules/p/node_modules/events/index.js": `module.exports = "own events"`,
		"node_modules/q/package.json":                 `{"browser": {"util": false, "path": "./mine.js"}}`, "node_modules/q/mine.js": `module.exports = "mine"`,
		"node_modules/q/index.js":              `require("util"); module.exports = require("path")`,
		"node:path.ts":                         "export default `a file`",
		"node_modules/string_decoder/index.js": `module.exports = "installed"`,
	}
	for name, test := range map[string]struct {
		code, want string
		has        []string
	}{
		"with prefix":            {`import v from "node:path"; export default v`, "", []string{"a path"}},
		"without":                {`import v from "path"; export default v`, "", []string{"a path"}},
		"by name":                {`import { join } from "path"; export default join`, "", []string{"a path"}},
		"required":               {`export default require("path").join`, "", []string{"a path", ".default"}},
		"posix":                  {`import v from "path/posix"; export default v`, "", []string{"a path"}},
		"another part":           {`import v from "path/win32"; export default v`, "paths are separated by /", nil},
		"no such part":           {`import v from "node:path/mac"; export default v`, "does not run in node", nil},
		"no such name":           {`import { nothing } from "node:path"; export default nothing`, "nothing", nil},
		"installed":              {`import v from "string_decoder"; export default v`, "", []string{"installed"}},
		"a package with a slash": {`import v from "string_decoder/"; export default v`, "", []string{"installed"}},
		"a package's own":        {`import v from "p"; export default v`, "", []string{"own events", "a path"}},
		"a package does without": {`import v from "q"; export default v`, "", []string{"mine"}},
		"a mark":                 {`import v from "\0path"; export default v`, "no file name has", nil},
		"a file":                 {`import v from "./node:path"; export default v`, "", []string{"a file"}},
		"a capability":           {`import v from "node:http"; export default v`, "use an http binding", nil},
		"processes":              {`import { exec } from "node:child_process"; export default exec`, `"node:child_process" is built into node and not available here: an extension starts no processes`, nil},
		"without prefix":         {`export default require("child_process")`, `"sandbox": {"image": "host"}`, nil},
		"unknown":                {`import v from "node:unknown"; export default v`, "an extension does not run in node", nil},
	} {
		t.Run(name, func(t *testing.T) {
			files["main.ts"] = test.code
			out, err := bundle(t.Context(), Source{FS: tree(files), Entry: "main.ts", node: fakeNode}, nil)
			if test.want != "" {
				if _, ok := errors.AsType[*BuildError](err); !ok || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			} else if err != nil {
				t.Error(err)
			}
			for _, s := range test.has {
				if out != nil && !strings.Contains(string(out.code), s) {
					t.Errorf("lacks %q:\n%s", s, out.code)
				}
			}
			if out != nil && slices.ContainsFunc(out.files, func(f sourceFile) bool {
				return strings.Contains(f.path, "jspm") || strings.Contains(f.path, "toolchain")
			}) {
				t.Errorf("files %v", out.files)
			}
		})
	}
}

// Every module that stands in for one of node's can be bundled, by import and by require, and imports nothing else.
func TestEveryNodeModule(t *testing.T) {
	modules := testEngine(t).modules
	node := func() (fs.FS, error) { return nodeFiles(modules), nil }
	for name := range nodeModules {
		if _, missing := absent.Module(name); missing {
			t.Errorf("%s is said to be missing", name)
		}
		for _, code := range []string{"import * as m from %q; export default m", "export default require(%q)"} {
			source := Source{FS: tree(map[string]string{"main.ts": fmt.Sprintf(code, nodePrefix+name)}), Entry: "main.ts", node: node}
			b, err := bundle(t.Context(), source, nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if text := string(b.code); strings.Contains(text, "var __require=") || strings.Contains(text, "from\"") {
				t.Errorf("%s imports more", name)
			}
		}
	}
	own, err := fs.Glob(stile.TypeScript(), ownNode+"*.ts")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle(t.Context(), Source{FS: tree(map[string]string{"main.ts": allNodeModules()}), Entry: "main.ts", node: node}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range own {
		if !strings.Contains(string(b.sourceMap), name) && name != nodeInstead[nodeLibs+"nodelibs/browser/chunk-DEMDiNwt.js"] { // has no code
			t.Errorf("nothing leads to %s", name)
		}
	}
}

// allNodeModules is code that imports all modules that stand in for node's.
func allNodeModules() string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(nodeModules)) {
		fmt.Fprintf(&b, "export * as m%d from %q;\n", i, nodePrefix+name)
	}
	return b.String()
}

func TestFindImports(t *testing.T) {
	files := map[string]string{
		"main.ts": `import type { A } from "types-only"; import { b } from "./b"; import z from "zod/v4"; import "@scope/name/deep/path.js"; import { extension } from "stile";
import { unused } from "unused"; import "node:path"; export { c } from "lib"; import fs from "fs/promises";
import "#own"; export default async () => [b, z, extension, fs, (await import("dynamic")), require("required")];`,
		"b.ts":         `import jsx from "./c"; export const b = jsx; try { require("tried") } catch {}`,
		"c.tsx":        `export default <p/>`,
		"package.json": `{"imports": {"#own": "./own.js"}}`, "own.js": `import "mine"`,
		"node_modules/lib/index.js": `import "not-the-author's"; export const c = require("buffer"); try { require("net") } catch {}`,
	}
	found, err := FindImports(t.Context(), Source{FS: tree(files), Entry: "main.ts"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Imports{
		Packages: []string{"@scope/name/deep/path.js", "dynamic", "lib", "mine", "react/jsx-runtime", "required", "tried", "zod/v4"},
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("got %+v", found)
	}
	for code, want := range map[string]string{
		`import "zod"; import "/etc/passwd"`: "absolute path", `import "zod"; import "../x"`: "leaves the source tree", `import "zod"; import "./gone"`: "does not exist",
		`import "https://example.com/x.js"`: "URL", `import "zod"; let x = `: "Unexpected end", `const x = "a"; import(x)`: "written as a string", `import "zod"; import "node:net"`: "use an http binding",
	} {
		found, err := FindImports(t.Context(), Source{FS: tree(map[string]string{"main.ts": code}), Entry: "main.ts"}, nil)
		if _, ok := errors.AsType[*BuildError](err); !ok || !strings.Contains(err.Error(), want) || len(found.Packages) > 1 {
			t.Errorf("%s: got %+v, %v", code, found, err)
		}
	}
	if _, err := FindImports(t.Context(), Source{FS: tree(nil), Entry: "../x.ts"}, nil); err == nil {
		t.Error("an entry outside was read")
	}
}

// What code asks of an environment is known at build time, and shows nothing of the machine.
func TestDefines(t *testing.T) {
	out, err := bundleTree(t, "main.ts", map[string]string{"main.ts": `export default [process.env.NODE_DEBUG, process.platform, import.meta.url, __dirname, import.meta.filename, global]`})
	if err != nil {
		t.Fatal(err)
	}
	if want := `[void 0,"browser","file:///index.js","/","/index.js",globalThis]`; !strings.Contains(string(out.code), want) {
		t.Errorf("got %s", out.code)
	}
	if out.Uses("process") || out.Uses("global") {
		t.Error("it names what it does not use")
	}
}
