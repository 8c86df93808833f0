package contenders

import (
	"context"
	"errors"

	"github.com/bytecodealliance/wasmtime-go/v44"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// stileHello is the smallest possible extension: a component of a kilobyte, without JavaScript.
var stileHello = &bench.Contender{
	Name: "stile-hello", Title: "Stile, no JavaScript", Boundary: stileBoundary, Limits: stileLimits,
	Level: bench.NewIsolate, Tasks: []bench.Task{bench.Hello},
	Prepare: func(ctx context.Context, w *bench.Workbench, _ bench.Task) (bench.Runner, error) {
		text, err := drivers.ReadFile("drivers/hello-stile.wat")
		if err != nil {
			return nil, err
		}
		core, err := wasmtime.Wat2Wasm(string(text))
		if err != nil {
			return nil, err
		}
		h, err := host.New(ctx, host.Options{})
		if err != nil {
			return nil, err
		}
		world := &abi.World{Name: abi.ExtensionWorld, Exports: []*abi.Interface{h.WIT().Interface(abi.ExtensionTools)}}
		wasm, err := toolchain.Componentize(world, core)
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		component, err := h.Load(ctx, wasm)
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		return &stored{&ours{w: w, host: h}, component}, nil
	},
}
