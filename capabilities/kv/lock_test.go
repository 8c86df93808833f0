package kv

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
)

// TestNoOperationHoldsTheLock has every operation change a bounded number of rows, in a bucket as full as it may be, and others write
// between them.
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
	other, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	large, larger := strings.Repeat("1", 1<<20), strings.Repeat("2", 1<<20)
	for _, op := range []struct {
		name string
		do   func(ctx context.Context, b *Bucket) error
		err  error
	}{
		{"set", func(ctx context.Context, b *Bucket) error { return b.Set(ctx, "large", large) }, nil},
		{"increment", func(ctx context.Context, b *Bucket) error { _, err := b.Increment(ctx, "n", 1); return err }, nil},
		{"increment what is no number", func(ctx context.Context, b *Bucket) error { _, err := b.Increment(ctx, "large", 1); return err }, abi.ErrInvalid},
		{"compare and set", func(ctx context.Context, b *Bucket) error {
			_, err := b.CompareAndSet(ctx, "large", &large, &larger)
			return err
		}, nil},
		{"delete", func(ctx context.Context, b *Bucket) error { _, err := b.Delete(ctx, "large"); return err }, nil},
	} {
		transactions, most := 0, int64(0)
		ctx := sqlite.Observe(t.Context(), func() func(int64) {
			transactions++
			return func(changes int64) { most = max(most, changes) }
		})
		if err := op.do(ctx, s.Bucket("b")); !errors.Is(err, op.err) {
			t.Fatalf("%s: got %v, want %v", op.name, err, op.err)
		}
		if transactions != 1 || most > 3 { // the entry and the usage
			t.Errorf("%s: %d transactions, %d rows in one", op.name, transactions, most)
		}
		if err := other.Bucket("other").Set(t.Context(), "k", op.name); err != nil {
			t.Errorf("beside %s: %v", op.name, err)
		}
	}
	page, err := s.Bucket("b").List(t.Context(), "key/", 1<<31, nil)
	if err != nil || len(page.Entries) != maxPage || page.Cursor == nil {
		t.Errorf("%d entries, %v", len(page.Entries), err)
	}
}
