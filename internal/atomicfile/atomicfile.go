// Package atomicfile replaces files in one step: afterwards a file holds all of the new data, or its previous content.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Folder is where files are replaced: an [*os.Root], or [Machine].
type Folder interface {
	Open(name string) (*os.File, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Rename(from, to string) error
	Remove(name string) error
	Lstat(name string) (fs.FileInfo, error)
}

// Machine is the whole file system, by the paths of the process.
type Machine struct{}

// Open implements [Folder], as do the other methods.
func (Machine) Open(name string) (*os.File, error) { return os.Open(name) }

// OpenFile is [os.OpenFile].
func (Machine) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}

// Rename is [os.Rename].
func (Machine) Rename(from, to string) error { return os.Rename(from, to) }

// Remove is [os.Remove].
func (Machine) Remove(name string) error { return os.Remove(name) }

// Lstat is [os.Lstat].
func (Machine) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// Replace writes data to temporary, a new file in the folder of name, and renames it to name. durable makes the file hold all of data or its
// previous content after a power failure, too. [SyncFolder] then makes sure that it holds the data.
func Replace(in Folder, name, temporary string, data []byte, mode fs.FileMode, durable bool) (err error) {
	f, err := in.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = in.Remove(temporary) // the first error says more
		}
	}()
	_, err = f.Write(data)
	if err == nil && durable {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return in.Rename(temporary, name)
}

// ReplaceLocked is a durable [Replace], with [SyncFolder], of a file that only its owner can read, for a caller that holds a lock on the
// file. A process that is killed leaves at most one temporary file, which the next call removes.
func ReplaceLocked(in Folder, name string, data []byte) error {
	temporary := name + ".tmp"
	if err := in.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := Replace(in, name, temporary, data, 0o600, true); err != nil {
		return err
	}
	return SyncFolder(in, name)
}

// ReplaceSpared is [ReplaceLocked] of a file that can always shrink, so that what it holds can be taken away on a full disk. A second file
// of the same size is kept beside it, and becomes the file if there is no room for a new one. A file grows only if both have room.
func ReplaceSpared(in Folder, name string, data []byte) error {
	spare := name + ".spare"
	if err := keep(in, spare, len(data)); err != nil {
		if before, statErr := in.Lstat(name); statErr != nil || before.Size() < int64(len(data)) {
			return err
		}
	}
	err := ReplaceLocked(in, name, data)
	if err == nil || !spares(in, spare, len(data)) {
		return err
	}
	if overwrite(in, spare, data) != nil {
		return err // the first error says more
	}
	if err := in.Rename(spare, name); err != nil {
		return err
	}
	_ = keep(in, spare, len(data)) // in the room of the previous file; if something else takes it, the next call tries again
	return SyncFolder(in, name)
}

// keep makes a spare file of a size, unless there is one.
func keep(in Folder, spare string, size int) error {
	temporary := spare + ".tmp"
	if err := in.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if spares(in, spare, size) {
		return nil
	}
	b := make([]byte, size)
	_, _ = rand.Read(b) // data that no file system compresses; it never fails
	return Replace(in, spare, temporary, b, 0o600, false)
}

// spares reports whether there is a spare file with room for size bytes. A link would make us write another file, and a pipe would wait
// for a reader.
func spares(in Folder, spare string, size int) bool {
	info, err := in.Lstat(spare)
	return err == nil && info.Mode().IsRegular() && info.Size() >= int64(size)
}

// overwrite writes data into the blocks that a file has.
func overwrite(in Folder, name string, data []byte) error {
	f, err := in.OpenFile(name, os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// SyncFolder makes the names in the folder of a file survive a power failure.
func SyncFolder(in Folder, name string) error {
	folder, err := in.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
