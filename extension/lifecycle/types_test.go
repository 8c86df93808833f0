package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
)

func newTypes(t *testing.T, tools func(context.Context) (*toolchain.Toolchain, error)) *typecheck.Checker {
	t.Helper()
	cacheDir, keyDir := cachetest.Dirs(t)
	// What other tests found too complex on a busy machine does not count here.
	c, err := typecheck.New(typecheck.Options{Toolchain: tools, Packages: newPackages(t), CacheDir: cacheDir, KeyDir: keyDir, RememberDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Types are checked unless a draft does without, with the env that its manifest declares.
func TestTypes(t *testing.T) {
	h := newHome(t)
	h.options.Types = newTypes(t, h.options.Toolchain)
	m := h.open()

	good := draft("a", `await env.clock.now(), console.log(input.name), typeof env.kv.get`, `{"kv": true}`)
	if w := write(t, m, good); w.Unchecked != nil || w.Took[extension.StageTypes] == 0 {
		t.Errorf("got %v, %v", w.Unchecked, w.Took)
	}
	bad := draft("b", `env.clock.later()`, "")
	problems, ok := errors.AsType[*extension.ProblemsError](func() error { _, err := m.Write(t.Context(), bad); return err }())
	if !ok || problems.Stage != extension.StageTypes || problems.Problems[0].Line != 2 || problems.Problems[0].Text != "Property 'later' does not exist on type 'Clock'. (TS2339)" {
		t.Errorf("got %v", problems)
	}
	isGone(t, m, "b_get")
	bad.NoTypes = true
	if w := write(t, m, bad); w.Took[extension.StageTypes] != 0 {
		t.Errorf("types were checked unasked: %v", w.Took)
	}

	// Without a compiler there is no check, and the result says so.
	bad.NoTypes = false
	for _, types := range []*typecheck.Checker{nil, newTypes(t, func(context.Context) (*toolchain.Toolchain, error) { return nil, fs.ErrPermission })} {
		h.options.Types = types
		if w := write(t, h.open(), bad); w.Unchecked == nil || types != nil && !errors.Is(w.Unchecked, fs.ErrPermission) {
			t.Errorf("got %v", w.Unchecked)
		}
	}
}

// The types that packages bring count, and those that an author declares for packages without.
func TestTypesOfPackages(t *testing.T) {
	h := newHome(t)
	h.options.Packages = newPackages(t)
	h.options.Types = newTypes(t, h.options.Toolchain)
	m := h.open()
	for code, want := range map[string]string{
		`export function area(width: number): number { return z.number().pars(width); }`:                                     "Did you mean 'parse'? (TS2551)",
		`export function area(width: number): string { return z.number().parse(width); }`:                                    "Type 'number' is not assignable to type 'string'. (TS2322)",
		`export function area(width: number): number { return z.object({ a: z.number() }).safeParse({ a: width }).data.a; }`: "", // it may be undefined
	} {
		d := tool("shapes", "area", "import { z } from \"zod\";\n/** The area of a square.\n * @param width how wide it is */\n"+code, "")
		d.Manifest = bytes.Replace(d.Manifest, []byte(`"tools"`), []byte(`"dependencies": {"zod": "^4"}, "tools"`), 1)
		w, err := m.Write(t.Context(), d)
		if want == "" && (err != nil || w.Unchecked != nil || len(w.Untyped) > 0) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, without the types of %v", code, err, w.Untyped)
		}
	}
}

// TestSourceLimits compares two limits: the toolchain accepts the files of every extension that is accepted.
func TestSourceLimits(t *testing.T) {
	if extension.MaxSource > toolchain.MaxSource {
		t.Errorf("an extension may have %d bytes of files, and the toolchain bundles %d", extension.MaxSource, toolchain.MaxSource)
	}
}
