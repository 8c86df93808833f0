package kv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { os.Exit(sqlitetest.InMemory(m.Run)) }

// TestBeside is the second process of TestNoOperationHoldsTheLock.
func TestBeside(t *testing.T) {
	sqlitetest.Beside(t, func(file string) (func(int) error, func() error, error) {
		s, err := Open(t.Context(), file, Options{})
		if err != nil {
			return nil, nil, err
		}
		b := s.Bucket("beside")
		return func(n int) error { return b.Set(t.Context(), fmt.Sprint(n%10), fmt.Sprint(n)) }, s.Close, nil
	})
}

// TestNoOperationHoldsTheLock runs every operation in a full bucket, while a second process writes to the same store.
func TestNoOperationHoldsTheLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kv.db")
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	const keys = 99_990
	if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error {
		for i := range keys {
			if _, err := c.Exec(t.Context(), `INSERT INTO entry VALUES ('b', ?, ?)`, fmt.Appendf(nil, "key/%06d", i), "v"); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b := s.Bucket("b")
	large, larger := strings.Repeat("1", 1<<20), strings.Repeat("2", 1<<20)
	sqlitetest.HoldNoLock(t, s.db, file, "TestBeside", []sqlitetest.Operation{ // they change the entry and the usage
		{Name: "set", Rows: 3, Do: func(ctx context.Context) error { return b.Set(ctx, "large", large) }},
		{Name: "increment", Rows: 3, Do: func(ctx context.Context) error { _, err := b.Increment(ctx, "n", 1); return err }},
		{Name: "increment what is no number", Do: func(ctx context.Context) error { _, err := b.Increment(ctx, "large", 1); return err }, Err: abi.ErrInvalid},
		{Name: "compare and set", Rows: 3, Do: func(ctx context.Context) error {
			_, err := b.CompareAndSet(ctx, "large", &large, &larger)
			return err
		}},
		{Name: "delete", Rows: 3, Do: func(ctx context.Context) error { _, err := b.Delete(ctx, "large"); return err }},
	})
	page, err := b.List(t.Context(), "key/", 1<<31, nil)
	if err != nil || len(page.Entries) != maxPage || page.Cursor == nil {
		t.Errorf("%d entries, %v", len(page.Entries), err)
	}
	for i := range 5 {
		if err := b.Set(t.Context(), fmt.Sprint("large", i), large); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Bucket("c").Set(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	sqlitetest.HoldNoLock(t, s.db, file, "TestBeside", []sqlitetest.Operation{
		{Name: "remove", Least: keys/removedAtOnce + 5, Rows: 3 * removedAtOnce, Do: func(ctx context.Context) error { return s.Remove(ctx, "b") }},
	})
	if all, err := s.Buckets(t.Context()); err != nil || len(all) != 2 || all[0].Name != "beside" || all[1] != (Kept{"c", 1, 2}) {
		t.Errorf("got %+v, %v", all, err)
	}
}
