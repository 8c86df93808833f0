package contenders

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/wit"
)

// componentizeJS is SpiderMonkey in a component of 12 MB for each tool, on our host.
var componentizeJS = &bench.Contender{
	Name: "componentize-js", Title: "componentize-js on Stile", Boundary: stileBoundary, Limits: stileLimits,
	Level: bench.NewIsolate, Tasks: inputOnly,
	Prepare: func(ctx context.Context, w *bench.Workbench, task bench.Task) (bench.Runner, error) {
		c, err := newComponentizer(ctx, w)
		if err != nil {
			return nil, err
		}
		component, err := c.build(ctx, bench.Source(task, bench.StoredID))
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return &stored{c.ours, component}, nil
	},
}

var componentizeJSBuild = &bench.Contender{
	Name: "componentize-js-build", Title: "componentize-js, built and called", Boundary: stileBoundary, Limits: stileLimits,
	Level: bench.NewCode, Tasks: inputOnly,
	Prepare: func(ctx context.Context, w *bench.Workbench, _ bench.Task) (bench.Runner, error) {
		return newComponentizer(ctx, w)
	},
}

// componentizer builds with the command of componentize-js, without the features that would need WASI.
type componentizer struct {
	*ours
	node, modules string
}

func newComponentizer(ctx context.Context, w *bench.Workbench) (*componentizer, error) {
	node, err := findNode()
	if err != nil {
		return nil, err
	}
	modules, err := w.InstallNPM(ctx, false, "@bytecodealliance/componentize-js@0.23.0")
	if err != nil {
		return nil, err
	}
	h, err := host.New(ctx, host.Options{})
	return &componentizer{&ours{w: w, host: h}, node, filepath.Join(modules, "node_modules")}, err
}

const componentizeShell = `
const annotations = { readOnly: false, destructive: false, idempotent: false, openWorld: false };
export const tools = {
  describe: () => [{ name: "tool", description: "Works", inputSchema: '{"type":"object"}', annotations }],
  call: (name, input) => JSON.stringify(tool(JSON.parse(input))),
};
`

func (c *componentizer) build(ctx context.Context, source string) (_ *host.Component, err error) {
	dir, err := c.w.Folder("componentize-js")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files := map[string]string{"tool.js": source + componentizeShell, "wit/extension.wit": wit.Extension(), "wit/deps/capability.wit": wit.Capability()}
	if err := bench.WriteFiles(dir, files); err != nil {
		return nil, err
	}
	cli := filepath.Join(c.modules, "@bytecodealliance", "componentize-js", "src", "cli.js")
	if err := bench.Do(c.w.Command(ctx, dir, c.node, cli, "tool.js", "--wit", "wit", "--world-name", "extension",
		"--disable", "stdio", "random", "clocks", "http", "fetch-event", "--out", "tool.wasm")); err != nil {
		return nil, err
	}
	wasm, err := os.ReadFile(filepath.Join(dir, "tool.wasm"))
	if err != nil {
		return nil, err
	}
	return c.host.Load(ctx, wasm)
}

func (c *componentizer) Run(ctx context.Context, t bench.Trial) (bench.Answer, error) {
	component, err := c.build(ctx, t.Source)
	if err != nil {
		return bench.Answer{}, err
	}
	out, err := component.Call(ctx, "tool", t.Input, nil)
	return bench.Answer{Output: out}, errors.Join(err, component.Close())
}
