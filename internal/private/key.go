//go:build unix

package private

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Key reads a key of this many bytes from a file that only this user can access, and makes both if there is none. The first of several processes
// makes it. A file of another size, or of zeros only, is an error, because what was encrypted with the key is lost with it.
func Key(path string, size int) (key []byte, err error) {
	for range 2 {
		f, err := OpenFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			if err := makeKey(path, size); err != nil {
				return nil, fmt.Errorf("make a key: %w", err)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		key, err := io.ReadAll(io.LimitReader(f, int64(size)+1))
		if err != nil {
			return nil, err
		}
		zero := byte(0)
		for _, b := range key {
			zero |= b
		}
		if len(key) != size || zero == 0 {
			return nil, &Error{path, "is damaged", "restore it from a backup; without it, what was written with it cannot be read"}
		}
		return key, nil
	}
	return nil, &Error{path, "was removed meanwhile", "try again"}
}

// makeKey makes a key that is whole under its name from the start.
func makeKey(path string, size int) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	key := make([]byte, size)
	_, _ = rand.Read(key) // never fails
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		err = nil // another process was first
	}
	return err
}
