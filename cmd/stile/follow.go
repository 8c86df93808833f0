package main

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// followed is a file that may be edited while it is used. It is safe for concurrent use.
type followed struct {
	path  string
	known atomic.Pointer[fileState] // the state at the last read; nil if that is uncertain
	mu    sync.Mutex                // held during a read
}

// fileState changes with each change of a file, and of a folder only when another takes its place. It is zero if there is neither.
type fileState struct {
	device, inode     uint64
	size              int64
	modified, changed int64 // Unix nanoseconds
}

func stateOf(path string) (now fileState) {
	var s unix.Stat_t
	if unix.Stat(path, &s) == nil {
		now = fileState{device: uint64(s.Dev), inode: s.Ino} //nolint:unconvert // Dev is int32 on Darwin
		if s.Mode&unix.S_IFMT != unix.S_IFDIR {
			now.size, now.modified, now.changed = s.Size, s.Mtim.Nano(), s.Ctim.Nano()
		}
	}
	return now
}

// coarse is the coarsest unit of file times. Two changes within it may leave the same state.
const coarse = 2 * time.Second

// each calls read unless the file is unchanged since the last read and that read succeeded. When each returns, the content at the
// time of the call was read.
func (f *followed) each(read func() error) {
	if known := f.known.Load(); known != nil && *known == stateOf(f.path) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := stateOf(f.path) // taken before the read, so that no change is missed
	if known := f.known.Load(); known != nil && *known == now {
		return // another goroutine was faster
	}
	f.known.Store(nil)
	sure := now == fileState{} || time.Since(time.Unix(0, max(now.modified, now.changed))) > coarse
	if err := read(); err == nil && sure {
		f.known.Store(&now)
	}
}
