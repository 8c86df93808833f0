// Package bounded reads no more than a limit.
package bounded

import (
	"errors"
	"io"
	"io/fs"
)

// ErrTooLarge reports something that is larger than its limit.
var ErrTooLarge = errors.New("it is too large")

// Read reads at most limit bytes. If there are more, it returns the first of them with [ErrTooLarge].
func Read(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
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
