package npm

import (
	"archive/zip"
	"io/fs"
	"slices"
	"strings"
)

const modules = "node_modules"

// Tree returns the tree to build an extension from: its source with the packages of a [Resolution]. It leaves out every node_modules
// of the source, so that no code can pass for a resolved package. packages is nil if there are none. It is safe for concurrent use
// if source is.
func Tree(source, packages fs.FS) fs.FS {
	if packages == nil {
		packages = &zip.Reader{}
	}
	return tree{source, packages}
}

type tree struct{ source, packages fs.FS }

// packaged reports whether a name is looked for among the packages. Some disks ignore case.
func packaged(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return strings.EqualFold(first, modules)
}

// left reports whether a name of the source is left out.
func left(name string) bool { return strings.Contains(strings.ToLower(name)+"/", "/"+modules+"/") }

func (t tree) Open(name string) (fs.File, error) {
	switch {
	case packaged(name):
		return t.packages.Open(name)
	case left(name):
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return t.source.Open(name)
}

// ReadDir implements fs.ReadDirFS.
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	switch {
	case packaged(name):
		return fs.ReadDir(t.packages, name)
	case left(name):
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	entries, err := fs.ReadDir(t.source, name)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.EqualFold(e.Name(), modules) })
	if name == "." {
		if info, missing := fs.Stat(t.packages, modules); missing == nil {
			entries = append(entries, fs.FileInfoToDirEntry(info))
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		}
	}
	return entries, err
}
