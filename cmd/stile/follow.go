package main

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// followed is a file that somebody edits while it is used. It is safe for concurrent use.
type followed struct {
	path  string
	known atomic.Pointer[fileState] // when the file was read last; nil when that is not sure
	mu    sync.Mutex                // held while it is read
}

// fileState is what changes with each change of a file. It is zero where no file can be found.
type fileState struct {
	device, inode     uint64
	size              int64
	modified, changed int64 // Unix nanoseconds
}

func stateOf(path string) (now fileState) {
	var s unix.Stat_t
	if unix.Stat(path, &s) == nil {
		now = fileState{uint64(s.Dev), s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()} //nolint:unconvert // Dev is int32 on Darwin
	}
	return now
}

// coarse is the most that a file system rounds times to. Of two changes within it, the second may leave the same state behind.
const coarse = 2 * time.Second

// each calls read unless the file is the one that was read last, and no error came of it. When each returns, somebody has read what the
// file was when it was called.
func (f *followed) each(read func() error) {
	if known := f.known.Load(); known != nil && *known == stateOf(f.path) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := stateOf(f.path) // before it is read, so that no change is missed
	if known := f.known.Load(); known != nil && *known == now {
		return // another goroutine was here first
	}
	f.known.Store(nil)
	sure := now == fileState{} || time.Since(time.Unix(0, max(now.modified, now.changed))) > coarse
	if err := read(); err == nil && sure {
		f.known.Store(&now)
	}
}
