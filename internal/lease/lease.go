// Package lease tells the processes of one machine apart that share something in a folder: which of them live, and since when one has not said so. A
// process that ends gives its place up at once, however it ends; one that only stops keeps it until its lease runs out.
package lease

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

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
func New(dir string) (h *Holder, err error) {
	for range newTries {
		b := make([]byte, nameBytes)
		_, _ = rand.Read(b) // never fails
		h = &Holder{Name: hex.EncodeToString(b), dir: dir}
		h.lock = lockOf(dir, h.Name)
		locked, failed := h.lock.TryLock()
		switch {
		case failed != nil:
			err = failed
		case !locked:
			err = errors.New("somebody else has locked it")
		case !h.isThere():
			err = errors.Join(errors.New("somebody else has removed it"), h.lock.Close())
		default:
			return h, nil
		}
	}
	return nil, fmt.Errorf("lock %s for this process: %w", h.lock.Path(), err)
}

const (
	nameBytes = 16
	// newTries is how many files New makes: until it has locked one, Sweep takes it for that of a holder that has ended.
	newTries = 100
)

// isThere reports whether the file that is locked is still the one that others see.
func (h *Holder) isThere() bool {
	mine, err := h.lock.Stat()
	if err != nil {
		return false
	}
	seen, err := os.Lstat(h.lock.Path())
	return err == nil && os.SameFile(mine, seen)
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

const (
	// sweptNames bounds how many names of a folder Sweep reads, and sweptTime how long it takes.
	sweptNames = 10_000
	sweptTime  = 50 * time.Millisecond
)

// Sweep removes files of holders that have ended without saying so, as a process does that is killed. It looks at a part of the folder if that is large, or slow.
func Sweep(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the caller names the folder
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(sweptNames)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	for began := time.Now(); len(names) > 0 && time.Since(began) < sweptTime; names = names[1:] {
		name, first := strings.CutPrefix(names[0], prefix)
		name, last := strings.CutSuffix(name, suffix)
		if b, err := hex.DecodeString(name); first && last && err == nil && len(b) == nameBytes {
			Ended(dir, name)
		}
	}
	return errors.Join(err, d.Close())
}

const prefix, suffix = "holder-", ".lock"

func lockOf(dir, name string) *flock.Flock {
	return flock.New(filepath.Join(dir, prefix+name+suffix), flock.SetPermissions(0o600))
}
