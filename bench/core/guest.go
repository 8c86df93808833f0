package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// goGuest builds the guest in Go: as its calls run the initialization, and as the component holds what it leaves.
func (s *subject) goGuest(ctx context.Context, dir string) (each, once *host.Component, err error) {
	core := filepath.Join(dir, "guest.wasm")
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join("core", "testdata", "go"), "-buildmode=c-shared", "-ldflags=-s -w", "-o", core, ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("build the guest in Go: %w\n%s", err, out)
	}
	module, err := os.ReadFile(core)
	if err != nil {
		return nil, nil, err
	}
	world := toolchain.ExtensionWorld(s.host.WIT())
	plain, err := toolchain.Componentize(world, module)
	if err != nil {
		return nil, nil, err
	}
	initialized, err := toolchain.Preinitialize(ctx, world, module)
	if err != nil {
		return nil, nil, err
	}
	if !initialized.Initialized {
		return nil, nil, errors.New(initialized.Begins)
	}
	if each, err = s.host.Load(ctx, plain); err == nil {
		once, err = s.host.Load(ctx, initialized.Component)
	}
	return each, once, err
}

// measureGuest compares calls of a guest in Go that begin with its runtime's start, those that begin behind it, and those of the same
// tool in TypeScript, in turns. All have the binding of random that Go's runtime takes its seed from.
func measureGuest(ctx context.Context, b *bench, s *subject) error {
	each, once, err := s.goGuest(ctx, b.dir)
	if err != nil {
		return err
	}
	typescript, err := s.build(ctx, "cold.ts")
	if err != nil {
		return err
	}
	s.env["random"] = random.System()
	components := []*host.Component{each, once, typescript}
	series := make([]measure.Series, len(components))
	for range b.rounds(40) {
		for k, c := range components {
			call := func() error { return coldCall(ctx, c, s.env, nil) }
			if _, err := timed(20, time.Microsecond, call); err != nil {
				return err
			}
			round, err := timed(100, time.Microsecond, call)
			if err != nil {
				return err
			}
			series[k] = append(series[k], round)
		}
	}
	b.add(row{Key: "go_each_us", What: "cold call of a guest in Go that starts its runtime", Unit: "us"}.of(series[0]))
	b.add(row{Key: "go_us", What: "the same, behind the start", Unit: "us"}.of(series[1]))
	b.add(row{Key: "go_over_each", What: "behind the start / with the start", AtMost: 0.3}.ratio(series[1], series[0]))
	b.add(row{Key: "go_over_typescript", What: "behind the start / the same tool in TypeScript"}.ratio(series[1], series[2]))
	for _, of := range []struct {
		key, what string
		c         *host.Component
	}{
		{"go_each_kib", "private memory per live instance of the guest in Go that starts its runtime", each},
		{"go_kib", "the same, behind the start", once},
	} {
		kib, err := heldKiB(ctx, of.c, 20, 120)
		if err != nil {
			return err
		}
		b.add(row{Key: of.key, What: of.what, Unit: "KiB", Value: kib})
	}
	return nil
}
