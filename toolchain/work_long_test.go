//go:build long

package toolchain

import (
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
)

// TestLongWork compares estimates of the bundler's work with the time that it takes on this machine.
func TestLongWork(t *testing.T) {
	flat := strings.Repeat("a = b.c(d, 1);\n", 20_000) // almost without nesting
	slowness := max(1, float64(parsed(flat))/float64(nestingOf(flat, api.LoaderTS).work))
	strict := tolerance{50 * time.Millisecond, 4 * slowness}
	strict.shapes(t)
	strict.mixtures(t)
	strict.flat(t)
}
