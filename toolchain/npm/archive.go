package npm

import (
	"archive/zip"
	"io"
	"io/fs"
	"slices"
	"sync"
)

// archive is the archive of a lock's packages, which can have 64 MiB. Its directory, of some MiB, is in memory once a file is opened. It is safe
// for concurrent use.
type archive struct {
	from io.ReaderAt
	size int64
	tree func() (*zip.Reader, error)
}

func newArchive(from io.ReaderAt, size int64) *archive {
	return &archive{from, size, sync.OnceValues(func() (*zip.Reader, error) { return zip.NewReader(from, size) })}
}

// Open implements [fs.FS].
func (a *archive) Open(name string) (fs.File, error) {
	tree, err := a.tree()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return tree.Open(name)
}

// listing is held while a directory is in memory only for the list.
var listing sync.Mutex

// list returns the list of packages. It keeps nothing in memory, because who only asks which packages there are opens no file of them.
func (a *archive) list() ([]byte, error) {
	listing.Lock()
	defer listing.Unlock()
	tree, err := zip.NewReader(a.from, a.size)
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Backward(tree.File) { // it is the last one
		if file.Name == listName {
			f, err := file.Open()
			if err != nil {
				return nil, err
			}
			defer func() { _ = f.Close() }() // it was only read
			return io.ReadAll(f)
		}
	}
	return nil, fs.ErrNotExist
}
