package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/sqlite/sqlitetest"
)

// TestIntact checks a database whose schema has more rows than anybody can read.
func TestIntact(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kv.db")
	db, err := sqlite.Open(t.Context(), file, sqlite.Schema{Kind: "words", ID: 45, Migrations: []string{`CREATE TABLE word (text)`}})
	if err == nil {
		err = db.Close()
	}
	if err == nil {
		err = sqlite.Intact(t.Context(), file, 1<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	sqlitetest.Endless(t, file)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := sqlite.Intact(ctx, file, 1<<20); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
