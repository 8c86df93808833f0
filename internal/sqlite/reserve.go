package sqlite

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
)

// reserveSize is the size of a Reserve in bytes, enough for a few hundred small transactions.
const reserveSize = 1 << 20

// Reserve is the path of a file that reserves disk space for data that must be written even when the disk is full.
type Reserve string

// Fill makes the file if it is missing or short. Only its owner can read it. If there is less room, Fill takes all of it, and returns an
// error.
func (r Reserve) Fill() error {
	info, err := os.Lstat(string(r))
	if err == nil && info.Mode().IsRegular() && info.Size() == reserveSize {
		return nil
	}
	if err == nil { // a pipe would wait for a reader, and a link would make us write another file
		if err := os.Remove(string(r)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := os.OpenFile(string(r), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	}
	if err != nil {
		return err
	}
	b := make([]byte, reserveSize)
	_, _ = rand.Read(b) // data that no file system compresses; it never fails
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// Spend frees the space, and reports whether there was any.
func (r Reserve) Spend() bool { return os.Remove(string(r)) == nil }
