package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/stilehost/stile/abi"
)

// flusher has transactions that are committed written to the disk. Those that are committed while it waits for the disk wait for it together, after
// that.
type flusher struct {
	flush func() error

	mu    sync.Mutex
	next  *flushing  // which has not begun
	begun sync.Mutex // held by the one that waits for the disk
}

// flushing is one wait for the disk.
type flushing struct {
	done chan struct{}
	err  error // once it is done
}

// wait returns when everything is on the disk that was committed before.
func (f *flusher) wait() error {
	f.mu.Lock()
	one := f.next
	first := one == nil
	if first {
		one = &flushing{done: make(chan struct{})}
		f.next = one
	}
	f.mu.Unlock()
	if !first {
		<-one.done
		return one.err
	}
	f.begun.Lock()
	defer f.begun.Unlock()
	f.mu.Lock()
	f.next = nil // who comes now has committed too late for this one
	f.mu.Unlock()
	one.err = f.flush()
	close(one.done)
	return one.err
}

// flushLog writes the write-ahead log to the disk. What is not in it any more is in the file: SQLite waits for the disk before it starts the log anew or
// removes it. The log has no locks of SQLite that closing it could drop.
func (db *DB) flushLog() error {
	log, err := os.OpenFile(db.file+"-wal", os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(log.Sync(), log.Close())
	}
	if err == nil {
		return nil
	}
	db.fault.CompareAndSwap(nil, &err)
	return abi.Errorf(abi.CodeUnavailable, "%s: %v", db.kind, err)
}
