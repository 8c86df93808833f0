//go:build unix

package cache

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/stilehost/stile/internal/private"
)

const (
	keyFile = "cache.key"
	keySize = 32
)

// HasKey reports whether a folder has a key that [Open] would accept.
func HasKey(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(".")
	if err != nil || private.Check(dir, info, private.Write) != nil {
		return false
	}
	key, err := readKey(filepath.Join(dir, keyFile))
	return err == nil && key != nil
}

// loadKey reads the MAC key, or makes it. The first of several processes makes it under a lock.
func loadKey(dir string, log *slog.Logger) (_ []byte, err error) {
	root, err := private.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	path := filepath.Join(dir, keyFile)
	if key, err := readKey(path); err != nil || key != nil {
		return key, err
	}
	l := flock.New(path+".lock", flock.SetPermissions(0o600))
	if err := l.Lock(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if key, err := readKey(path); err != nil || key != nil {
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
func readKey(path string) (_ []byte, err error) {
	f, err := private.OpenFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	key, err := io.ReadAll(io.LimitReader(f, keySize+1))
	if err != nil {
		return nil, err
	}
	if len(key) != keySize || [keySize]byte(key) == [keySize]byte{} {
		return nil, nil
	}
	return key, nil
}
