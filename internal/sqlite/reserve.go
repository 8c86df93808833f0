package sqlite

import (
	"crypto/rand"
	"errors"
	"os"
)

// reserveSize is the size of a Reserve in bytes: of a few hundred small transactions.
const reserveSize = 1 << 20

// Reserve is the path of a file that holds room on the disk for what has to be written down also when the disk is full.
type Reserve string

// Fill makes the file unless it is there; the owner alone may read it.
func (r Reserve) Fill() error {
	if info, err := os.Stat(string(r)); err == nil && info.Size() == reserveSize {
		return nil
	}
	b := make([]byte, reserveSize)
	_, _ = rand.Read(b) // what no file system compresses; it never fails
	if err := os.WriteFile(string(r), b, 0o600); err != nil {
		return errors.Join(err, os.Remove(string(r)))
	}
	return nil
}

// Spend frees the room, and says whether there was any.
func (r Reserve) Spend() bool { return os.Remove(string(r)) == nil }
