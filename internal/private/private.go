//go:build unix

// Package private checks that files and folders belong to the user who runs this program, and that other users have no access.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Permissions that other users must not have.
const (
	Write fs.FileMode = 0o022 // of a folder or file that others may read
	Any   fs.FileMode = 0o077
)

// Error reports a file or folder that other users can access.
type Error struct {
	Path, Problem, Remedy string
}

// Error implements error.
func (e *Error) Error() string { return e.Path + " " + e.Problem + ": " + e.Remedy }

// Check returns an *[Error] if a file belongs to another user or grants other users any of the forbidden permissions.
func Check(path string, info fs.FileInfo, forbidden fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner is unknown", path)
	}
	if me := os.Geteuid(); int(stat.Uid) != me {
		return &Error{path, fmt.Sprintf("belongs to user %d and not to user %d, who runs this program", stat.Uid, me), "choose another folder"}
	}
	if info.Mode().Perm()&forbidden != 0 {
		return &Error{path, fmt.Sprintf("has mode %04o, which lets other users in", info.Mode().Perm()), "chmod go-rwx " + path}
	}
	return nil
}

// OpenFile opens a regular file that only this user can access. It follows no link, and does not block on a pipe.
func OpenFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	irregular := &Error{path, "is not a regular file", "move it away, and restore the right file or folder"}
	if errors.Is(err, syscall.ELOOP) {
		return nil, irregular
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = irregular
	default:
		err = Check(path, info, Any)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ClearLock removes what is in the place of a lock file and is no file: to open a pipe would not end, and others can lock a link or a
// device.
func ClearLock(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() {
		return nil
	}
	return errors.Join(err, os.RemoveAll(path))
}

// OpenFolder opens a folder that only this user can write to, and makes it if it is missing.
func OpenFolder(path string) (*os.Root, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = Check(path, info, Write)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}
