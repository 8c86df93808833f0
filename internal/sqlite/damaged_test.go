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

// TestDamagedSchema opens and checks a file whose schema has more rows than anybody can read, because its pages refer to one page many times.
func TestDamagedSchema(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	words := sqlite.Schema{Kind: "words", ID: 45, Migrations: []string{`CREATE TABLE word (text)`}}
	db, err := sqlite.Open(t.Context(), file, words)
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
	for name, read := range map[string]func(context.Context) error{
		"open": func(ctx context.Context) error {
			_, err := sqlite.Open(ctx, file, words)
			return err
		},
		"check": func(ctx context.Context) error { return sqlite.Intact(ctx, file, 1<<20) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
