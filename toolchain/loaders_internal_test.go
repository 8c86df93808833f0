package toolchain

import (
	"testing"

	"github.com/stilehost/stile/internal/jslex"
)

// The endings that load as code are those that package jslex knows.
func TestLoadersOfCode(t *testing.T) {
	for ending, loader := range loaders {
		if isCode(loader) != jslex.IsCode("a"+ending) {
			t.Errorf("%s is code here or there only", ending)
		}
	}
	for _, name := range append(extensions, packageExtensions...) {
		if loaders[name] == 0 {
			t.Errorf("%s has no loader", name)
		}
	}
}
