package toolchain

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Node's modules are replaced by packages.
func TestShims(t *testing.T) {
	files := map[string]string{
		"node_modules/path-browserify/package.json": `{"main": "main.js"}`, "node_modules/path-browserify/main.js": `module.exports = "a path"`,
		"node_modules/events/index.js": `module.exports = "events"`, "node_modules/path-browserify/posix.js": `module.exports = "no"`,
		"node_modules/p/package.json": `{"dependencies": {"events": "1"}}`, "node_modules/p/index.js": `module.exports = require("events") + require("node:path")`,
		"node_modules/p/node_modules/events/index.js": `module.exports = "own events"`,
		"node_modules/q/package.json":                 `{"browser": {"util": false, "path": "./mine.js"}}`, "node_modules/q/mine.js": `module.exports = "mine"`,
		"node_modules/q/index.js": `require("util"); module.exports = require("path")`,
	}
	for name, test := range map[string]struct {
		code, want string
		has        []string
		builtins   []string
	}{
		"with prefix":             {`import v from "node:path"; export default v`, "", []string{"a path"}, []string{"path"}},
		"without":                 {`import v from "path"; export default v`, "", []string{"a path"}, []string{"path"}},
		"posix":                   {`import v from "path/posix"; export default v`, "", []string{"a path"}, []string{"path/posix"}},
		"another part":            {`import v from "path/win32"; export default v`, "without a subpath: only that has a substitute on npm", nil, []string{}},
		"installed under a name":  {`import v from "events"; export default v`, "", []string{`"events"`}, []string{"events"}},
		"a package's own":         {`import v from "p"; export default v`, "", []string{"own events", "a path"}, []string{"path"}},
		"a package does without":  {`import v from "q"; export default v`, "", []string{"mine"}, []string{}},
		"not installed":           {`import v from "node:util"; export default v`, `the npm package "util" stands in for it and is not in node_modules`, nil, []string{"util"}},
		"not installed, no sign":  {`import v from "util"; export default v`, `the npm package "util"`, nil, []string{"util"}},
		"not installed, in a try": {`try { require("util") } catch {} export default 1`, "", nil, []string{"util"}},
		"a capability":            {`import v from "node:fs"; export default v`, "workspace binding", nil, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			files["main.ts"] = test.code
			out, err := bundleTree(t, "main.ts", files)
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
			found, err := FindImports(t.Context(), Source{FS: tree(files), Entry: "main.ts"}, nil)
			if err != nil || !reflect.DeepEqual(append([]string{}, found.Builtins...), test.builtins) {
				t.Errorf("found %v, want %q: %v", found, test.builtins, err)
			}
		})
	}
}

func TestFindImports(t *testing.T) {
	files := map[string]string{
		"main.ts": `import type { A } from "types-only"; import { b } from "./b"; import z from "zod/v4"; import "@scope/name/deep/path.js"; import { extension } from "stile";
import { unused } from "unused"; import "node:path"; export { c } from "lib"; import fs from "fs/promises";
import "#own"; export default async () => [b, z, extension, fs, (await import("dynamic")), require("required")];`,
		"b.ts":         `import jsx from "./c"; export const b = jsx; try { require("tried") } catch {}`,
		"c.tsx":        `export default <p/>`,
		"package.json": `{"imports": {"#own": "./own.js"}}`, "own.js": `import "mine"`,
		"node_modules/lib/index.js": `import "not-the-author's"; export const c = require("buffer"); require("node:net")`,
	}
	found, err := FindImports(t.Context(), Source{FS: tree(files), Entry: "main.ts"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Imports{
		Packages: []string{"@scope/name/deep/path.js", "dynamic", "fs/promises", "lib", "mine", "node:path", "react/jsx-runtime", "required", "tried", "zod/v4"},
		Builtins: []string{"buffer", "path"},
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("got %+v", found)
	}
	for code, want := range map[string]string{
		`import "zod"; import "/etc/passwd"`: "absolute path", `import "zod"; import "../x"`: "leaves the source tree", `import "zod"; import "./gone"`: "does not exist",
		`import "https://example.com/x.js"`: "URL", `import "zod"; let x = `: "Unexpected end", `const x = "a"; import(x)`: "written as a string",
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

// The parts of process that packages use without checking that there is one.
func TestProcess(t *testing.T) {
	out, err := bundleTree(t, "main.ts", map[string]string{"main.ts": `export default [process.env.NODE_DEBUG, process.platform, typeof process, process.cwd()]`})
	if err != nil {
		t.Fatal(err)
	}
	code := string(out.code)
	if !strings.Contains(code, `"browser",typeof process,`) || !strings.Contains(code, `=>"/"`) || strings.Contains(code, "queueMicrotask") {
		t.Errorf("got %s", code)
	}
	if len(out.files) != 1 {
		t.Errorf("files %v", out.files)
	}
	out, err = bundleTree(t, "main.ts", map[string]string{"main.ts": `process.nextTick(f, 1); const f = () => 1`})
	if err != nil || !strings.Contains(string(out.code), "queueMicrotask") || strings.Contains(string(out.code), "process.nextTick") {
		t.Errorf("got %s, %v", out.code, err)
	}
	if out, err = bundleTree(t, "main.ts", map[string]string{"main.ts": `export default 1`}); err != nil || strings.Contains(string(out.code), "cwd") {
		t.Errorf("got %s, %v", out.code, err)
	}
}
