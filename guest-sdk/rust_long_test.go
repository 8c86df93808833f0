//go:build long

package guests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stilehost/stile/host"
)

// Guests in Rust are components that cargo makes, or core modules for either standard library.
func TestLongRust(t *testing.T) {
	l := newLanguages(t)
	for _, target := range []string{"wasm32-wasip1", "wasm32-wasip2"} {
		t.Run(target, func(t *testing.T) {
			testRust(t, l, target)
			testNotes(t, map[string]func(*testing.T) *host.Component{"rust": l.rustNotes(target)})
		})
	}
}

// The SDK can be published: what is packed builds alone.
func TestLongRustPackage(t *testing.T) {
	cargo := exec.CommandContext(t.Context(), "cargo", "package", "--quiet", "--workspace", "--locked", "--allow-dirty", "--target-dir", "target")
	cargo.Dir = "rust"
	if output, err := cargo.CombinedOutput(); err != nil {
		t.Fatalf("cargo package: %v\n%s", err, output)
	}
	for _, name := range []string{"stile", "stile-macros"} {
		if _, err := os.Stat(filepath.Join("rust", "target", "package", name+"-0.1.0.crate")); err != nil {
			t.Error(err)
		}
	}
}
