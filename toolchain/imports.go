package toolchain

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/npmspec"
)

// Imports are what a source imports besides its own files.
type Imports struct {
	// Packages are the imports of packages by the source's own files, as written and in byte order, perhaps with a path. The SDK and
	// modules built into node are not among them, nor is a package that has the name of such a module.
	Packages []string

	bundle *bundled // set if the source imports nothing else and has no problem
}

// FindImports follows all imports of a source, including those in packages that are in its tree. It has the limits and the errors of
// a build. bundler is as in Options and may be nil. With a *BuildError, it still returns what it found.
func FindImports(ctx context.Context, s Source, bundler []string) (*Imports, error) {
	b := newBundler(s, bundler)
	b.findImports()
	outputs, err := b.run(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	found := &Imports{Packages: slices.Sorted(maps.Keys(b.imported))}
	if err == nil && len(found.Packages) == 0 && !b.partial {
		found.bundle, err = b.result(outputs)
	}
	return found, err
}

// findImports has a bundler look for imports.
func (b *bundler) findImports() {
	b.imported = make(map[string]bool)
}

// noteImport reports whether to collect this import of a package, and keeps imports by the source's own files.
func (b *bundler) noteImport(specifier, importer string) bool {
	if b.imported == nil || !isPackage(specifier) {
		return false
	}
	if !npmspec.InPackage(importer) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.imported[specifier] = true
	}
	return true
}

// isPackage reports whether an import names a package, rather than a file, a module of node or something refused.
func isPackage(specifier string) bool {
	_, _, ok := splitPackage(specifier)
	_, builtin := Builtin(specifier)
	return ok && !builtin && !strings.HasPrefix(specifier, "#") && refuse(specifier) == nil
}
