//go:build long

package guests

import (
	"testing"

	"github.com/stilehost/stile/host"
)

// Guests in Rust are components that cargo makes, or core modules for either standard library.
func TestLongRust(t *testing.T) {
	l := newLanguages(t)
	for _, target := range []string{"wasm32-wasip1", "wasm32-wasip2"} {
		t.Run(target, func(t *testing.T) {
			testRust(t, l, target)
			testNotes(t, map[string]func(*testing.T) *host.Component{"notes": l.rustNotes(target)})
		})
	}
}
