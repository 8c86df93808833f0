package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stilehost/stile/host"
)

// The host requests a module by name only if its code is not in the cache, and accepts it only if it has the name's digest.
func TestAddModuleNamed(t *testing.T) {
	module, other := []byte("\x00asm\x01\x00\x00\x00"), []byte("\x00asm\x01\x00\x00\x00\x00\x02\x01a")
	cacheDir, keyDir := t.TempDir(), t.TempDir()
	failed := errors.New("not to be had")
	var asked int
	give := func(wasm []byte, err error) func(context.Context) ([]byte, error) {
		return func(context.Context) ([]byte, error) { asked++; return wasm, err }
	}
	for _, c := range []struct {
		what    string
		name    string
		wasm    func(context.Context) ([]byte, error)
		asked   int
		err     error
		refused bool
	}{
		{"one that cannot be had", host.ModuleName(module), give(nil, failed), 1, failed, false},
		{"one in the place of another", host.ModuleName(module), give(other, nil), 1, nil, true},
		{"itself", host.ModuleName(module), give(module, nil), 1, nil, false},
		{"one that is cached", host.ModuleName(module), give(nil, failed), 0, nil, false},
		{"a name of another kind", host.ModuleName(module)[len("engine-x"):], give(module, nil), 0, nil, true},
	} {
		h, err := host.New(t.Context(), host.Options{Instances: 1, CacheDir: cacheDir, KeyDir: keyDir})
		if err != nil {
			t.Fatal(err)
		}
		asked = 0
		err = h.AddModuleNamed(t.Context(), c.name, c.wasm)
		if _, refused := errors.AsType[*host.LoadError](err); asked != c.asked || refused != c.refused || !c.refused && !errors.Is(err, c.err) {
			t.Errorf("%s: asked %d times, %v", c.what, asked, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
