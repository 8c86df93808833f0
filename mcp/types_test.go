package mcp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// Types are checked unless the author does without, and it is said when they cannot be.
func TestWriteTypes(t *testing.T) {
	h := newHome(t, preApproved)
	h.close()
	cacheDir, keyDir := cachetest.Dirs(t)
	packages, err := npm.New(npm.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	h.options.Types, err = typecheck.New(typecheck.Options{
		Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return sharedTools, nil }, Packages: packages, CacheDir: cacheDir, KeyDir: keyDir,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.options.Types.Close(), packages.Close()); err != nil {
			t.Error(err)
		}
	})
	h.open()
	c := h.client()
	d := draft("answer", "42..toFixd()", nil)
	if f := failed(t, c.tool("extension_write", d)); f.Stage != "types" || len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Text, "Did you mean 'toFixed'? (TS2551)") {
		t.Errorf("got %+v", f)
	}
	d = draft("answer", "42..toFixed()", nil)
	if w := does[writeOutput](c, "extension_write", d); w.State != "active" || len(w.TookMS) != len(extension.Stages(true)) || strings.Contains(w.Message, "types") {
		t.Errorf("got %+v", w)
	}
	h.close()
	types := h.options.Types
	h.options.Types = nil
	h.open()
	d = draft("answer", "43..toFixd", nil)
	if w := does[writeOutput](h.client(), "extension_write", d); w.State != "active" || !strings.Contains(w.Message, "types were not checked: there is no compiler here") {
		t.Errorf("got %+v", w)
	}
	h.options.Types = types
}
