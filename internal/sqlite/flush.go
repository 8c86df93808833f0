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

// openLog opens the write-ahead log to flush it, unless that is the one that is open. It stays open, so that to flush it takes no file descriptor, and no path: somebody can rename the folder.
// SQLite has no locks in the log that closing it could drop.
func (db *DB) openLog() error {
	there, err := os.Stat(db.file + "-wal")
	if err != nil && db.log != nil {
		return nil // it has another name now, or SQLite has removed it
	}
	if err != nil {
		return err
	}
	if db.log != nil {
		if is, err := db.log.Stat(); err == nil && os.SameFile(is, there) {
			return nil
		}
	}
	log, err := os.OpenFile(db.file+"-wal", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if db.log != nil {
		_ = db.log.Close() // of a log that SQLite has removed
	}
	db.log = log
	return nil
}

// flushLog writes the write-ahead log to the disk. What is not in it any more is in the file: SQLite waits for the disk before it starts the log anew or
// removes it.
func (db *DB) flushLog() error {
	err := db.openLog()
	if db.log == nil && errors.Is(err, fs.ErrNotExist) {
		return nil // SQLite writes another journal as long as the file has no log
	}
	if db.log != nil {
		err = errors.Join(err, db.log.Sync())
	}
	if err == nil {
		return nil
	}
	db.fault.CompareAndSwap(nil, &err)
	return abi.Errorf(abi.CodeUnavailable, "%s: %v", db.kind, err)
}

// onDisk returns when everything is on the disk that was committed before.
func (db *DB) onDisk() error {
	db.flushing.RLock()
	defer db.flushing.RUnlock()
	return db.flusher.wait()
}

// closeLog closes the log, once nobody waits for the disk any more.
func (db *DB) closeLog() error {
	db.flushing.Lock()
	defer db.flushing.Unlock()
	if db.log == nil {
		return nil
	}
	return db.log.Close()
}
