package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
)

type componentizeCommand struct {
	File     string `arg:"" help:"Core module (.wasm) built for the world stile:extension."`
	EachCall bool   `name:"each-call" help:"Let every call run the module's initialization, instead of running it once now."`
	Output   string `short:"o" placeholder:"OUT.wasm" help:"File to write. Default: the module's name with .component.wasm, in the current folder."`
	witFlag
	JSON bool `name:"json" help:"Print size and digest as JSON."`
}

// Help implements kong.HelpProvider.
func (*componentizeCommand) Help() string {
	return `The module exports the functions of stile:extension/tools, cabi_realloc and its memory, and imports functions of capability interfaces, as wit-bindgen names them. docs/languages.md has the details, and shows how to build one with Go.

A module that imports WASI preview 1 gets an adapter without authority. It has standard output and error, clocks, random numbers and exit, as the host's empty WASI world answers them, and no files, network, arguments or environment. The component imports only what the module uses.

If the module exports _initialize, the command runs it, without any capability, and the component holds the memory as it is afterwards. Calls begin there. Output that it writes meanwhile goes to stderr. If a copy of that memory could differ from what a call would have, for example because the initialization reads the date, every call runs it instead. The command says which, and stile inspect does too.

An Extism plug-in becomes a component too: each exported function without parameters is a tool, and the functions of Extism's host use the bindings network, kv and console. docs/extism.md has the details.

The same module gives the same bytes. stile inspect and stile run check the component as a whole.

Examples:

    stile componentize core.wasm
    stile componentize core.wasm -o notes.wasm
    stile componentize core.wasm --each-call
    stile componentize plugin.wasm
    stile componentize core.wasm -o crm.wasm --wit contacts.wit --json`
}

// Run implements the command.
func (c *componentizeCommand) Run(ctx context.Context, s *streams) error {
	texts, err := c.read()
	if err != nil {
		return err
	}
	known, err := abi.ParseCapability(append([]string{wit.Capability(), wit.Extension()}, texts...)...)
	if err != nil {
		return usagef("--wit: %w", err)
	}
	core, err := readFile(c.File, maxComponent)
	if err != nil {
		return err
	}
	output := c.Output
	if output == "" {
		output = strings.TrimSuffix(filepath.Base(c.File), ".wasm") + ".component.wasm"
	}
	if sameFile(c.File, output) {
		return usagef("%s is the module itself; name another output file", output)
	}
	made := &toolchain.Preinitialized{}
	if world := toolchain.ExtensionWorld(known); c.EachCall {
		made.Component, err = toolchain.Componentize(world, core)
	} else {
		slow := time.AfterFunc(time.Second, func() { s.say("stile: compiling the module, to run its initialization once ...") })
		made, err = toolchain.Preinitialize(ctx, world, core)
		slow.Stop()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", printable.Line(c.File), err)
	}
	if made.Output != "" {
		s.say("stile: the initialization wrote:\n%s", printable.Marked(strings.TrimRight(made.Output, "\n")))
	}
	return writeComponent(s, output, made.Component, made.Begins, c.JSON)
}
