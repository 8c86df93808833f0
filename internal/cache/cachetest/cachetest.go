// Package cachetest gives the tests of all packages one shared cache, so that the engine is obtained once instead of once per
// package.
package cachetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stilehost/stile/internal/cache"
)

// Dirs returns the folders of the shared cache and of its key, in the user's cache folder. They outlive the test.
func Dirs(t testing.TB) (dir, keyDir string) {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("tests keep what they obtain in the user's cache folder: %v", err)
	}
	return filepath.Join(base, "stile-test", "cache"), filepath.Join(base, "stile-test", "home")
}

// Open opens the shared cache until the test ends.
func Open(t testing.TB) *cache.Cache {
	t.Helper()
	dir, keyDir := Dirs(t)
	c, err := cache.Open(dir, keyDir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
