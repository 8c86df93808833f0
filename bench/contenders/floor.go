package contenders

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/bench/internal/trials"
)

// floor runs the component of the contender stile in a loop in C: the cost of the engine without a host. Its imports do nothing, its
// input is not checked, and the loop itself takes the time.
var floor = &bench.Contender{
	Name: "floor", Title: "wasmtime from C", Boundary: "WebAssembly", Limits: "memory",
	Level: bench.NewIsolate, Tasks: inputOnly,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (_ bench.Runner, err error) {
		if _, err := findCC(); err != nil {
			return nil, err
		}
		dir, err := w.Folder("floor")
		if err != nil {
			return nil, err
		}
		program, err := trials.Compile(ctx, dir)
		if err != nil {
			return nil, bench.Unavailable("%v", err)
		}
		o, err := openOurs(ctx, w, task, 0)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, o.Close()) }()
		component, err := o.tools.Assemble(ctx, o.source(bench.Source(task, bench.StoredID)), false)
		if err != nil {
			return nil, err
		}
		name, wasm := o.tools.Engine()
		engine, err := wasm(ctx)
		if err != nil {
			return nil, err
		}
		if err := bench.WriteFiles(dir, map[string]string{"engine.wasm": string(engine), "component.wasm": string(component)}); err != nil {
			return nil, err
		}
		d, err := startDriver(w, w.Command(context.WithoutCancel(ctx), dir, program, "serve", dir, name))
		return floorRunner{d}, err
	},
}

type floorRunner struct{ *driver }

func (r floorRunner) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	start := time.Now()
	a, err := r.driver.Run(ctx, bench.Trial{Input: t.Input})
	if err != nil {
		return a, err
	}
	took := binary.LittleEndian.Uint64(a.Output)
	return bench.Answer{Output: a.Output[8:], At: start.Add(time.Duration(took))}, nil
}
