package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/toolchain"
	packages "github.com/stilehost/stile/toolchain/npm"
)

// measureTypes times checks of the types of a draft, examples/notes.ts, and builds of it after a change, in turns. The checker is warm. A
// package adds 60 KB of declarations.
func measureTypes(ctx context.Context, b *bench, s *subject) (err error) {
	text, err := os.ReadFile("../examples/notes.ts")
	if err != nil {
		return err
	}
	cache, key := b.caches()
	client, err := packages.New(packages.Options{CacheDir: cache, KeyDir: key})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	checker, err := typecheck.New(typecheck.Options{
		Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return s.tools, nil }, Packages: client, CacheDir: cache, KeyDir: key,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, checker.Close()) }()
	bindings := map[string]string{"notes": workspace.Interface, "seen": kv.Interface}
	changed := 0
	change := func(before string) map[string][]byte {
		changed++
		return map[string][]byte{"notes.ts": fmt.Appendf(nil, "%s%s\n// %d\n", before, text, changed)}
	}
	check := func(before string, declared fstest.MapFS) error {
		r := typecheck.Request{Files: change(before), Entry: "notes.ts", Bindings: bindings}
		if declared != nil {
			r.Packages = declared
		}
		return checker.Check(ctx, r)
	}
	var declarations strings.Builder
	for i := 0; declarations.Len() < 60<<10; i++ {
		fmt.Fprintf(&declarations, "export interface Part%d { name: string; size?: number; parts: Part%d[]; rename(to: string, how?: { force: boolean }): Promise<Part%d>; }\n", i, i, i)
	}
	parts := fstest.MapFS{
		"node_modules/parts/package.json": {Data: []byte(`{"types": "index.d.ts"}`)},
		"node_modules/parts/index.d.ts":   {Data: []byte(declarations.String())},
	}
	const imports = "import type { Part0 } from \"parts\"; export const part = (p: Part0): Promise<Part0> => p.rename(\"a\"); "
	began := time.Now()
	if err := checker.Prepare(ctx); err != nil {
		return err
	}
	prepared := time.Since(began)
	began = time.Now()
	if err := check("", nil); err != nil {
		return err
	}
	first := time.Since(began)
	var built, checked, typed measure.Series
	for range b.rounds(30) {
		round, err := timed(3, time.Millisecond, func() error {
			_, err := s.tools.Assemble(ctx, toolchain.Source{FS: mapOf(change("")), Entry: "notes.ts", Bindings: bindings}, false)
			return err
		})
		if err != nil {
			return err
		}
		built = append(built, round)
		if round, err = timed(3, time.Millisecond, func() error { return check("", nil) }); err != nil {
			return err
		}
		checked = append(checked, round)
		if round, err = timed(3, time.Millisecond, func() error { return check(imports, parts) }); err != nil {
			return err
		}
		typed = append(typed, round)
	}
	b.add(row{Key: "types_prepared_s", What: "the compiler made ready, once for each machine", Unit: "s", Value: prepared.Seconds()})
	b.add(row{Key: "types_first_over_check", What: "first check of a process / later check", Value: float64(first.Microseconds()) / 1000 / checked.Estimate().Median})
	b.add(row{Key: "types_build_ms", What: "build of a changed draft", Unit: "ms"}.of(built))
	b.add(row{Key: "types_check_ms", What: "check of its types", Unit: "ms"}.of(checked))
	b.add(row{Key: "types_check_over_build", What: "check of types / build of the same draft", AtMost: 10}.ratio(checked, built))
	b.add(row{Key: "types_packages_over_check", What: "the same with 60 KB of declarations of a package / without", AtMost: 7}.ratio(typed, checked))
	return nil
}

func mapOf(files map[string][]byte) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: text}
	}
	return tree
}
