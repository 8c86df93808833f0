// Package lease tells the processes of one machine apart that share something in a folder: which of them live, and since when one has not said so. A
// process that ends gives its place up at once, however it ends; one that only stops keeps it until its lease runs out.
package lease

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/stilehost/stile/internal/private"
)

// Holder is a process, or a part of one. Its file is locked as long as it lives. Close it.
type Holder struct {
	// Name is random, and no other holder has it.
	Name string
	dir  string
	lock *flock.Flock
}

// New makes a holder, with a file in the folder, which must exist.
func New(dir string) (*Holder, error) {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	h := &Holder{Name: hex.EncodeToString(b), dir: dir}
	h.lock = lockOf(dir, h.Name)
	locked, err := h.lock.TryLock()
	if err == nil && !locked {
		err = errors.New("somebody else has locked it")
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s for this process: %w", h.lock.Path(), err)
	}
	return h, nil
}

// Close gives the name up. It is called once.
func (h *Holder) Close() error {
	err := os.Remove(h.lock.Path())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, h.lock.Close())
}

// Ended reports whether the holder of this name has ended, and removes its file if so.
func Ended(dir, name string) bool {
	if name != filepath.Base(name) {
		return true // it was forged
	}
	l := lockOf(dir, name)
	if _, err := os.Lstat(l.Path()); errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if private.ClearLock(l.Path()) != nil {
		return false
	}
	locked, err := l.TryLock()
	if locked {
		_ = os.Remove(l.Path())
	}
	return errors.Join(err, l.Close()) == nil && locked
}

func lockOf(dir, name string) *flock.Flock {
	return flock.New(filepath.Join(dir, "holder-"+name+".lock"), flock.SetPermissions(0o600))
}
