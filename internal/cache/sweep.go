package cache

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/internal/private"
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

// sweep counts n bytes that were added, and makes room once many were added since the last sweep. It does nothing if another sweep, in
// any process, is under way.
func (c *Cache) sweep(n int64) error {
	if err := makeFolder(c.root, locks); err != nil {
		return err
	}
	l := c.lockFile(sweepFile)
	if err := private.ClearLock(l.Path()); err != nil {
		return err
	}
	added, err := c.count(n)
	if err != nil || added < c.max/sweepPart {
		return err
	}
	if held, err := l.TryLock(); !held || err != nil {
		return errors.Join(err, l.Close())
	}
	f, err := c.root.OpenFile(path.Join(locks, sweepFile), os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(f.Close(), c.makeRoom(time.Now().Add(-minAge)))
	}
	return errors.Join(err, l.Close())
}

// count returns how many bytes were added since the last sweep, by all processes, n more included.
func (c *Cache) count(n int64) (added int64, err error) {
	f, err := c.root.OpenFile(path.Join(locks, sweepFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = f.Write(make([]byte, n/countUnit+1))
	info, statErr := f.Stat()
	if err := errors.Join(err, statErr, f.Close()); err != nil {
		return 0, err
	}
	return info.Size() * countUnit, nil
}

// takes is what an object takes on disk, with its record: whole blocks.
func (s stored) takes() int64 { return (s.size+block-1)/block*block + block }

// unfinished reports whether the file is being written, or was left behind by a process that was killed.
func (s stored) unfinished() bool { return strings.HasPrefix(path.Base(s.name), temporary) }

// makeRoom removes the least recently used objects, with all records that are as old, until there is enough room. It removes unfinished
// files and unused locks that are older than the given time.
func (c *Cache) makeRoom(before time.Time) error {
	contents, err := c.stored(objects)
	if err != nil {
		return err
	}
	var size int64
	for _, o := range contents {
		size += o.takes()
	}
	slices.SortFunc(contents, func(a, b stored) int { return a.used.Compare(b.used) })
	var last time.Time // last use of the removed entries
	var gone []stored
	for _, o := range contents {
		switch {
		case o.unfinished() && !o.used.Before(before):
		case o.unfinished():
			size -= o.takes()
			gone = append(gone, o)
		case size > c.max:
			size -= o.takes()
			gone = append(gone, o)
			last = o.used
		}
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
			err = errors.Join(err, c.removeRecords(kind, last, before))
		}
	}
	for _, o := range gone {
		err = errors.Join(err, c.remove(o.name))
	}
	return err
}

// removeRecords removes the records of a kind that were last used at a time or earlier, and unfinished ones from before another time.
func (c *Cache) removeRecords(kind string, last, before time.Time) error {
	records, err := c.stored(kind)
	for _, r := range records {
		if r.unfinished() && r.used.Before(before) || !r.unfinished() && !r.used.After(last) {
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
		unclear := private.ClearLock(l.Path())
		if unclear == nil {
			if held, _ := l.TryLock(); held && c.current(l) {
				c.unlock(l)
				continue
			}
		}
		err = errors.Join(err, unclear, l.Close())
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
