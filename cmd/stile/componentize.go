package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
)

type componentizeCommand struct {
	File   string `arg:"" help:"Core module (.wasm) built for the world stile:extension."`
	Output string `short:"o" placeholder:"OUT.wasm" help:"File to write. Default: the module's name with .component.wasm, in the current folder."`
	witFlag
	JSON bool `name:"json" help:"Print size and digest as JSON."`
}

// Help implements kong.HelpProvider.
func (*componentizeCommand) Help() string {
	return `The module exports the functions of stile:extension/tools, cabi_realloc and its memory, and imports functions of capability interfaces, as wit-bindgen names them. docs/languages.md has the details, and shows how to build one with Go.

A module that imports WASI preview 1 gets an adapter without authority. It has standard output and error, clocks, random numbers and exit, as the host's empty WASI world answers them, and no files, network, arguments or environment. The component imports only what the module uses. If the module exports _initialize, every instance runs it first.

The same module gives the same bytes. stile inspect and stile run check the component as a whole.

Examples:

    stile componentize core.wasm
    stile componentize core.wasm -o notes.wasm
    stile componentize core.wasm -o crm.wasm --wit contacts.wit --json`
}

// Run implements the command.
func (c *componentizeCommand) Run(s *streams) error {
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
	wasm, err := toolchain.Componentize(toolchain.ExtensionWorld(known), core)
	if err != nil {
		return fmt.Errorf("%s: %w", printable.Line(c.File), err)
	}
	return writeComponent(s, output, wasm, c.JSON)
}
