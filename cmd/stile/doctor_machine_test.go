package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/internal/sqlite/sqlitetest"
)

// TestDamagedSchema checks a database whose schema has more rows than anybody can read.
func TestDamagedSchema(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kv.db")
	s, err := kv.Open(t.Context(), file, kv.Options{})
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		err = integrity(t.Context(), file)
	}
	if err != nil {
		t.Fatal(err)
	}
	sqlitetest.Endless(t, file)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := integrity(ctx, file); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
