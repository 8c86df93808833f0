//go:build unix

package cache

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

const (
	keyFile = "cache.key"
	keySize = 32
)

// openPrivate opens a folder that only this user can write to, and makes it if it is missing.
func openPrivate(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = private(dir, info, 0o022)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// private checks that a file belongs to this user and grants no other user any of the forbidden permissions.
func private(name string, info fs.FileInfo, forbidden fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner is unknown", name)
	}
	if me := os.Geteuid(); int(stat.Uid) != me {
		return fmt.Errorf("%s belongs to user %d and not to user %d, who runs this program: choose another folder", name, stat.Uid, me)
	}
	if open := info.Mode().Perm() & forbidden; open != 0 {
		return fmt.Errorf("%s has mode %04o, which lets other users in: chmod go-rwx it", name, info.Mode().Perm())
	}
	return nil
}

// HasKey reports whether a folder has a key that [Open] would accept.
func HasKey(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(".")
	if err != nil || private(dir, info, 0o022) != nil {
		return false
	}
	key, err := readKey(root, filepath.Join(dir, keyFile))
	return err == nil && key != nil
}

// loadKey reads the MAC key, or makes it. The first of several processes makes it under a lock.
func loadKey(dir string, log *slog.Logger) (_ []byte, err error) {
	root, err := openPrivate(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	path := filepath.Join(dir, keyFile)
	if key, err := readKey(root, path); err != nil || key != nil {
		return key, err
	}
	l := flock.New(path+".lock", flock.SetPermissions(0o600))
	if err := l.Lock(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if key, err := readKey(root, path); err != nil || key != nil {
		return key, err
	}
	if _, err := root.Lstat(keyFile); err == nil {
		log.Warn("cache key is damaged and is replaced: what was cached with it is built again", "file", path)
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	if err := replace(root, keyFile, key, true); err != nil {
		return nil, err
	}
	return key, nil
}

// readKey returns nil if there is no key or a damaged one: of another length, or only zeros, which a file system may leave after a
// power failure.
func readKey(root *os.Root, path string) (_ []byte, err error) {
	f, err := openRegular(root, keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if bad, ok := errors.AsType[*forgedError](err); ok {
		return nil, fmt.Errorf("%s: %s", path, bad.reason)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := private(path, info, 0o077); err != nil {
		return nil, err
	}
	key, err := io.ReadAll(io.LimitReader(f, keySize+1))
	if err != nil {
		return nil, err
	}
	if len(key) != keySize || [keySize]byte(key) == [keySize]byte{} {
		return nil, nil
	}
	return key, nil
}
