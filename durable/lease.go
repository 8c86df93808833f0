package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// A process that works on runs is an owner. It says so every beat; whoever has not said it for leaseTime has lost its runs.
const (
	beat      = time.Second
	leaseTime = 4 * time.Second
)

// owner names a process for as long as it works on runs. It holds the lock on a file of its name, so that the others see at once when it has ended.
// If it has only stopped, they see that from its lease.
type owner struct {
	name string
	lock *flock.Flock
}

func newOwner(dir string) (*owner, error) {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	o := &owner{name: hex.EncodeToString(b)}
	o.lock = ownerLock(dir, o.name)
	if err := o.lock.Lock(); err != nil {
		return nil, fmt.Errorf("lock a file for this process: %w", err)
	}
	return o, nil
}

func (o *owner) close() error {
	return errors.Join(os.Remove(o.lock.Path()), o.lock.Close())
}

func ownerLock(dir, name string) *flock.Flock {
	return flock.New(filepath.Join(dir, "runs-"+name+".lock"), flock.SetPermissions(0o600))
}

// gone reports whether the owner of this name has ended, and removes its file.
func gone(dir, name string) bool {
	l := ownerLock(dir, name)
	if _, err := os.Lstat(l.Path()); errors.Is(err, fs.ErrNotExist) {
		return true
	}
	locked, err := l.TryLock()
	if locked {
		_ = os.Remove(l.Path())
	}
	_ = l.Close()
	return err == nil && locked
}

// uptime is a clock that all processes of this machine share, that nobody sets, and that goes on while the machine sleeps. boot says since which
// start of the machine it counts.
func uptime() (boot string, since time.Duration, err error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, fmt.Errorf("find out since when this machine runs: %w", err)
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return "", 0, fmt.Errorf("read the clock since the start of this machine: %w", err)
	}
	return strings.TrimSpace(string(id)), time.Duration(t.Nano()), nil
}
