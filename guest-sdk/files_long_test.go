//go:build long

package guests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
)

// rustWASI builds testdata/wasi/rust, whose code uses the standard library and the crate wasi, and nothing of Stile.
func rustWASI(t *testing.T) []byte {
	t.Helper()
	const triple = "wasm32-wasip2"
	root, err := exec.CommandContext(t.Context(), "rustc", "--print", "sysroot").Output()
	if err != nil {
		t.Skipf("Rust is not installed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(strings.TrimSpace(string(root)), "lib", "rustlib", triple)); err != nil {
		t.Skipf("Rust cannot build for %s; to install it: rustup target add %[1]s", triple)
	}
	target := t.TempDir()
	cargo := exec.CommandContext(t.Context(), "cargo", "build", "--quiet", "--release", "--target", triple, "--target-dir", target)
	cargo.Dir = filepath.Join("testdata", "wasi", "rust")
	if output, err := cargo.CombinedOutput(); err != nil {
		t.Fatalf("cargo build: %v\n%s", err, output)
	}
	wasm, err := os.ReadFile(filepath.Join(target, triple, "release", "files.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// filePlaces are a workspace and a directory on disk.
func filePlaces(t *testing.T) map[string]*workspace.Directory {
	t.Helper()
	store, err := workspace.Open(t.Context(), filepath.Join(t.TempDir(), "workspaces.db"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := workspace.OpenDisk(t.TempDir(), workspace.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(store.Close(), disk.Close()); err != nil {
			t.Error(err)
		}
	})
	return map[string]*workspace.Directory{"workspace": store.Workspace("files"), "disk": disk.Directory()}
}

// An unmodified program of Rust uses most of std::fs.
func TestLongFilesRust(t *testing.T) {
	l := newLanguages(t)
	c := l.load(t, rustWASI(t))
	for name, place := range filePlaces(t) {
		testFiles(t, name, c, place)
	}
}

// testFiles has a program use files in all ways it knows, then with bindings that only read, and with none.
func testFiles(t *testing.T, name string, c *host.Component, place *workspace.Directory) {
	t.Helper()
	at := abi.WASI{Filesystem: map[string]string{"/data": "files"}}
	do := func(tool, input string, env host.Env, w abi.WASI) (string, error) {
		result, err := c.Do(t.Context(), host.Request{Tool: tool, Input: []byte(input), Env: env, WASI: w})
		return string(result.Output), err
	}
	if got, err := do("files", `"/data"`, host.Env{"files": place}, at); err != nil || got != `"ok"` {
		t.Errorf("%s: %s, %v", name, got, err)
	}
	if err := place.Write(t.Context(), "note.md", "hello"); err != nil {
		t.Fatal(err)
	}
	reads := host.Env{"files": place.AsReadOnly()}
	if got, err := do("read", `"/data/note.md"`, reads, at); err != nil || got != `"hello"` {
		t.Errorf("%s: %s, %v", name, got, err)
	}
	if got, err := do("list", `"/data"`, reads, at); err != nil || got != `"note.md"` {
		t.Errorf("%s: %s, %v", name, got, err)
	}
	_, err := do("write", `"/data/note.md"`, reads, at)
	if err == nil || !strings.Contains(err.Error(), "denied: write /note.md through \"files\": this handle can only read") {
		t.Errorf("%s: a write ended with %v", name, err)
	}
	for tool, path := range map[string]string{"read": `"/data/../etc/passwd"`, "list": `"/"`, "write": `"/elsewhere"`} {
		if got, err := do(tool, path, host.Env{"files": place}, at); err == nil {
			t.Errorf("%s: %s of %s: %s", name, tool, path, got)
		}
	}
	if got, err := do("read", `"/data/note.md"`, host.Env{"files": place}, abi.WASI{}); err == nil {
		t.Errorf("%s: a file of a binding that nothing names: %s", name, got)
	}
}
