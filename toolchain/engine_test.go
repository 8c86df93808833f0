package toolchain

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/internal/cache/cachetest"
)

// uncached builds without a cache.
func uncached(_ context.Context, _, _ string, build func() ([]byte, error)) ([]byte, error) {
	return build()
}

// testEngine obtains the engine once for all tests of this machine.
func testEngine(t testing.TB) *engineFiles {
	t.Helper()
	e, err := obtainEngine(t.Context(), cachetest.Open(t).Do, engineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestObtainEngine(t *testing.T) {
	e := testEngine(t)
	if got := fmt.Sprintf("%x", sha256.Sum256(e.wasm)); got != "d4c9375f2b1ca4dc95f72c8aa2982a7a9951ac8011490d79c6582df732b4bbd9" {
		t.Errorf("quickjs.wasm has the digest %s", got)
	}
	for _, name := range []string{"node_modules/whatwg-url/index.js", "node_modules/@noble/hashes/sha2.js"} {
		if _, err := fs.Stat(e.modules, name); err != nil {
			t.Error(err)
		}
	}
}

// The engine's packages are those that the prelude requires.
func TestEnginePackagesCoverThePrelude(t *testing.T) {
	type manifest struct{ Dependencies map[string]string }
	var engine, prelude manifest
	for name, m := range map[string]*manifest{"engine": &engine, "prelude": &prelude} {
		text, err := os.ReadFile(name + "/package.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, m); err != nil {
			t.Fatal(err)
		}
	}
	for name, version := range prelude.Dependencies {
		if engine.Dependencies[name] != version {
			t.Errorf("%s: the prelude wants %s, the engine brings %s", name, version, engine.Dependencies[name])
		}
	}
	lock, err := enginePackages.ReadFile("engine/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), `"resolved"`) || strings.Count(string(lock), `"integrity": "sha512-`) != len(engine.Dependencies) {
		t.Error("the lockfile names a registry, or lacks an integrity")
	}
}

func TestEngineFromFile(t *testing.T) {
	e := testEngine(t)
	dir := t.TempDir()
	folder, archive := filepath.Join(dir, "folder"), filepath.Join(dir, "engine.zip")
	if err := os.CopyFS(folder, e.modules); err != nil {
		t.Fatal(err)
	}
	writeZip := func(name string, files fs.FS) {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w := zip.NewWriter(f)
		if err := errors.Join(w.AddFS(files), w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	writeZip(archive, os.DirFS(folder))
	for _, file := range []string{folder, archive} {
		got, err := obtainEngine(t.Context(), uncached, engineOptions{file: file, npm: "no-such-npm"})
		if err != nil {
			t.Fatal(err)
		}
		if string(got.wasm) != string(e.wasm) {
			t.Error("another engine came out")
		}
	}

	wasm := filepath.Join(dir, "quickjs.wasm")
	changed := filepath.Join(dir, "changed.zip")
	empty := filepath.Join(dir, "empty.zip")
	huge := filepath.Join(dir, "huge.zip")
	if err := os.WriteFile(wasm, e.wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	writeZip(empty, fstest.MapFS{})
	writeZip(huge, fstest.MapFS{wasmName: &fstest.MapFile{Data: make([]byte, maxEngineFile+1)}})
	if err := os.WriteFile(filepath.Join(folder, wasmName), append(e.wasm, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	writeZip(changed, os.DirFS(folder))
	for file, want := range map[string]string{
		folder: "digest is wrong", changed: "digest is wrong", empty: "node_modules cannot be read", huge: "larger than",
		wasm: "zip: not a valid zip file", filepath.Join(dir, "gone"): "no such file",
	} {
		_, err := obtainEngine(t.Context(), uncached, engineOptions{file: file, npm: "no-such-npm"})
		var failure *SetupError
		if !errors.As(err, &failure) || !strings.Contains(err.Error(), want) || failure.Remedy == "" {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

func TestEngineFromNPMFails(t *testing.T) {
	for name, test := range map[string]struct{ npm, want string }{
		"no npm":           {"", "npm is not installed"},
		"offline":          {"echo 'npm error code EAI_AGAIN' >&2; exit 1", "did not reach its registry (EAI_AGAIN)"},
		"wrong digest":     {"echo 'npm error code EINTEGRITY' >&2; exit 1", "wrong digest"},
		"lacks it":         {"echo 'npm error code E404' >&2; exit 1", "lacks a package"},
		"something else":   {`printf 'npm error \033[31mweird' >&2; exit 3`, `exit status 3: npm error \x1b[31mweird`},
		"asks if need be":  {`case "$*" in *--prefer-offline*) echo 'npm error code E404' >&2;; esac; exit 1`, "lacks a package"},
		"installs nothing": {"exit 0", "node_modules cannot be read"},
		"installs more":    {"mkdir -p node_modules/quickjs-wasi; echo > node_modules/quickjs-wasi/quickjs.wasm", "digest is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			npm := filepath.Join(t.TempDir(), "npm")
			if test.npm != "" {
				if err := os.WriteFile(npm, []byte("#!/bin/sh\n"+test.npm+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			_, err := obtainEngine(t.Context(), uncached, engineOptions{npm: npm})
			var failure *SetupError
			if !errors.As(err, &failure) || !strings.Contains(err.Error(), test.want) || failure.Remedy == "" {
				t.Fatalf("got %v, want %q", err, test.want)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		npm := filepath.Join(t.TempDir(), "npm")
		if err := os.WriteFile(npm, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := obtainEngine(ctx, uncached, engineOptions{npm: npm, progress: func(string) { cancel() }})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
}

// The engine's stack lies where it cannot overwrite other data, and its allocator starts where layOut expects it.
func TestEngineIsLaidOut(t *testing.T) {
	m := testImager(t, imageLimits{})
	if want := m.shape.Pages * wasmPage; m.shape.StackTop != want || want <= m.shape.SpareEnd*wasmPage+stackPages*wasmPage {
		t.Errorf("stack below %#x, spare pages up to %d", m.shape.StackTop, m.shape.SpareEnd)
	}
	l, err := basePlain.layout()
	if err != nil {
		t.Fatal(err)
	}
	base := testLaidOutBase(t, m)
	used := 0
	for i, a := range base.arenas {
		if a != 0 {
			used += int(binary.LittleEndian.Uint16(base.memory[a+arenaUsed:])) - 1
			if got := base.memory[a+arenaSize]; int(got) != i {
				t.Errorf("the arena at %#x is of size %d, want %d", a, got, i)
			}
		}
	}
	if used != len(l.Hot) {
		t.Errorf("%d blocks lie together, want the %d hot ones", used, len(l.Hot))
	}
}
