package npm

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/stilehost/stile/toolchain"
)

// Imports finds the imports of all files in a source tree that entry reaches. Types are not imports. bundler, the limits and
// the errors are those of [toolchain.FindImports].
func Imports(ctx context.Context, fsys fs.FS, entry string, bundler []string) (*toolchain.Imports, error) {
	return toolchain.FindImports(ctx, toolchain.Source{FS: Tree(fsys, nil), Entry: entry}, bundler)
}

// entryName is the name of the module that stands for an extension that imports some packages.
const entryName = "imports.js"

// addShims returns the request with the shims that the imports need, as seen from the packages in a tree. Other problems of those
// packages are left to the build, which may not reach them.
func (c *Client) addShims(ctx context.Context, asked map[string]string, imported []string, packages fs.FS) (map[string]string, error) {
	if len(imported) == 0 {
		return asked, nil
	}
	var code bytes.Buffer
	for i, specifier := range imported {
		_, _ = fmt.Fprintf(&code, "export * as m%d from %s;\n", i, encode(specifier))
	}
	archive, err := writeZip(func(w *zip.Writer) error { return addFile(w, entryName, code.Bytes()) })
	if err != nil {
		return nil, err
	}
	source, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	found, err := toolchain.FindImports(ctx, toolchain.Source{FS: Tree(source, packages), Entry: entryName}, c.o.Bundler)
	if _, bad := errors.AsType[*toolchain.BuildError](err); err != nil && !bad {
		return nil, err
	}
	needed := maps.Clone(asked)
	for _, name := range found.Builtins {
		shim, _ := toolchain.Builtin(name)
		if _, ok := needed[shim.Package]; !ok {
			needed[shim.Package] = shim.Range
		}
	}
	return needed, nil
}
