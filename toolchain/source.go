package toolchain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Source is what an extension is built from.
type Source struct {
	// FS is the source tree. Imports are resolved inside it and nowhere else; packages stand in its node_modules.
	FS fs.FS
	// Entry is the module that exports the extension, a path in FS, e.g. "tool.ts".
	Entry string
	// Imports are the interfaces the component may import, by whole name, e.g. "stile:capability/kv@0.1.0". Nil means
	// those of stile:capability and WIT whose use shows in the code.
	Imports []string
	// WIT holds the packages of an embedder's own interfaces, one package a text.
	WIT []string
}

// Open returns the source whose entry is file. Its tree is the folder that file stands in: nothing outside that folder
// is read, whatever links in it point to. The caller closes the tree when the source is built.
func Open(file string) (Source, io.Closer, error) {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return Source{}, nil, fmt.Errorf("open source: %w", err)
	}
	entry := filepath.Base(file)
	info, err := root.Stat(entry)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", file)
	}
	if err != nil {
		return Source{}, nil, fmt.Errorf("open source: %w", errors.Join(err, root.Close()))
	}
	return Source{FS: root.FS(), Entry: entry}, root, nil
}
