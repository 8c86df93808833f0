package box

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// name is the id of the box of a folder.
func name(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "stile-" + hex.EncodeToString(sum[:6])
}

// acquire locks the folder of a box, which it makes. It returns nil if another process, or this one, has the lock.
func acquire(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = nil
		}
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// clean removes what is left of a box whose folder is locked.
func clean(dir string, c cgroups, cgroup string) error {
	if exists(c.folder("freezer", cgroup)) || exists(c.folder("pids", cgroup)) {
		if err := c.clear(cgroup); err != nil {
			return err
		}
	}
	if err := removeLeft(dir); err != nil {
		return err
	}
	if err := c.remove(cgroup); err != nil {
		return fmt.Errorf("remove cgroups: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "lock" && e.Name() != "cgroup" {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sweep removes what processes that died left in the folder of their boxes.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	var errs []error
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(filepath.Join(at, "cgroup"))
		cgroup := string(text)
		// A file that was cut off, as when the disk was full, names the cgroup of other processes, or of all.
		if err != nil || !e.IsDir() || filepath.Base(cgroup) != name(at) || filepath.Clean(cgroup) != cgroup {
			continue
		}
		left, err := os.ReadDir(at)
		if err != nil || len(left) <= 2 && !exists(findCgroups().folder("freezer", cgroup)) {
			continue
		}
		lock, err := acquire(at)
		if lock == nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, clean(at, findCgroups(), cgroup), lock.Close())
	}
	return errors.Join(errs...)
}
