package toolchain

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// write makes files, and links for contents like "-> target".
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = errors.Join(err, os.Symlink(target, name))
		} else {
			err = errors.Join(err, os.WriteFile(name, []byte(content), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bundleFile bundles a file on disk through Open.
func bundleFile(t *testing.T, file string, keep ...string) (*bundled, error) {
	t.Helper()
	source, closer, err := Open(file, keep...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closer.Close() }()
	return bundle(t.Context(), source, nil)
}

// refuses asserts that a file is not bundled, and that the error contains some texts and no secret.
func refuses(t *testing.T, file string, keep []string, says ...string) {
	t.Helper()
	_, err := bundleFile(t, file, keep...)
	if _, ok := errors.AsType[*BuildError](err); !ok {
		t.Fatalf("got %v", err)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("want %q in: %v", text, err)
		}
	}
	if strings.Contains(err.Error(), "swordfish") {
		t.Errorf("the error holds a secret: %v", err)
	}
}

// Hidden files cannot be imported, under any name.
func TestHiddenFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		".ssh/id_rsa": "swordfish", ".env": "swordfish", ".lib/index.ts": `export default "swordfish"`, "a/.b/c.txt": "swordfish",
		".config/package.json": `{"main": "x.js"}`, ".git/node_modules/p/index.js": `export default "swordfish"`, "...": "swordfish",
		"key.txt": "-> .ssh/id_rsa", "folder": "-> .ssh", "twice.txt": "-> key.txt", "a/up": "-> ../.ssh", "lib": "-> .lib",
		"node_modules/out/index.js": `export { default } from "../../.lib"`, "node_modules/link": "-> ../.lib",
		"main-field/package.json": `{"main": "../.lib/index.ts"}`, "inner/package.json": `{"main": ".x/index.js"}`, "inner/.x/index.js": `export default "swordfish"`,
	})
	for name, code := range map[string]string{
		"text":             `import x from "./.ssh/id_rsa" with { type: "text" }`,
		"bytes":            `import x from "./.env" with { type: "bytes" }`,
		"code":             `import x from "./.lib"`,
		"code, by file":    `import x from "./.lib/index"`,
		"deeper":           `import x from "./a/.b/c.txt"`,
		"around":           `import x from "./a/../.env" with { type: "text" }`,
		"only dots":        `import x from "./..." with { type: "text" }`,
		"require":          `const x = require("./.lib")`,
		"require in try":   `let x; try { x = require("./.lib") } catch {}`,
		"dynamic":          `const x = await import("./.lib/index.ts")`,
		"link":             `import x from "./key.txt"`,
		"link to a link":   `import x from "./twice.txt"`,
		"linked folder":    `import x from "./folder/id_rsa" with { type: "text" }`,
		"linked, with ..":  `import x from "./a/up/id_rsa" with { type: "text" }`,
		"linked code":      `import x from "./lib"`,
		"from a package":   `import x from "out"`,
		"linked package":   `import x from "link"`,
		"modules in .git":  `import x from "./.git/node_modules/p/index.js"`,
		"main of a folder": `import x from "./inner"`,
	} {
		t.Run(name, func(t *testing.T) {
			write(t, dir, map[string]string{"main.ts": code + "; export default x"})
			refuses(t, filepath.Join(dir, "main.ts"), nil, "is hidden")
		})
	}
	t.Run("any tree", func(t *testing.T) {
		_, err := bundleTree(t, "main.ts", map[string]string{"main.ts": `import x from "./.env" with { type: "text" }; export default x`, ".env": "swordfish"})
		if err == nil || !strings.Contains(err.Error(), "is hidden") {
			t.Fatal(err)
		}
	})
}

// Hidden names that people need: an entry, its parent folders, and the folders of package managers.
func TestHiddenFilesThatAreUsed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		".agents/.tool.ts": `import a from "./a"; import p from "p"; export default [a, p]`, ".agents/a.ts": `export default "in a"`,
		".agents/node_modules/.store/p@1/node_modules/p/package.json": `{"main": "./.dist/x"}`,
		".agents/node_modules/.store/p@1/node_modules/p/.dist/x.js":   `import q from "q"; export default "in p" + q`,
		".agents/node_modules/.store/q@1/node_modules/q/index.js":     `export default "in q"`,
		".agents/node_modules/p":                                      "-> .store/p@1/node_modules/p",
		".agents/node_modules/q":                                      "-> .store/q@1/node_modules/q",
	})
	out, err := bundleFile(t, filepath.Join(dir, ".agents", ".tool.ts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"in a", "in p", "in q"} {
		if !strings.Contains(string(out.code), text) {
			t.Errorf("lacks %q:\n%s", text, out.code)
		}
	}
}

// In a folder that also serves other purposes, only the entry is read.
func TestSharedFolder(t *testing.T) {
	world := t.TempDir()
	folder := filepath.Join(world, "users", "me")
	state := filepath.Join(world, "state")
	write(t, world, map[string]string{
		"users/me/secret.json": `"swordfish"`, "users/me/passwords.txt": "swordfish", "users/me/lib.ts": `export default "swordfish"`,
		"users/me/package.json":                   `{"name": "me", "exports": "./lib.ts", "imports": {"#lib": "./lib.ts"}}`,
		"users/me/node_modules/p/index.js":        `import q from "q"; export default "in p" + q`,
		"users/me/node_modules/q":                 "-> .store/q",
		"users/me/node_modules/.store/q/index.js": `export default "in q"`,
		"users/me/node_modules/escaping/index.js": `export { default } from "../../lib"`,
		"users/me/node_modules/linked":            "-> ../other",
		"users/me/other/index.js":                 `export default "swordfish"`,
		"users/me/other/node_modules/p/index.js":  `export default "swordfish"`,
		"users/me/own/tool.ts":                    `import a from "./a.json"; export default a`,
		"users/me/own/a.json":                     `"in a"`,
		"users/me/code.ts":                        "-> own/other.ts",
		"users/me/own/other.ts":                   `export default "in other"`,
		"alias":                                   "-> users/me",
		"alias2":                                  "-> users",
		"keeps/home":                              "-> ../users/me/deep/home",
		"users/me/deep/home/.profile":             "",
		"users/me/deep/tmp/x":                     "",
	})
	file := filepath.Join(folder, "main.ts")
	none := filepath.Join(world, "none")
	for name, test := range map[string]struct {
		file, home, tmp string
		keep            []string
	}{
		"home":                        {file, folder, none, nil},
		"home, unclean":               {filepath.Join(folder, "own") + "/../main.ts", folder + "/", none, nil},
		"home, by a link":             {filepath.Join(world, "alias", "main.ts"), folder, none, nil},
		"home is a link":              {file, filepath.Join(world, "alias"), none, nil},
		"home below a link":           {file, filepath.Join(world, "alias2", "me"), none, nil},
		"above home":                  {file, filepath.Join(folder, "deep", "home"), none, nil},
		"above home, by a link":       {file, filepath.Join(world, "keeps", "home"), none, nil},
		"above a home yet to be made": {file, filepath.Join(folder, "a", "b", "c"), none, nil},
		"temporary files":             {file, none, folder, nil},
		"temporary files, by a link":  {file, none, filepath.Join(world, "alias"), nil},
		"above what is kept":          {file, none, none, []string{state, filepath.Join(folder, "state", "stile")}},
		"what is kept itself":         {file, none, none, []string{folder}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", test.home)
			t.Setenv("TMPDIR", test.tmp)
			for _, code := range []string{
				`import x from "./secret.json"`, `import x from "./passwords.txt"`, `import x from "./passwords.txt" with { type: "bytes" }`, `import x from "./lib"`,
				`import x from "./own/a.json"`, `import x from "./other"`, `import x from "./other/node_modules/p/index.js"`,
				`import x from "./package.json"`, `import x from "escaping"`, `import x from "linked"`, `let x; try { x = require("./lib") } catch {}`,
			} {
				write(t, folder, map[string]string{"main.ts": code + "; export default x"})
				refuses(t, test.file, test.keep, "is in "+folder+",", "only main.ts and node_modules", "a folder of its own")
			}
			for _, code := range []string{`import x from "#lib"`, `import x from "me"`} { // there is no package.json
				write(t, folder, map[string]string{"main.ts": code + "; export default x"})
				refuses(t, test.file, test.keep)
			}
			write(t, folder, map[string]string{"main.ts": `import p from "p"; import { extension } from "stile"; export default [p, extension]`})
			out, err := bundleFile(t, test.file, test.keep...)
			if err != nil || !strings.Contains(string(out.code), "in q") {
				t.Fatalf("the entry with packages: %v", err)
			}
			if _, err := bundleFile(t, filepath.Join(folder, "code.ts"), test.keep...); err != nil {
				t.Fatalf("an entry that is a link: %v", err)
			}
		})
	}
	t.Run("a folder of its own", func(t *testing.T) {
		t.Setenv("HOME", folder)
		t.Setenv("TMPDIR", world)
		if _, err := bundleFile(t, filepath.Join(folder, "own", "tool.ts"), filepath.Join(folder, "state"), ""); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("the root of all", func(t *testing.T) {
		t.Setenv("HOME", none)
		root, err := os.OpenRoot("/")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		if is, err := shared(root, "/", nil); !is || err != nil {
			t.Fatal(is, err)
		}
	})
	t.Run("case", func(t *testing.T) {
		t.Setenv("HOME", folder)
		write(t, folder, map[string]string{"Main.ts": `export default 1`, "main.ts": `import x from "./Main"; export default x`, "NODE_MODULES/x.js": ""})
		refuses(t, file, nil, "Main.ts")
		write(t, folder, map[string]string{"main.ts": `import x from "./NODE_MODULES/x"; export default x`})
		refuses(t, file, nil, "is in "+folder)
	})
}

// A folder is opened without anything outside it, and is refused if it contains more than an extension.
func TestOpenFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a/tool.ts": "1", "a/src/b.ts": "2", "a/.env": "swordfish", "secret.txt": "swordfish", "a/out.ts": "-> ../secret.txt", "a/far.ts": "-> /etc/passwd",
		"a/dot.ts": "-> .env", "a/in.ts": "-> src/b.ts", "a/" + strings.Repeat("d/", 32) + "x.ts": "3", "a/" + strings.Repeat("d/", 33) + "x.ts": "4",
	})
	if err := syscall.Mkfifo(filepath.Join(dir, "a", "pipe"), 0o600); err != nil { // no process writes to it, so opening it would wait forever
		t.Fatal(err)
	}
	tree, closer, err := OpenFolder(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closer.Close() }()
	for name, want := range map[string]string{
		"tool.ts": "1", "src/b.ts": "2", "in.ts": "2", ".env": "", "out.ts": "", "far.ts": "", "dot.ts": "", "../secret.txt": "", "pipe": "",
		strings.Repeat("d/", 32) + "x.ts": "3", strings.Repeat("d/", 33) + "x.ts": "",
	} {
		if got, err := fs.ReadFile(tree, name); string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	for _, keep := range []string{filepath.Join(dir, "a"), filepath.Join(dir, "a", "home", "stile")} {
		if _, _, err := OpenFolder(filepath.Join(dir, "a"), keep); err == nil || !strings.Contains(err.Error(), "a folder of its own") {
			t.Errorf("with %s in it: %v", keep, err)
		}
	}
	t.Setenv("HOME", filepath.Join(dir, "a"))
	for _, name := range []string{filepath.Join(dir, "a"), dir, "/", os.TempDir(), filepath.Join(dir, "none"), filepath.Join(dir, "a", "tool.ts")} {
		if _, _, err := OpenFolder(name); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
}
