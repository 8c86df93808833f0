package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
)

// reserveSize is the size of a Reserve in bytes, enough for a few hundred small transactions, and lentSize what Free frees of it at a time: as much as it
// takes to open a database.
const (
	reserveSize = 1 << 20
	lentSize    = 64 << 10
)

// Reserve is the path of a file that reserves disk space for data that must be written even when the disk is full.
type Reserve string

// Fill makes the file if it is missing, and longer if it is short. Only its owner can read it. If there is less room, Fill takes all of it, and
// returns an error.
func (r Reserve) Fill() error {
	info, err := os.Lstat(string(r))
	missing, flags := int64(reserveSize), os.O_CREATE|os.O_EXCL
	switch {
	case err == nil && info.Mode().IsRegular() && info.Size() <= reserveSize: // keeps what it has, which others would take
		missing, flags = reserveSize-info.Size(), os.O_APPEND
	case err == nil: // a pipe would wait for a reader, and a link would make us write another file
		if err := os.Remove(string(r)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if missing == 0 {
		return nil
	}
	f, err := os.OpenFile(string(r), os.O_WRONLY|flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	}
	if err != nil {
		return err
	}
	b := make([]byte, missing)
	_, _ = rand.Read(b) // data that no file system compresses; it never fails
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// Open opens a database whose disk may be full: as long as there is no room to open it, it frees reserved space.
func (r Reserve) Open(ctx context.Context, file string, s Schema) (*DB, error) {
	db, err := Open(ctx, file, s)
	for noRoom(err) && r.Free() {
		db, err = Open(ctx, file, s)
	}
	return db, err
}

// Free frees a part of the space, and in the end removes the file. It reports whether there was any. Call it until what needs room succeeds: others
// who wait for room get no more than one part at a time. [Reserve.Fill] takes it back.
func (r Reserve) Free() bool { return r.lend() || r.Spend() }

// lend frees a part of the space, and reports whether there was any.
func (r Reserve) lend() bool {
	info, err := os.Lstat(string(r))
	return err == nil && info.Mode().IsRegular() && info.Size() > 0 && os.Truncate(string(r), max(0, info.Size()-lentSize)) == nil
}

// Spend frees the space, and reports whether there was any.
func (r Reserve) Spend() bool { return os.Remove(string(r)) == nil }
