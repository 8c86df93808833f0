//go:build unix

package private_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stilehost/stile/internal/private"
)

func TestKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.key")
	var all sync.WaitGroup
	keys := make([][]byte, 8)
	for i := range keys {
		all.Go(func() {
			var err error
			if keys[i], err = private.Key(path, 32); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range keys {
		if len(k) != 32 || !bytes.Equal(k, keys[0]) {
			t.Fatalf("keys differ: %x and %x", k, keys[0])
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	for name, content := range map[string][]byte{"short": keys[0][:31], "long": append(keys[0], 1), "zeros": make([]byte, 32)} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var damaged *private.Error
		if _, err := private.Key(path, 32); !errors.As(err, &damaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, keys[0], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := private.Key(open, 32); err == nil {
		t.Error("others may read the key")
	}
}
