package npm

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// An archive takes only plain files of packages from node_modules.
func TestPack(t *testing.T) {
	for name, test := range map[string]struct {
		file  string
		link  string
		want  string
		left  bool // out
		types bool
	}{
		"plain":             {file: "node_modules/p/lib/a.js"},
		"nested":            {file: "node_modules/p/node_modules/@s/q/a.js"},
		"smuggled":          {file: "node_modules/p/node_modules/other/a.js", left: true},
		"smuggled deeper":   {file: "node_modules/p/lib/node_modules/other/a.js", left: true},
		"hidden":            {file: "node_modules/p/.a.js"},
		"types":             {file: "node_modules/p/b.d.ts", types: true},
		"types of a module": {file: "node_modules/p/b.d.mts", types: true},
		"types for require": {file: "node_modules/p/b.d.cts", types: true},
		"backslash":         {file: `node_modules/p/..\q\a.js`, want: "not a plain file"},
		"drive":             {file: "node_modules/p/c:a.js", want: "not a plain file"},
		"control character": {file: "node_modules/p/a\x1b[31m.js", want: `a\x1b[31m.js`},
		"not UTF-8":         {file: "node_modules/p/a\xff.js", want: "not a plain file"},
		"link":              {file: "node_modules/p/a.js", link: "/etc/passwd", want: "not a plain file"},
		"link to a folder":  {file: "node_modules/p/a", link: "..", want: "not a plain file"},
		"of no package":     {file: "node_modules/a.js", want: "not a plain file"},
		"of another":        {file: "node_modules/other/a.js", want: "not a plain file"},
		"a program":         {file: "node_modules/.bin/node", want: "not a plain file"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.user = &userSettings{}
			w, err := c.workplace(t.Context(), c.tag(c.user))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = w.remove() }()
			folder := func(name string) error {
				return w.root.MkdirAll(projectDir+"/"+name[:strings.LastIndex(name, "/")], 0o700)
			}
			err = errors.Join(folder("node_modules/p/node_modules/@s/q/x"), folder(test.file))
			for _, at := range []string{"node_modules/p", "node_modules/p/node_modules/@s/q"} {
				err = errors.Join(err, w.write(at+"/package.json", []byte(`{"licenses": [{"type": "MIT"}, "ISC\u001b"]}`)), w.write(at+"/a.d.ts", []byte("x")))
			}
			if test.link == "" {
				err = errors.Join(err, w.write(test.file, []byte("code")))
			} else {
				err = errors.Join(err, w.root.Symlink(test.link, projectDir+"/"+test.file))
			}
			if err != nil {
				t.Fatal(err)
			}
			archive, err := c.pack(w, []located{{Package{Name: "p", Version: "1.0.0"}, "node_modules/p", "", 0}, {Package{Name: "@s/q", Version: "1.0.0"}, "node_modules/p/node_modules/@s/q", "", 0}}, test.types)
			if test.want != "" {
				if got := problems(t, err); !strings.Contains(got, test.want) {
					t.Errorf("got %s, want %q", got, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tree, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
			if err != nil {
				t.Fatal(err)
			}
			files := 4
			if test.left {
				files--
			}
			if test.types {
				files = 6 // with the two a.d.ts
			}
			if got, err := fs.ReadFile(tree, test.file); (err == nil) == test.left || !test.left && string(got) != "code" || len(tree.File) != files {
				t.Errorf("%q, %v, %d files", got, err, len(tree.File))
			}
			if list, err := fs.ReadFile(tree, listName); err != nil || bytes.Contains(list, []byte("in its archive")) != test.left {
				t.Errorf("%s %v", list, err)
			}
			if list, err := fs.ReadFile(tree, listName); err != nil || !bytes.Contains(list, []byte(`"license": "MIT OR ISC\\x1b"`)) {
				t.Errorf("%s %v", list, err)
			}
		})
	}
}

func TestReadManifest(t *testing.T) {
	for text, want := range map[string]struct {
		licence  string
		warnings int
	}{
		`{"name": "p", "version": "1.0.0", "license": "(MIT OR Apache-2.0)"}`:              {"(MIT OR Apache-2.0)", 0},
		`{"name": "p", "version": "1.0.0", "license": {"type": "BSD", "url": "x"}}`:        {"BSD", 0},
		`{"name": "p", "version": "1.0.0", "license": "` + strings.Repeat("x", 300) + `"}`: {strings.Repeat("x", 200) + "...", 0},
		`{"name": "p", "version": "1.0.0", "license": 1}`:                                  {"", 1},
		"\uFEFF" + `{"name": "p", "version": "1.0.0", "license": "a\nb\u202e"}`:            {`a b\u202e`, 0},
		`{"name": "q", "version": "1.0.0"}`:                                                {"", 2},
		`{`:                                                                                {"", 2},
	} {
		p := located{Package: Package{Name: "p", Version: "1.0.0"}}
		p.readManifest([]byte(text))
		if p.License != want.licence || len(p.Warnings) != want.warnings {
			t.Errorf("%s: got %q, %q", text, p.License, p.Warnings)
		}
	}
}

// TestReadManifestTakesLittle has a licence of 950 KiB below 9,000 lists. Joined at each level, it takes seconds and 8 GB.
func TestReadManifestTakesLittle(t *testing.T) {
	text := `{"name":"p","version":"1.0.0","license":` + strings.Repeat(`["a",`, 9000) + `"` + strings.Repeat("x", 900<<10) + `"` + strings.Repeat("]", 9000) + `}`
	p := &located{Package: Package{Name: "p", Version: "1.0.0"}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.readManifest([]byte(text))
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 64 {
		t.Errorf("it took %d MiB", took)
	}
	if !strings.HasPrefix(p.License, "a OR a OR a") || len(p.License) > 210 || len(p.Warnings) > 0 {
		t.Errorf("got %q, %q", p.License, p.Warnings)
	}
}

// TestSizeOf counts files of a byte, and their folders, as what they take on disk.
func TestSizeOf(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		folder := filepath.Join(dir, fmt.Sprint(i))
		if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "a"), []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if size, err := sizeOf(dir); err != nil || size < 20*block {
		t.Errorf("got %d, %v", size, err)
	}
}

// A package that lies in two places is one package.
func TestList(t *testing.T) {
	p := func(name, version, at string, size int64, direct bool) located {
		return located{Package{Name: name, Version: version, Size: size, Direct: direct}, at, "", 0}
	}
	got := list([]located{p("q", "2.0.0", "c", 1, false), p("p", "1.0.0", "a", 2, false), p("q", "1.0.0", "d", 3, true), p("p", "1.0.0", "b", 4, true)})
	want := []Package{{Name: "p", Version: "1.0.0", Size: 6, Direct: true}, {Name: "q", Version: "1.0.0", Size: 3, Direct: true}, {Name: "q", Version: "2.0.0", Size: 1}}
	if !slices.EqualFunc(got, want, func(a, b Package) bool { return byName(a, b) == 0 && a.Size == b.Size && a.Direct == b.Direct }) {
		t.Errorf("got %+v", got)
	}
}

// Archives packed by the rules of an older version are not used.
func TestOldPackingIsNotUsed(t *testing.T) {
	c, err := New(Options{CacheDir: filepath.Join(t.TempDir(), "cache"), KeyDir: filepath.Join(t.TempDir(), "home"), NPM: "no-such-npm"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	lock, err := parseLock([]byte(lockText("", "")), 1)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := writeZip(func(w *zip.Writer) error { return addFile(w, listName, []byte("[]")) })
	if err != nil {
		t.Fatal(err)
	}
	old := fmt.Sprintf("%d files, %d bytes, sha256 %x", c.o.MaxFiles, c.o.MaxBytes, sha256.Sum256(lock.encode()))
	if err := c.cache.Put("npm-packages", old, archive); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(t.Context(), Request{Dependencies: lock.wanted(), Lock: lock.encode()}); err == nil {
		t.Error("it was used")
	}
}
