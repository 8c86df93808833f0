package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

type evalCommand struct {
	File string `arg:"" help:"Extension of one file: .ts, .js or .mjs."`
	Tool string `arg:"" help:"Tool to call."`
	callFlags
}

// Help implements kong.HelpProvider.
func (*evalCommand) Help() string {
	return `Like stile run, but nothing is built: the file is evaluated in the call itself, in an instance that all such files start from. It imports nothing but "stile".

Examples:

    stile eval distance.ts distance --input '{"from": "Paris", "to": "London"}'
    stile eval notes.ts add_note --bind notes=workspace:mine,rw --input @note.json`
}

// Run implements the command.
func (c *evalCommand) Run(ctx context.Context, s *streams) (err error) {
	limits, err := parseLimits(c.Limit)
	if err != nil {
		return err
	}
	_, bindings, err := c.bindings()
	if err != nil {
		return err
	}
	input, err := interruptible(ctx, func() ([]byte, error) { return c.input(s.in, limits.Input) })
	if err != nil {
		return err
	}
	if isWasm(c.File) {
		return usagef("%s is WebAssembly: stile run runs it", c.File)
	}
	text, err := readFile(c.File, maxEvaluated)
	if err != nil {
		return err
	}
	n, err := openSession(ctx, s, sessionOptions{memory: limits.Memory})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	t, err := n.toolchain(ctx)
	if err != nil {
		return err
	}
	e, err := t.Evaluator(ctx, extension.Known(extension.Merge(bindings, extension.Defaults())))
	if err != nil {
		return err
	}
	program := toolchain.Program{Name: filepath.Base(c.File), Text: string(text)}
	return c.call(ctx, s, n, e.Wasm(), bindings, host.Request{Tool: c.Tool, Input: input, Limits: limits},
		func(ctx context.Context, r host.Request) (host.Result, error) { return e.Do(ctx, program, r) })
}
