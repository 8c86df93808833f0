// Package bounded reads no more than a limit.
package bounded

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
)

// ErrTooLarge reports something that is larger than its limit.
var ErrTooLarge = errors.New("it is too large")

// Read reads at most limit bytes. If there are more, it returns the first of them with [ErrTooLarge]. A file of the system takes no more memory
// than its size.
func Read(r io.Reader, limit int64) ([]byte, error) {
	size := int64(0)
	if f, ok := r.(file); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	return ReadSized(r, size, limit)
}

// file is an *os.File. Other files may only pretend to have a size.
type file interface {
	Fd() uintptr
	Stat() (fs.FileInfo, error)
}

// ReadSized is [Read] for what probably has a size, for which it makes room at once. io.ReadAll would need several times as much.
func ReadSized(r io.Reader, size, limit int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(size, 0), limit)) + bytes.MinRead) // without which it would grow to see the end
	_, err := b.ReadFrom(io.LimitReader(r, limit+1))
	data := b.Bytes()
	if int64(len(data)) > limit {
		return data[:limit], ErrTooLarge
	}
	return data, err
}

// ReadFile reads a file of at most limit bytes, as [Read] does.
func ReadFile(files fs.FS, name string, limit int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return Read(f, limit)
}
