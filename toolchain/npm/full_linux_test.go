package npm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stilehost/stile/internal/disktest"
	"github.com/stilehost/stile/toolchain"
)

// A full disk under the cache costs no more than what is kept: packages come without it, or with an error that says what is full. With room
// they come again.
func TestFullCache(t *testing.T) {
	if !disktest.Mounts(t) {
		return
	}
	r := aAndB(t)
	c := r.client(t, Options{})
	disk := t.TempDir()
	disktest.Mount(t, disk, "size=2m")
	full, err := New(Options{CacheDir: filepath.Join(disk, "cache"), KeyDir: c.o.KeyDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = full.Close() })
	full.user, full.keys = c.user, c.keys
	disktest.Fill(t, disk)
	for range 2 {
		res, err := resolve(t, full, map[string]string{"a": "*"})
		setup, isSetup := errors.AsType[*toolchain.SetupError](err)
		switch {
		case err == nil && contents(t, res, "b") != "module.exports = 'b';":
			t.Error("other bytes are served")
		case err != nil && (!isSetup || setup.Remedy == ""):
			t.Errorf("got %v", err)
		}
		t.Logf("%v", err)
	}
	if err := os.Remove(filepath.Join(disk, "ballast")); err != nil {
		t.Fatal(err)
	}
	res, err := resolve(t, full, map[string]string{"a": "*"})
	if err != nil || contents(t, res, "b") != "module.exports = 'b';" {
		t.Errorf("with room: %v", err)
	}
}
