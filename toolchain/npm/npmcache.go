package npm

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	// maxNPMCache is how large npm's own cache becomes before it is emptied, in bytes. Runs that began before may add to it, until it is
	// twice as large.
	maxNPMCache = 1 << 30
	block       = 4 << 10 // bytes that a file or folder takes at least
	lockEvery   = 20 * time.Millisecond
)

// shareCache waits until npm's own cache may be used. It empties a cache that is too large, while no process uses it.
func (c *Client) shareCache(ctx context.Context) (*flock.Flock, error) {
	dir := filepath.Join(c.o.CacheDir, npmCacheName)
	lock := flock.New(dir+".lock", flock.SetPermissions(0o600))
	for {
		size, err := sizeOf(dir)
		full := size > c.maxCache
		if err == nil && full { // everybody who comes now waits for those at work, so their number falls to none
			if _, err = lock.TryLockContext(ctx, lockEvery); err == nil {
				if size, err = sizeOf(dir); err == nil && size > c.maxCache {
					err = os.RemoveAll(dir)
				}
				err = errors.Join(err, lock.Unlock())
			}
		} else if err == nil {
			_, err = lock.TryRLockContext(ctx, lockEvery)
		}
		switch {
		case ctx.Err() != nil:
			return nil, errors.Join(c.ended(ctx, "waiting for others that use its cache"), lock.Close())
		case err != nil:
			return nil, noRoom(errors.Join(err, lock.Close()))
		case !full:
			return lock, nil
		}
	}
}

// sizeOf returns the bytes that a folder takes on disk, which may change meanwhile. A registry can have npm keep documents of a few bytes,
// each with folders of its own.
func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		if info, err := entry.Info(); err == nil {
			size += max(info.Size(), block)
		}
		return nil
	})
	return size, err
}
