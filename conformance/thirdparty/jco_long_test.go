//go:build long

package thirdparty

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/suite"
)

// TestLongFixtures loads the components that jco is tested with. None of them is a tool: a test passes if the host has read and compiled the
// component, and refuses it by the name of what it imports or does not export.
func TestLongFixtures(t *testing.T) {
	record, folder := suite.Open(t, "jco.json")
	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	var outcomes []suite.Outcome
	for _, below := range record.Paths {
		err := fs.WalkDir(os.DirFS(folder), below, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".wasm" || record.Omits(name) != "" {
				return err
			}
			wasm, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				return err
			}
			o := suite.Outcome{Name: name}
			if !bytes.HasPrefix(wasm, []byte("\x00asm\x0d\x00\x01\x00")) {
				o.Skipped = "core modules"
				outcomes = append(outcomes, o)
				return nil
			}
			began := time.Now()
			c, err := h.Load(t.Context(), wasm)
			refused, ok := errors.AsType[*host.LoadError](err)
			switch {
			case err == nil:
				o.Failed = "it is loaded"
				_ = c.Close()
			case !ok:
				t.Errorf("%s: Load fails with an error of type %T: %v", name, err, err)
			case refused.Name == "":
				o.Failed = first(err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%s: the answer took %v", name, took)
			}
			outcomes = append(outcomes, o)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	record.Judge(t, outcomes)
}
