package npm

import (
	"context"
	"io/fs"

	"github.com/stilehost/stile/toolchain"
)

// Imports finds the imports of all files in a source tree that entry reaches. Types are not imports. bundler, the limits and
// the errors are those of [toolchain.FindImports].
func Imports(ctx context.Context, fsys fs.FS, entry string, bundler []string) (*toolchain.Imports, error) {
	return toolchain.FindImports(ctx, toolchain.Source{FS: Tree(fsys, nil), Entry: entry}, bundler)
}
