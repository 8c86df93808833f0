package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/wasmbin"
	"github.com/stilehost/stile/toolchain"
)

// probeHost compiles, loads and runs the smallest extension there can be: one without tools.
func probeHost(ctx context.Context, h *host.Host) (err error) {
	world := &abi.World{Name: abi.ExtensionWorld, Exports: []*abi.Interface{h.WIT().Interface(abi.ExtensionTools)}}
	wasm, err := toolchain.Componentize(world, nothing())
	if err != nil {
		return err
	}
	c, err := h.Load(ctx, wasm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tools, err := c.Tools(ctx)
	if err == nil && len(tools) != 0 {
		err = fmt.Errorf("a component without tools says it has %d", len(tools))
	}
	return err
}

// nothing is a core module whose `describe` returns the address of an empty list. Everything else in it traps.
func nothing() []byte {
	const i32, unreachable, end = 0x7f, 0x00, 0x0b
	section := func(id byte, content ...byte) []byte { return append([]byte{id, byte(len(content))}, content...) }
	export := func(name string, kind, index byte) []byte {
		return slices.Concat([]byte{byte(len(name))}, []byte(name), []byte{kind, index})
	}
	exports := slices.Concat([]byte{4},
		export("memory", 2, 0), export(abi.ExtensionTools+"#describe", 0, 0), export(abi.ExtensionTools+"#call", 0, 1), export("cabi_realloc", 0, 2))
	return slices.Concat(
		[]byte(wasmbin.CoreHeader),
		section(1, 3, // types
			0x60, 0, 1, i32,
			0x60, 5, i32, i32, i32, i32, i32, 1, i32,
			0x60, 4, i32, i32, i32, i32, 1, i32),
		section(3, 3, 0, 1, 2), // functions
		section(5, 1, 0, 1),    // one page of memory
		section(7, exports...),
		section(10, 3, // code
			4, 0, 0x41, 0, end, // i32.const 0
			3, 0, unreachable, end,
			3, 0, unreachable, end),
	)
}

// probeToolchain builds and runs a tool.
func probeToolchain(ctx context.Context, h *host.Host, o toolchain.Options) (err error) {
	t, err := toolchain.New(ctx, h, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	c, err := t.Build(ctx, toolchain.Source{Entry: "probe.ts", FS: fstest.MapFS{"probe.ts": &fstest.MapFile{Data: []byte(
		`import { extension } from "stile";
		export default extension({ tools: { add: { description: "Add", run: ({ a, b }: { a: number; b: number }) => a + b } } });`,
	)}}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	out, err := c.Call(ctx, "add", []byte(`{"a": 1, "b": 2}`), nil)
	if err == nil && string(out) != "3" {
		err = fmt.Errorf("a tool that adds 1 and 2 returned %s", out)
	}
	return err
}
