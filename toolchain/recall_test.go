package toolchain

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// A cached bundle is used for exactly the files from which it was made. A new build shows because it needs a program that does not
// exist: the source is too large for this process.
func TestBundleOnce(t *testing.T) {
	files := map[string]string{
		"main.ts":                       `import { a } from "./a"; import { b } from "b"; import c from "./c.json"; export default [a, b, c];` + "\n//" + strings.Repeat("x", maxInside),
		"a.js":                          `export const a = "was";`,
		"c.json":                        `{"c": 1}`,
		"node_modules/b/package.json":   `{"main": "x.js"}`,
		"node_modules/b/x.js":           `export const b = 1;`,
		"node_modules/b/y.js":           `export const b = 2;`,
		"node_modules/other/index.js":   `export const b = 3;`,
		"elsewhere/not/looked/at/it.ts": `export const z = 1;`,
	}
	for name, c := range map[string]struct {
		change map[string]string // "" removes
		kept   bool
	}{
		"nothing":                      {nil, true},
		"a file that is not imported":  {map[string]string{"node_modules/other/index.js": "export const b = 4;", "new.ts": "export {};"}, true},
		"the entry":                    {map[string]string{"main.ts": files["main.ts"] + "x"}, false},
		"an imported file":             {map[string]string{"a.js": `export const a = "now";`}, false},
		"data":                         {map[string]string{"c.json": `{"c": 2}`}, false},
		"a file that comes before":     {map[string]string{"a.ts": `export const a = "now";`}, false},
		"an imported file goes":        {map[string]string{"a.js": "", "a.ts": `export const a = "was";`}, false},
		"a package names another file": {map[string]string{"node_modules/b/package.json": `{"main": "y.js"}`}, false},
		"a file of a package":          {map[string]string{"node_modules/b/x.js": `export const b = 2;`}, false},
		"a folder in place of a file":  {map[string]string{"a.js": "", "a.js/index.js": `export const a = "was";`, "a/index.js": `export const a = "now";`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tools := &Toolchain{cache: openCache(t), log: slog.New(slog.DiscardHandler)}
			first, err := tools.bundleOnce(t.Context(), Source{FS: tree(files), Entry: "main.ts"})
			if err != nil {
				t.Fatal(err)
			}
			changed := maps.Clone(files)
			for name, text := range c.change {
				if changed[name] = text; text == "" {
					delete(changed, name)
				}
			}
			source := Source{FS: tree(changed), Entry: "main.ts"}
			tools.bundler = []string{"/nowhere/stile"}
			again, err := tools.bundleOnce(t.Context(), source)
			if _, missing := errors.AsType[*BundlerError](err); missing == c.kept {
				t.Fatalf("kept %t, want %t: %v", !missing, c.kept, err)
			}
			tools.bundler = nil
			fresh, err := bundle(t.Context(), source, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !c.kept {
				if again, err = tools.bundleOnce(t.Context(), source); err != nil {
					t.Fatal(err)
				}
			} else if !again.Uses("export") || again.Uses("nowhere") {
				t.Error("the words of a bundle are not those of its code")
			}
			if !bytes.Equal(again.code, fresh.code) || !bytes.Equal(again.sourceMap, fresh.sourceMap) || len(again.files) != len(fresh.files) {
				t.Errorf("a bundle from the cache differs from a fresh one:\n%s\n%s", again.code, fresh.code)
			}
			for i, f := range fresh.files {
				if again.files[i] != f {
					t.Errorf("file %d is %v, want %v", i, again.files[i], f)
				}
			}
			if name == "nothing" && !bytes.Equal(first.code, again.code) {
				t.Error("the same source gave other code")
			}
		})
	}
}

// A bundle is not cached if it has a problem, if its files changed during the build, or if its dependencies cannot be determined.
func TestBundleOnceKeepsNoDoubt(t *testing.T) {
	tools := &Toolchain{cache: openCache(t), log: slog.New(slog.DiscardHandler)}
	for range 2 {
		_, err := tools.bundleOnce(t.Context(), Source{FS: tree(map[string]string{"main.ts": `import "./gone";`}), Entry: "main.ts"})
		if _, ok := errors.AsType[*BuildError](err); !ok {
			t.Errorf("%v, want a *BuildError", err)
		}
	}
	refused := fstest.MapFS{"main.ts": {Mode: fs.ModeSocket}}
	was, is := tree(map[string]string{"a.ts": "1", "b/c.ts": ""}), tree(map[string]string{"a.ts": "2", "b": ""})
	for name, c := range map[string]struct {
		first, then fs.FS
		look        string
		doubt       bool
	}{
		"the same":            {was, was, "a.ts", false},
		"nothing there":       {was, is, "none.ts", false},
		"another content":     {was, is, "a.ts", true},
		"a file for a folder": {was, is, "b", true},
		"comes":               {fstest.MapFS{}, is, "a.ts", true},
		"goes":                {was, fstest.MapFS{}, "a.ts", true},
		"neither":             {refused, refused, "main.ts", true},
	} {
		w := &witness{saw: map[string]string{}}
		for _, w.files = range []fs.FS{c.first, c.then} {
			if info, err := fs.Stat(w, c.look); err == nil && info.Mode().IsRegular() {
				if _, err := fs.ReadFile(w, c.look); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if _, kept := w.encode(&bundled{}); kept == c.doubt {
			t.Errorf("%s: kept %t, saw %v", name, kept, w.saw)
		}
	}
	w := &witness{files: was, saw: map[string]string{}}
	f, err := w.Open("a.ts")
	if err != nil || f.Close() != nil || !w.doubt {
		t.Errorf("half of a file is enough: %v", err)
	}
}

func openCache(t *testing.T) *cache.Cache {
	t.Helper()
	c, err := cache.Open(t.TempDir(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestWarm checks the work of a toolchain for a source that was built before: it makes no image. For an edited source,
// it makes an image, and does not unpack the engine.
func TestWarm(t *testing.T) {
	cacheDir, keyDir := cachetest.Dirs(t)
	source := Source{FS: tree(map[string]string{"main.ts": `import { extension } from "stile"; import { n } from "./n"; export default extension({ tools: { f: { description: "f", run: () => n } } });`, "n.ts": "export const n = 1;"}), Entry: "main.ts"}
	var first []byte
	for i := range 2 {
		h, err := host.New(t.Context(), host.Options{Instances: 4, CacheDir: cacheDir, KeyDir: keyDir})
		if err != nil {
			t.Fatal(err)
		}
		tools, err := New(t.Context(), h, Options{CacheDir: cacheDir, KeyDir: keyDir})
		if err != nil {
			t.Fatal(err)
		}
		component, err := tools.Assemble(t.Context(), source, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Load(t.Context(), component); err != nil {
			t.Error(err)
		}
		if i == 0 {
			first = component
		} else if tools.images != nil || !bytes.Equal(component, first) {
			t.Errorf("an image is about to be made again: %t; the same bytes: %t", tools.images != nil, bytes.Equal(component, first))
		}
		// The second time, another source needs compiled code of the engine, but neither the engine nor its packages.
		edited := Source{FS: tree(map[string]string{"main.ts": fmt.Sprintf(warmSource, rand.Int())}), Entry: "main.ts"}
		if _, err := tools.Assemble(t.Context(), edited, false); err != nil {
			t.Error(err)
		}
		if i > 0 && tools.whole != nil {
			t.Error("the engine was unpacked again")
		}
		name, wasm := tools.Engine()
		if engine, err := wasm(t.Context()); err != nil || host.ModuleName(engine) != name {
			t.Errorf("the engine is not %s: %v", name, err)
		}
		if err := errors.Join(tools.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	}
}

const warmSource = `import { extension } from "stile"; export default extension({ tools: { get: { description: "d", run: () => new URL("https://example.test/%d").href } } });`

func TestBuildID(t *testing.T) {
	const id = "kWZBnzcCkvtDpAfh-0Ud/q3Vn8yJ3wT5m6bQWJZcE/aF0cJkq2uZ3nX9s8m7yL/Xr5tGv1hB2nM3kL4jK5h"
	header := "\x04\x00\x00\x00\x53\x00\x00\x00\x04\x00\x00\x00Go\x00\x00"
	for note, want := range map[string]string{
		header + id:                      id,
		header + id + "\x00":             id,
		header + "redacted":              "",
		header:                           "",
		"":                               "",
		header + "a/b/c/d":               "",
		header + strings.Repeat("x", 90): "",
	} {
		if got := buildID([]byte(note)); got != want {
			t.Errorf("%q: %q, want %q", note, got, want)
		}
	}
	if program() == "" {
		t.Error("the ID of this program is not found")
	}
}
