package npm

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

const (
	// maxNPMCache is how large npm's own cache becomes before its older half is removed, in bytes. Runs that began before may add to it, until
	// it is twice as large.
	maxNPMCache = 1 << 30
	block       = 4 << 10 // bytes that a file or folder takes at least
	lockEvery   = 20 * time.Millisecond
)

// CacheSize returns the bytes that npm's own cache takes below a CacheDir, how many it takes before its older half is removed, and its folder,
// which may be removed while nothing runs npm. Without a cache it takes none.
func CacheSize(cacheDir string) (size, most int64, folder string, err error) {
	folder = filepath.Join(cacheDir, npmCacheName)
	size, err = sizeOf(folder)
	return size, maxNPMCache, folder, err
}

// shareCache waits until npm's own cache may be used. It makes room in a cache that is too large, while no process uses it.
func (c *Client) shareCache(ctx context.Context) (*flock.Flock, error) {
	dir := filepath.Join(c.o.CacheDir, npmCacheName)
	lock := flock.New(dir+".lock", flock.SetPermissions(0o600))
	for {
		size, err := sizeOf(dir)
		full := size > c.maxCache
		if err == nil && full { // everybody who comes now waits for those at work, so their number falls to none
			if _, err = lock.TryLockContext(ctx, lockEvery); err == nil {
				if size, err = sizeOf(dir); err == nil && size > c.maxCache {
					err = makeRoom(dir, size-c.maxCache/2)
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

// makeRoom removes the oldest files of a folder, and more of them than have these bytes: all of one hour go together. npm fetches what is
// missing again. Who serves the files does not choose their times.
func makeRoom(dir string, bytes int64) error {
	hourOf := func(info fs.FileInfo) int64 { return info.ModTime().Unix() / 3600 }
	inHour := map[int64]int64{}
	walk := func(do func(name string, info fs.FileInfo) error) error {
		return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && entry.IsDir() {
				return nil
			}
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return nil // it is gone
			}
			return do(name, info)
		})
	}
	if err := walk(func(_ string, info fs.FileInfo) error {
		inHour[hourOf(info)] += max(info.Size(), block)
		return nil
	}); err != nil {
		return err
	}
	var until int64
	for _, hour := range slices.Sorted(maps.Keys(inHour)) {
		if until = hour; bytes <= 0 {
			break
		}
		bytes -= inHour[hour]
		until++
	}
	if bytes > 0 { // the folders take the rest
		return os.RemoveAll(dir)
	}
	if err := walk(func(name string, info fs.FileInfo) error {
		if hourOf(info) >= until {
			return nil
		}
		return os.Remove(name)
	}); err != nil {
		return err
	}
	return removeEmpty(dir)
}

// removeEmpty removes the empty folders in a folder.
func removeEmpty(dir string) error {
	var folders []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && name != dir {
			folders = append(folders, name)
		}
		return err
	})
	for _, name := range slices.Backward(folders) { // the inner ones first
		_ = os.Remove(name) // one with files stays
	}
	return err
}
