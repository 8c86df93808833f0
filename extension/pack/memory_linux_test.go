package pack_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/usagetest"
)

// TestReadTakesLittle reads files of the largest parts.
func TestReadTakesLittle(t *testing.T) {
	const inside, slack = "STILE_TEST_PACK", 24 // MiB
	large := filepath.Join(t.TempDir(), "large.stile")
	p := sample()
	p.Component = bytes.Repeat([]byte("component"), 48<<20/9)
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(large, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(from func(*os.File) error) func() {
		return func() {
			f, err := os.Open(large)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := from(f); err != nil {
				t.Error(err)
			}
		}
	}
	reads := map[string]struct {
		most    int // MiB
		prepare func() func()
	}{
		"a pack": {48, func() func() {
			write(written(t, p))
			return read(func(f *os.File) error {
				_, _, err := pack.Read(f, pack.Limits{})
				return err
			})
		}},
		"all of a file": {48, func() func() {
			write(p.Component)
			return read(func(f *os.File) error {
				_, err := bounded.Read(f, 64<<20)
				return err
			})
		}},
	}
	if name := os.Getenv(inside); name != "" {
		usagetest.Tell(t, reads[name].prepare())
		return
	}
	for name, r := range reads {
		kib, out, err := usagetest.Grown(t, "TestReadTakesLittle", inside+"="+name)
		if err != nil || kib > (r.most+slack)<<10 {
			t.Errorf("%s took %d KiB: %v\n%s", name, kib, err, out)
		}
	}
}
