//go:build long

package guests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/host"
)

// The example in Rust does the same as the others, as a component that cargo makes.
func TestLongNotesRust(t *testing.T) {
	const triple = "wasm32-wasip2"
	root, err := exec.CommandContext(t.Context(), "rustc", "--print", "sysroot").Output()
	if err != nil {
		t.Skipf("Rust is not installed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(strings.TrimSpace(string(root)), "lib", "rustlib", triple)); err != nil {
		t.Skipf("Rust cannot build for %s; to install it: rustup target add %[1]s", triple)
	}
	l := newLanguages(t)
	testNotes(t, map[string]func(*testing.T) *host.Component{"rust": func(t *testing.T) *host.Component {
		target := t.TempDir()
		cargo := exec.CommandContext(t.Context(), "cargo", "build", "--quiet", "--release", "--target", triple, "--target-dir", target)
		cargo.Dir = filepath.Join("..", "examples", "notes", "rust")
		if output, err := cargo.CombinedOutput(); err != nil {
			t.Fatalf("cargo build: %v\n%s", err, output)
		}
		wasm, err := os.ReadFile(filepath.Join(target, triple, "release", "notes.wasm"))
		if err != nil {
			t.Fatal(err)
		}
		return l.load(t, wasm)
	}})
}
