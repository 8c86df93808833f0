package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stilehost/stile/abi"
)

// count is what others see of the counter.
func count(t *testing.T, db *DB) (n int) {
	t.Helper()
	if err := db.Read(t.Context(), func(c *Conn) error { return c.Row(t.Context(), `SELECT v FROM n`).Scan(&n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestUpdateWaits has changes, of which those must be on the disk that are said to be.
func TestUpdateWaits(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "n.db"), counter)
	failed, disk := errors.New("failed"), abi.Errorf(abi.CodeUnavailable, "the disk failed")
	flushes, committed := 0, 0
	var broken error
	flush := db.flusher.flush
	db.flusher.flush = func() error {
		flushes++
		committed = count(t, db)
		return errors.Join(broken, flush())
	}
	for i, step := range []struct {
		name         string
		update       func(context.Context, func(*Conn) error) error
		fails, disks error
		flushes      int
	}{
		{"soon", db.UpdateSoon, nil, nil, 0},
		{"now", db.Update, nil, nil, 1},
		{"soon, which fails", db.UpdateSoon, failed, nil, 0},
		{"now, which fails", db.Update, failed, nil, 0},
		{"now, and the disk fails", db.Update, nil, disk, 1},
		{"now, after that", db.Update, nil, nil, 1},
	} {
		flushes, broken = 0, step.disks
		err := step.update(t.Context(), func(c *Conn) error {
			_, err := c.Exec(t.Context(), `UPDATE n SET v = ?`, i+1)
			return errors.Join(err, step.fails)
		})
		if want := errors.Join(step.fails, step.disks); (err == nil) != (want == nil) || want != nil && !errors.Is(err, step.fails) && !errors.Is(err, abi.ErrUnavailable) {
			t.Errorf("%s: got %v, want %v", step.name, err, want)
		}
		if flushes != step.flushes || flushes > 0 && committed != i+1 {
			t.Errorf("%s: %d waits for the disk, want %d, with %d committed", step.name, flushes, step.flushes, committed)
		}
	}
}

// TestFlushTogether has many wait for the disk at once. Each returns after a wait that began when its change was committed, and those that came during one
// share the next.
func TestFlushTogether(t *testing.T) {
	const callers = 50
	var committed, flushed, flushes atomic.Int64
	first, release := make(chan struct{}), make(chan struct{})
	f := flusher{flush: func() error {
		seen := committed.Load()
		if flushes.Add(1) == 1 {
			close(first)
			<-release
		}
		flushed.Store(seen)
		return nil
	}}
	var all sync.WaitGroup
	one := func() {
		mine := committed.Add(1)
		if err := f.wait(); err != nil || flushed.Load() < mine {
			t.Errorf("change %d is not on the disk: %v", mine, err)
		}
	}
	all.Go(one)
	<-first
	for range callers {
		all.Go(one)
	}
	for committed.Load() <= callers {
		runtime.Gosched()
	}
	close(release)
	all.Wait()
	if n := flushes.Load(); n < 2 || n > callers/2 {
		t.Errorf("%d waits for the disk", n)
	}
}

// TestFlushDamaged has a log that cannot be flushed: whoever waits is told, and the fault is kept.
func TestFlushDamaged(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "n.db"), counter)
	file := db.file
	db.file = filepath.Join(file, "no folder") // so that the log cannot be opened
	if err := db.flusher.wait(); !errors.Is(err, abi.ErrUnavailable) || db.Fault() == nil {
		t.Errorf("got %v, and the fault %v", err, db.Fault())
	}
	db.file = file + "-none"
	if err := db.flusher.wait(); err != nil {
		t.Errorf("a log that is not there any more: %v", err)
	}
	db.file = file
}
