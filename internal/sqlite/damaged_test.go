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

// TestDamagedSchema opens a file whose schema has more rows than anybody can read, because its pages refer to one page many times.
func TestDamagedSchema(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	words := sqlite.Schema{Kind: "words", ID: 45, Migrations: []string{`CREATE TABLE word (text)`}}
	db, err := sqlite.Open(t.Context(), file, words)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	sqlitetest.Endless(t, file)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if db, err := sqlite.Open(ctx, file, words); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v", db, err)
	}
}
