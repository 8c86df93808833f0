package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stilehost/stile/internal/cache"
)

// A new home includes the cache of the user's standard home, if the key there belongs to the user alone.
func TestKeyFolder(t *testing.T) {
	withKey := func(dir string) {
		c, err := cache.Open(t.TempDir(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(string) {}
	key := func(dir string) string { return filepath.Join(dir, "cache.key") }
	for name, c := range map[string]struct {
		home, standard func(dir string)
		shared         bool
	}{
		"no key":                      {nothing, nothing, false},
		"one in both":                 {withKey, withKey, false},
		"one at home":                 {withKey, nothing, false},
		"a new home":                  {nothing, withKey, true},
		"a damaged one":               {nothing, func(dir string) { withKey(dir); must(t, os.Truncate(key(dir), 3)) }, false},
		"one that others read":        {nothing, func(dir string) { withKey(dir); must(t, os.Chmod(key(dir), 0o644)) }, false},
		"one that others can replace": {nothing, func(dir string) { withKey(dir); must(t, os.Chmod(dir, 0o777)) }, false},
		"a link": {nothing, func(dir string) {
			elsewhere := t.TempDir()
			withKey(elsewhere)
			must(t, os.Symlink(key(elsewhere), key(dir)))
		}, false},
	} {
		home, base := filepath.Join(t.TempDir(), "home"), t.TempDir()
		standard := filepath.Join(base, "stile")
		must(t, os.Mkdir(standard, 0o700))
		c.standard(standard)
		c.home(home)
		t.Setenv("STILE_HOME", home)
		t.Setenv("XDG_DATA_HOME", base)
		got, err := readSettings()
		if want := map[bool]string{true: standard, false: home}[c.shared]; err != nil || got.keys != want || got.home != home {
			t.Errorf("%s: the key is in %s, %v; want %s", name, got.keys, err, want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
