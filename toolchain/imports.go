package toolchain

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// Imports are what a source imports beside its own files.
type Imports struct {
	// Packages are what the source's own files import, as it is written there and in byte order: packages, perhaps with a
	// path in them, and modules built into node. The SDK is not among them.
	Packages []string
	// Builtins are the modules of node's that have a [Shim] and are imported by the source, or by a package in its tree that
	// does not name a package of that name as its dependency. Names have no prefix, and are in byte order.
	Builtins []string
}

// FindImports follows all imports of a source. Packages need not be in its tree; those that are there are followed too. It
// has the limits of a build, and fails as one; bundler is that of Options, and may be nil. With a *BuildError it returns what was found all the same.
func FindImports(ctx context.Context, s Source, bundler []string) (*Imports, error) {
	b := newBundler(s, bundler)
	b.findImports()
	_, err := b.run(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resolver.mu.Lock()
	defer b.resolver.mu.Unlock()
	return &Imports{slices.Sorted(maps.Keys(b.imported)), slices.Sorted(maps.Keys(b.resolver.builtins))}, err
}

// findImports has a bundler look for imports.
func (b *bundler) findImports() {
	b.imported, b.resolver.builtins = make(map[string]bool), make(map[string]bool)
}

// noteImport reports whether imports are looked for and this one is of a package, and keeps those of the source's own files.
func (b *bundler) noteImport(specifier, importer string) bool {
	if b.imported == nil || !isPackage(specifier) {
		return false
	}
	if !inModules(importer) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.imported[specifier] = true
	}
	return true
}

// isPackage says whether an import names a package or a module of node's, and neither a file nor what is refused.
func isPackage(specifier string) bool {
	name, isNode := strings.CutPrefix(specifier, nodePrefix)
	_, _, ok := splitPackage(name)
	return ok && !strings.HasPrefix(name, "#") && (isNode || refuse(specifier) == nil)
}
