package sqlitetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestInMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	outside := os.TempDir()
	var within string
	code := InMemory(func() int {
		within = os.TempDir()
		// What the tests start uses the same folder, and leaves it.
		if inner := InMemory(func() int {
			if os.TempDir() != within {
				t.Errorf("%s within %s", os.TempDir(), within)
			}
			return 4
		}); inner != 4 {
			t.Errorf("code %d", inner)
		}
		return 3
	})
	if code != 3 {
		t.Errorf("code %d", code)
	}
	if _, err := os.Stat(memory); err != nil {
		if within != outside {
			t.Errorf("%s, and there is no %s", within, memory)
		}
		return
	}
	if !strings.HasPrefix(within, memory+"/") {
		t.Errorf("the folder is %s", within)
	}
	if _, err := os.Stat(within); err == nil {
		t.Error("the folder is left")
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		age  time.Duration
		kept bool
	}{
		prefix + "old":   {2 * abandoned, false},
		prefix + "young": {abandoned / 2, true},
		"other":          {2 * abandoned, true},
	} {
		folder := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(folder, "within"), 0o700); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-c.age)
		if err := os.Chtimes(folder, then, then); err != nil {
			t.Fatal(err)
		}
		sweep(dir)
		if _, err := os.Stat(folder); (err == nil) != c.kept {
			t.Errorf("%s: %v", name, err)
		}
	}
}
