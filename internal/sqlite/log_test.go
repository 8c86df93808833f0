package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

var rows = Schema{Kind: "rows", ID: 43, Migrations: []string{`CREATE TABLE row (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT`}}

// put writes 2 MiB, over what was written before.
func put(t *testing.T, db *DB) {
	t.Helper()
	if err := db.Update(t.Context(), func(c *Conn) error {
		_, err := c.Exec(t.Context(), `INSERT OR REPLACE INTO row VALUES (1, randomblob(?))`, 2<<20)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func logSize(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestLogIsBounded writes while readers overlap: there is always one that needs an older state than the newest.
func TestLogIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	db, other := opened(t, file, rows), opened(t, file, rows)
	put(t, db)
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	begun := make(chan struct{})
	for range 2 { // each ends its transaction when the other has begun one
		wait.Go(func() {
			for ctx.Err() == nil {
				if err := other.View(ctx, func(c *Conn) error {
					var n int
					if err := c.Row(ctx, `SELECT count(*) FROM row`).Scan(&n); err != nil {
						return err
					}
					select {
					case begun <- struct{}{}:
					case <-begun:
					case <-ctx.Done():
					}
					return nil
				}); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for range maxLog/(2<<20) + 4 {
		put(t, db)
		if size := logSize(t, file); size > maxLog {
			t.Fatalf("the log has %d bytes after a transaction", size)
		}
	}
}

// TestLongReader has a reader that ends only after many transactions. They continue, and afterwards the log is short again.
func TestLongReader(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	db := opened(t, file, rows)
	put(t, db)
	long := errors.New("long")
	if err := db.View(t.Context(), func(c *Conn) error {
		var n int
		if err := c.Row(t.Context(), `SELECT count(*) FROM row`).Scan(&n); err != nil {
			return err
		}
		for logSize(t, file) <= maxLog+8<<20 {
			put(t, db)
		}
		return long
	}); !errors.Is(err, long) {
		t.Fatal(err)
	}
	for range 4 {
		put(t, db)
	}
	if size := logSize(t, file); size > maxLog {
		t.Errorf("the log has %d bytes", size)
	}
}
