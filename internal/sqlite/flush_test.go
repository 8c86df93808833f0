package sqlite

import (
	"context"
	"errors"
	"os"
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

// TestFlushRenamed has no file descriptors left, and then another folder: what is said to be on the disk was flushed.
func TestFlushRenamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db := opened(t, filepath.Join(dir, "n.db"), counter)
	log := db.log
	if err := os.Rename(dir, dir+"-renamed"); err != nil {
		t.Fatal(err)
	}
	if err := add(t.Context(), db, 1); err != nil || db.log != log || log == nil {
		t.Errorf("another log is flushed: %v", err)
	}
	if is, err := log.Stat(); err != nil || is.Size() == 0 {
		t.Errorf("the log that is flushed has nothing: %v, %v", is, err)
	}
	if err := log.Close(); err != nil { // as if the disk failed
		t.Fatal(err)
	}
	if err := add(t.Context(), db, 1); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// TestFlushOtherLog has SQLite remove the log with its last connection, and make another.
func TestFlushOtherLog(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "n.db"), counter)
	log := db.log
	for _, p := range []*pool{db.readers, db.writer} {
		for _, c := range p.idle {
			if err := c.close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	db.sql.SetMaxIdleConns(-1)
	if _, err := os.Stat(db.file + "-wal"); err == nil {
		t.Fatal("the log is still there")
	}
	if err := add(t.Context(), db, 1); err != nil || db.log == log {
		t.Errorf("the old log is flushed: %v", err)
	}
}

// TestMarkedIsOnDisk asks for a change that nobody has waited for.
func TestMarkedIsOnDisk(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "n.db"), Schema{Kind: "marks", ID: 43, Migrations: []string{OnceTable}})
	ctx := abi.WithOnce(t.Context(), abi.Once{Run: "run", Sequence: 7})
	if err := db.UpdateSoon(ctx, func(c *Conn) error { return Mark(ctx, c, []byte("7")) }); err != nil {
		t.Fatal(err)
	}
	flushes, flush := 0, db.flusher.flush
	db.flusher.flush = func() error { flushes++; return flush() }
	if answer, is, err := Marked(ctx, db); string(answer) != "7" || !is || err != nil || flushes != 1 {
		t.Errorf("got %s, %t, %v after %d waits for the disk", answer, is, err, flushes)
	}
}

// TestCloseWaits closes a file while changes wait for the disk.
func TestCloseWaits(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "n.db"), counter)
	began, release := make(chan struct{}), make(chan struct{})
	flush := db.flusher.flush
	db.flusher.flush = func() error {
		close(began)
		<-release
		return flush()
	}
	updated, closed := make(chan error, 1), make(chan error, 1)
	go func() { updated <- add(context.WithoutCancel(t.Context()), db, 1) }()
	<-began
	go func() { closed <- db.Close() }()
	close(release)
	if err := errors.Join(<-updated, <-closed); err != nil {
		t.Error(err)
	}
}
