package cache

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"
)

// touch marks an entry as used, through the times of its files. If that fails, the entry is only removed earlier.
func (c *Cache) touch(f *os.File, names ...string) {
	now := time.Now()
	if info, err := f.Stat(); err != nil || now.Sub(info.ModTime()) < touchAfter {
		return
	}
	for _, name := range names {
		_ = c.root.Chtimes(name, now, now)
	}
}

// Renew marks an entry as used without reading it. A missing entry stays missing.
func (c *Cache) Renew(kind, key string) {
	name, err := c.recordName(kind, key)
	if err != nil {
		return
	}
	f, err := openRegular(c.root, name)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if record, err := io.ReadAll(io.LimitReader(f, recordSize)); err == nil && len(record) == recordSize {
		c.touch(f, name, objectName(record[8:recordSize-sha256.Size]))
	}
}

// stored is a file of the cache.
type stored struct {
	name string
	size int64
	used time.Time
}

// sweep makes room if the objects are larger than c.max. Of the objects older than an hour, it removes the least recently used, with
// all records and left-over files that are as old. It does nothing if another sweep, in any process, is under way or began less than
// a minute ago.
func (c *Cache) sweep() error {
	now := time.Now()
	if err := makeFolder(c.root, locks); err != nil {
		return err
	}
	name := path.Join(locks, "sweep")
	if info, err := c.root.Lstat(name); err == nil && now.Sub(info.ModTime()).Abs() < sweepEvery {
		return nil
	}
	l := c.lockFile("sweep")
	if held, err := l.TryLock(); !held || err != nil {
		return errors.Join(err, l.Close())
	}
	err := c.root.Chtimes(name, now, now)
	if err == nil {
		err = c.makeRoom(now.Add(-minAge))
	}
	return errors.Join(err, l.Close())
}

// makeRoom removes objects that were last used before the given time, until there is enough room.
func (c *Cache) makeRoom(before time.Time) error {
	contents, err := c.stored(objects)
	if err != nil {
		return err
	}
	var size int64
	for _, o := range contents {
		size += o.size
	}
	slices.SortFunc(contents, func(a, b stored) int { return a.used.Compare(b.used) })
	var last time.Time // last use of the removed entries
	n := 0
	for ; n < len(contents) && size > c.max && contents[n].used.Before(before); n++ {
		size -= contents[n].size
		last = contents[n].used
	}
	folders, err := fs.ReadDir(c.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		switch kind := folder.Name(); {
		case kind == objects || !folder.IsDir() || !kindPattern.MatchString(kind): // others keep folders here too, such as npm
		case kind == locks:
			err = errors.Join(err, c.removeLocks(before))
		default:
			err = errors.Join(err, c.removeRecords(kind, last))
		}
	}
	for _, o := range contents[:n] {
		err = errors.Join(err, c.remove(o.name))
	}
	return err
}

// removeRecords removes the records of a kind that were last used at a time or earlier.
func (c *Cache) removeRecords(kind string, last time.Time) error {
	records, err := c.stored(kind)
	for _, r := range records {
		if !r.used.After(last) {
			err = errors.Join(err, c.remove(r.name))
		}
	}
	return err
}

// removeLocks removes lock files from before a time that no process holds. They belong to processes that were killed.
func (c *Cache) removeLocks(before time.Time) error {
	files, err := c.stored(locks)
	for _, f := range files {
		if !f.used.Before(before) {
			continue
		}
		l := c.lockFile(path.Base(f.name))
		if held, _ := l.TryLock(); held && c.current(l) {
			c.unlock(l)
			continue
		}
		err = errors.Join(err, l.Close())
	}
	return err
}

// stored lists the files of a folder of the cache. It leaves out folders, which belong to others, and files that are removed meanwhile.
func (c *Cache) stored(folder string) ([]stored, error) {
	entries, err := fs.ReadDir(c.root.FS(), folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files := make([]stored, 0, len(entries))
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, stored{path.Join(folder, e.Name()), info.Size(), info.ModTime()})
	}
	return files, nil
}

func (c *Cache) remove(name string) error {
	if err := c.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
