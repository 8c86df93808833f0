//go:build unix

// Package stamp keeps a file of eight bytes next to a store, which names the newest state of the store. A process that has read a
// state can check with two system calls, without querying the store, that it is still the newest.
//
// Each state has its own stamp: 64 random bits that the store keeps with it. Two rules ensure that the file never names an outdated
// state:
//
//   - A process that changes the store holds its write lock, and clears the file before the commit.
//   - A process that writes a stamp to the file holds the write lock too, and writes the stamp of the state in the store.
//
// Between these steps, and after a process was killed at any point, the file names no state, and every process asks the store. The
// processes must share one kernel, because a network file system shows other machines' writes late.
package stamp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	size = 8
	// A file of another kind in its place, such as a pipe, must not block the process.
	flags = unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
)

// File is the file as one process sees it. It is safe for concurrent use. Its creator closes it.
type File struct {
	path string

	mu     sync.RWMutex
	fd     int // -1 when there is none
	id     identity
	closed bool
}

// identity distinguishes files.
type identity struct{ device, inode uint64 }

func identityOf(s *unix.Stat_t) identity { return identity{uint64(s.Dev), s.Ino} } //nolint:unconvert // Dev is int32 on Darwin

// New returns the file of this path, which need not exist.
func New(path string) *File {
	f := &File{path: path, fd: -1}
	f.Look()
	return f
}

// Is reports whether the file names this state. If so, no other state is in the store.
func (f *File) Is(stamp int64) bool {
	if stamp == 0 {
		return false // 0 is the content of a cleared file
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.fd < 0 {
		return false
	}
	var b [size]byte
	if n, err := unix.Pread(f.fd, b[:], 0); err != nil || n != size || int64(binary.LittleEndian.Uint64(b[:])) != stamp {
		return false
	}
	// A removed file is never cleared. This check comes second, so the file was there when it was read.
	var s unix.Stat_t
	return unix.Fstat(f.fd, &s) == nil && s.Nlink > 0
}

// Look checks whether another file has replaced the one that was read. Is does so for a removed file.
func (f *File) Look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var s unix.Stat_t
	there := !f.closed && unix.Lstat(f.path, &s) == nil && s.Mode&unix.S_IFMT == unix.S_IFREG
	if there && f.fd >= 0 && identityOf(&s) == f.id {
		return
	}
	f.drop()
	if !there {
		return
	}
	fd, err := unix.Open(f.path, unix.O_RDONLY|flags, 0)
	if err != nil {
		return
	}
	f.fd = fd
	if err := unix.Fstat(fd, &s); err != nil {
		f.drop()
	}
	f.id = identityOf(&s)
}

func (f *File) drop() {
	if f.fd >= 0 {
		_ = unix.Close(f.fd) // it was only read
		f.fd = -1
	}
}

// Close releases the file. Is then reports false.
func (f *File) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop()
	f.closed = true
}

// Clear makes the file name no state. The caller holds the write lock of the store, and commits only if Clear succeeds.
func (f *File) Clear() error {
	fd, err := unix.Open(f.path, unix.O_WRONLY|flags, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil // a missing file vouches for nothing
	}
	if err == nil {
		err = write(fd, 0)
	}
	if err == nil {
		return nil
	}
	if removed := os.Remove(f.path); removed != nil { // some full disks allow removal but no writing
		return fmt.Errorf("clear %s: %w", f.path, errors.Join(err, removed))
	}
	return nil
}

// Set makes the file name a state. The caller holds the write lock of the store, and the state is the newest committed one.
func (f *File) Set(stamp int64) error {
	var s unix.Stat_t
	if err := unix.Lstat(f.path, &s); err == nil && s.Mode&unix.S_IFMT != unix.S_IFREG {
		if err := os.Remove(f.path); err != nil {
			return err
		}
	}
	fd, err := unix.Open(f.path, unix.O_WRONLY|unix.O_CREAT|flags, 0o600)
	if err == nil {
		err = write(fd, stamp)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	f.Look()
	return nil
}

// write writes a stamp to a file, and closes it.
func write(fd int, stamp int64) error {
	var b [size]byte
	binary.LittleEndian.PutUint64(b[:], uint64(stamp))
	n, err := unix.Pwrite(fd, b[:], 0)
	if err == nil && n != size {
		err = unix.EIO
	}
	return errors.Join(err, unix.Close(fd))
}
