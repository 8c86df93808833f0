package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
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
	Tools    string `placeholder:"TOOLS.json" help:"Descriptions and schemas of the tools of an Extism plug-in, by the names of its functions. Others are left out."`
	witFlag
	JSON bool `name:"json" help:"Print size and digest as JSON."`
}

// Help implements kong.HelpProvider.
func (*componentizeCommand) Help() string {
	return `The module exports the functions of stile:extension/tools, cabi_realloc and its memory, and imports functions of capability interfaces, as wit-bindgen names them. docs/languages.md has the details, and shows how to build one with Go.

A module that imports WASI preview 1 gets an adapter without authority. It has standard output and error, clocks, random numbers and exit, as the host's empty WASI world answers them, and no network, arguments or environment. It has files only where a call names a workspace for WASI, as stile run --wasi-fs does, and a plug-in has none. The component imports only what the module uses.

If the module exports _initialize, the command runs it, without any capability, and the component holds the memory as it is afterwards. Calls begin there. Output that it writes meanwhile goes to stderr. If a copy of that memory could differ from what a call would have, for example because the initialization reads the date, every call runs it instead. The command says which, and stile inspect does too.

An Extism plug-in becomes a component too: each exported function without parameters is a tool, and the functions of Extism's host use the bindings network, kv and console. --tools describes them. docs/extism.md has the details.

The same module gives the same bytes. stile inspect and stile run check the component as a whole.

Examples:

    stile componentize core.wasm
    stile componentize core.wasm -o notes.wasm
    stile componentize core.wasm --each-call
    stile componentize plugin.wasm --tools tools.json
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
	switch world := toolchain.ExtensionWorld(known); {
	case c.Tools != "":
		var tools []toolchain.ExtismTool
		if tools, err = readExtismTools(c.Tools); err != nil {
			return err
		}
		made.Component, err = toolchain.ComponentizeExtism(world, core, tools)
	case c.EachCall:
		made.Component, err = toolchain.Componentize(world, core)
	default:
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

// readExtismTools reads a file that describes tools by name.
func readExtismTools(file string) ([]toolchain.ExtismTool, error) {
	data, err := readFile(file, maxText)
	if err != nil {
		return nil, err
	}
	var described map[string]struct {
		Description string           `json:"description"`
		Input       json.RawMessage  `json:"input"`
		Output      json.RawMessage  `json:"output"`
		Annotations *abi.Annotations `json:"annotations"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&described); err != nil {
		return nil, usagef(`--tools: %s: %s; it is an object like {"greet": {"description": "Greets", "input": {"type": "object"}}}`, line(file, 200), line(err.Error(), 200))
	}
	tools := make([]toolchain.ExtismTool, 0, len(described))
	for _, name := range slices.Sorted(maps.Keys(described)) {
		t := described[name]
		tools = append(tools, toolchain.ExtismTool{Name: name, Description: t.Description, Input: t.Input, Output: t.Output, Annotations: t.Annotations})
	}
	return tools, nil
}
