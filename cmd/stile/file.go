package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/stilehost/stile/internal/atomicfile"
	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/private"
)

// openFile opens a regular file. In a stranger's folder, a name may belong to anything, and opening a pipe without a writer would
// block. It also opens files that a shell hands over by number, as in <(command).
func openFile(name string) (*os.File, error) {
	handed := slices.ContainsFunc([]string{"/dev/stdin", "/dev/fd/*", "/proc/self/fd/*"}, func(pattern string) bool {
		ok, err := filepath.Match(pattern, name)
		return ok && err == nil
	})
	if handed {
		f, err := os.Open(name)
		if err != nil {
			return nil, &usageError{err}
		}
		return f, nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &usageError{err}
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", name)
	}
	if err != nil {
		return nil, &usageError{errors.Join(err, f.Close())}
	}
	return f, nil
}

// readFile reads a file that the command line names, of at most limit bytes.
func readFile(name string, limit int64) ([]byte, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	return readOpened(f, limit)
}

// readOpened reads a file of at most limit bytes, and closes it.
func readOpened(f *os.File, limit int64) ([]byte, error) {
	data, err := bounded.Read(f, limit)
	if errors.Is(err, bounded.ErrTooLarge) {
		err = fmt.Errorf("%s has more than %d bytes", f.Name(), limit)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, &usageError{err}
	}
	return data, nil
}

// interruptible does what may never end, or long, such as reading from a terminal or a pipe. That cannot be cancelled: when ctx ends, it is
// abandoned until the process ends.
func interruptible[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		of  T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		of, err := do()
		done <- outcome{of, err}
	}()
	select {
	case o := <-done:
		return o.of, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// writeFile writes a file in one step: afterwards, it holds all of data or its previous content. It replaces only regular files.
func writeFile(name string, data []byte) error {
	return replaceFile(name, data, 0o666)
}

// writePrivate is writeFile for a file that only its owner may read.
func writePrivate(name string, data []byte) error {
	return replaceFile(name, data, 0o600)
}

// lendFile is writePrivate for the lifetime of the process: remove removes the file, unless another has replaced it. It does not
// replace a file that others can read or write, because they may have it open.
func lendFile(name string, data []byte) (remove func(), err error) {
	if before, err := os.Lstat(name); err == nil && before.Mode().IsRegular() && before.Mode().Perm()&private.Any != 0 {
		return nil, usagef("%s has mode %04o, so others can read or write it; remove it, or name another file", name, before.Mode().Perm())
	}
	if err := writePrivate(name, data); err != nil {
		return nil, err
	}
	lent, err := os.Lstat(name)
	return func() {
		if now, err := os.Lstat(name); err == nil && os.SameFile(lent, now) {
			_ = os.Remove(name) // the file serves only this process
		}
	}, err
}

func replaceFile(name string, data []byte, mode fs.FileMode) error {
	if err := regular(name); err != nil {
		return err
	}
	err := atomicfile.Replace(atomicfile.Machine{}, name, filepath.Join(filepath.Dir(name), ".stile-"+rand.Text()), data, mode, true)
	if at, ok := errors.AsType[*fs.PathError](err); ok && at.Op == "open" {
		at.Path = name // the temporary name would help nobody
		return &usageError{err}
	}
	return err
}

// regular refuses everything but regular files.
func regular(name string) error {
	if name == "-" {
		return usagef("output cannot go to stdout; name a file (./- for a file called -)")
	}
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return &usageError{err}
	case info.IsDir():
		return usagef("%s is a directory; name the file to write", name)
	case !info.Mode().IsRegular():
		return usagef("%s is not a regular file, so it is not replaced; name another file", name)
	}
	return nil
}
