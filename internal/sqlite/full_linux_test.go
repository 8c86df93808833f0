package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehost/stile/internal/disktest"
)

// TestFailuresLeaveNothingOpen has transactions fail again and again, because the disk is full or the caller leaves. Each failure can cost a
// connection, which is closed for good.
func TestFailuresLeaveNothingOpen(t *testing.T) {
	if !disktest.Mounts(t) {
		return
	}
	dir := t.TempDir()
	disktest.Mount(t, dir, "size=1m")
	db, err := Open(t.Context(), filepath.Join(dir, "a.db"), Schema{Kind: "test", ID: 77, Migrations: []string{`CREATE TABLE t (x BLOB)`}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	insert := func() error {
		return db.Update(t.Context(), func(c *Conn) error {
			_, err := c.Exec(t.Context(), `INSERT INTO t VALUES (zeroblob(20000))`)
			return err
		})
	}
	if err := insert(); err != nil {
		t.Fatal(err)
	}
	open := func() int {
		t.Helper()
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	fails := func(why string, f func() error) {
		t.Helper()
		before := open()
		for range 20 {
			if err := f(); err == nil {
				t.Fatalf("%s: no failure", why)
			}
		}
		if after := open(); after > before+2 {
			t.Errorf("%s: %d files are open after 20 failures, and %d before", why, after, before)
		}
	}
	fails("the caller leaves", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		return db.Update(ctx, func(c *Conn) error {
			_, err := c.Exec(ctx, `INSERT INTO t WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0`)
			return err
		})
	})
	disktest.Fill(t, dir)
	fails("the disk is full", insert)
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	if err := insert(); err != nil {
		t.Errorf("after there is room again: %v", err)
	}
}
