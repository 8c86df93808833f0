package inspect

import (
	"io/fs"
	"testing/fstest"
)

// Tree returns the files that the module is built from: the original files and the module itself. It is safe for concurrent use if
// files is.
func (d *Derived) Tree(files fs.FS) fs.FS {
	return overlay{files, fstest.MapFS{d.Entry: {Data: d.Text}}, d.Entry}
}

type overlay struct {
	files, made fs.FS
	entry       string
}

func (o overlay) Open(name string) (fs.File, error) {
	if name == o.entry {
		return o.made.Open(name)
	}
	return o.files.Open(name)
}
