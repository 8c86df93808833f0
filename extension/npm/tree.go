package npm

import (
	"io/fs"
	"strings"
)

const modules = "node_modules"

// Tree returns the tree to build an extension from: its source with the packages of a [Resolution]. A node_modules of the
// source's own, in whichever folder, is not in it, so that no code passes for a package that was resolved. It is safe for
// concurrent use if source is.
func Tree(source, packages fs.FS) fs.FS { return tree{source, packages} }

type tree struct{ source, packages fs.FS }

func (t tree) Open(name string) (fs.File, error) {
	first, _, _ := strings.Cut(name, "/")
	switch {
	case strings.EqualFold(first, modules): // a disk may not tell capitals apart
		return t.packages.Open(name)
	case strings.Contains(strings.ToLower(name)+"/", "/"+modules+"/"):
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return t.source.Open(name)
}
