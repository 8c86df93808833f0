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
	// Packages are the imports of the source's own files, as written and in byte order: packages, perhaps with a path, and
	// modules built into node. The SDK is not among them.
	Packages []string
	// Builtins are node's modules that have a [Shim] and that the source or a package in its tree imports. A package that
	// has a dependency of the same name means that dependency instead. Names have no prefix and are in byte order.
	Builtins []string

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
	b.resolver.mu.Lock()
	defer b.resolver.mu.Unlock()
	found := &Imports{Packages: slices.Sorted(maps.Keys(b.imported)), Builtins: slices.Sorted(maps.Keys(b.resolver.builtins))}
	if err == nil && len(found.Packages)+len(found.Builtins) == 0 {
		found.bundle, err = b.result(outputs)
	}
	return found, err
}

// findImports has a bundler look for imports.
func (b *bundler) findImports() {
	b.imported, b.resolver.builtins = make(map[string]bool), make(map[string]bool)
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

// isPackage reports whether an import names a package or a module of node, rather than a file or something refused.
func isPackage(specifier string) bool {
	name, isNode := strings.CutPrefix(specifier, nodePrefix)
	_, _, ok := splitPackage(name)
	return ok && !strings.HasPrefix(name, "#") && (isNode || refuse(specifier) == nil)
}
