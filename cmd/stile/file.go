package main

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// readFile reads a file that the command line names, of at most limit bytes.
func readFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &usageError{err}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, &usageError{err}
	}
	if int64(len(data)) > limit {
		return nil, usagef("%s has more than %d bytes", name, limit)
	}
	return data, nil
}

// writeFile writes a file in one step: afterwards it holds all of data, or what it held before. It replaces nothing but
// regular files.
func writeFile(name string, data []byte) (err error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return &usageError{err}
	case info.IsDir():
		return usagef("%s is a directory; name the file to write", name)
	case !info.Mode().IsRegular():
		return usagef("%s is not a regular file and is not replaced", name)
	}
	temporary := filepath.Join(filepath.Dir(name), ".stile-"+rand.Text())
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return &usageError{err}
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary) // the first error says more
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
