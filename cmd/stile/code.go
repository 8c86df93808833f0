package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/wasmbin"
	"github.com/stilehost/stile/toolchain"
)

type codeCommand struct {
	File string `arg:"" optional:"" help:"File with TypeScript or JavaScript code; the ending of its name says which (.ts, .js, .mjs and the like). - reads TypeScript from stdin."`
	Code string `short:"e" placeholder:"CODE" help:"The code itself."`
	scopeFlag
	callFlags
	recordFlag
	alwaysJSON
}

// Help implements kong.HelpProvider.
func (*codeCommand) Help() string {
	return `The code is the body of an async function with the parameters input, env and tools. What it returns is the result. It can compute, call the tools that the scope sees, and do what --bind allows, as in stile run. The code runs once, in an instance of its own, and nothing is built or kept. It cannot import anything.

Examples:

    stile code -e 'return [3, 1, 2].sort()'
    stile code -e 'return (await tools.github.list_issues({ repo: "stilehost/stile" })).length'
    stile code count.ts --input '{"path": "/"}' --bind files=dir:.
    stile code - < count.ts`
}

// Run implements the command.
func (c *codeCommand) Run(ctx context.Context, s *streams) error {
	if (c.File == "") == (c.Code == "") {
		return usagef("name a file, or give the code with -e")
	}
	if c.File == "-" && c.Input == "-" {
		return usagef("stdin cannot be both the code and its input; give one of them in a file or a flag")
	}
	if err := c.ready(); err != nil {
		return err
	}
	_, bindings, err := c.bindings()
	if err != nil {
		return err
	}
	program, err := c.program(ctx, s)
	if err != nil {
		return err
	}
	return c.forCall(ctx, s, c.inputFlags, func(e *extensions, viewer lifecycle.Viewer, limits host.Limits, input []byte) (err error) {
		known := extension.Known(extension.Merge(bindings, extension.Defaults(capabilities.Builtin)))
		env := host.Env{}
		if known["tools"] == "" { // --bind may have its own tools
			toolbox, err := e.Toolbox(viewer, nil) //nolint:contextcheck // it looks for changes, and no call should cut that short
			if err != nil {
				return err
			}
			env["tools"], known["tools"] = toolbox, toolbox.Interface()
		}
		t, err := e.toolchain(ctx)
		if err != nil {
			return err
		}
		evaluator, err := t.Evaluator(ctx, known, toolchain.PartsOf(program.Text))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, evaluator.Close()) }()
		request := host.Request{Tool: toolchain.BodyTool, Extension: program.Name, Input: input, Limits: limits, Env: env}
		output, err := c.call(ctx, s, e.session, c.recorded(evaluator.Wasm()), bindings, request,
			func(ctx context.Context, r host.Request) (host.Result, error) {
				result, err := evaluator.Do(ctx, program, r)
				if text := program.Text; err == nil && string(result.Output) == "null" && !strings.Contains(text, "return") {
					s.say("stile: the code returned nothing, so the result is null; return a value, as in: return 1 + 1")
				}
				return result, err
			})
		if err != nil {
			return err
		}
		return c.result(s, output)
	})
}

// program returns the given code as a program.
func (c *codeCommand) program(ctx context.Context, s *streams) (toolchain.Program, error) {
	p, err := c.read(ctx, s)
	return toolchain.Body(p), err
}

// read returns the given code, which is a body.
func (c *codeCommand) read(ctx context.Context, s *streams) (toolchain.Program, error) {
	if c.Code != "" {
		return toolchain.Program{Name: "code.ts", Text: c.Code}, nil
	}
	name, text := "stdin.ts", []byte(nil)
	text, err := interruptible(ctx, func() ([]byte, error) {
		if c.File == "-" {
			return readInput("-", s.in, maxEvaluated)
		}
		return readFile(c.File, maxEvaluated)
	})
	if err != nil {
		return toolchain.Program{}, err
	}
	if c.File != "-" {
		if bytes.HasPrefix(text, []byte(wasmbin.Magic)) {
			return toolchain.Program{}, usagef("%s is WebAssembly: stile run runs it", c.File)
		}
		name = filepath.Base(c.File)
	}
	return toolchain.Program{Name: name, Text: string(text)}, nil
}
