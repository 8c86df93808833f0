package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/inspect"
	"github.com/stilehost/stile/extension/trial"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/npmspec"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/toolchain"
)

type buildCommand struct {
	File       string   `arg:"" help:"Source: .ts, .js or .mjs, or a folder with it."`
	Output     string   `short:"o" required:"" placeholder:"OUT.wasm" help:"File to write."`
	Standalone bool     `help:"Include the JavaScript engine, so that any host can run the component."`
	Manifest   string   `placeholder:"FILE" help:"Manifest whose bindings say what the component imports, or a folder with one."`
	Import     []string `sep:"none" placeholder:"INTERFACE" help:"Interface the component may import, like kv or acme:crm/contacts@1.0.0. Can be repeated."`
	Try        bool     `negatable:"" default:"true" help:"Refuse tools that can only fail for what does not exist here. Default: yes."`
	witFlag
	JSON bool `name:"json" help:"Print size and digest as JSON."`
}

// Help implements kong.HelpProvider.
func (*buildCommand) Help() string {
	return `Without --manifest and --import, the component imports the interfaces that the code uses. The same source gives the same bytes.

If code uses npm packages, each tool is called with made-up inputs and without capabilities. If nothing works because
something like Intl does not exist here, that is an error, which says what to write instead. --no-try leaves this out.

Examples:

    stile build distance.ts -o distance.wasm
    stile build notes.ts -o notes.wasm --manifest notes.json
    stile build distance.ts -o portable.wasm --standalone`
}

// Run implements the command.
func (c *buildCommand) Run(ctx context.Context, s *streams) (err error) {
	c.File = entryOf(c.File)
	if sameFile(c.File, c.Output) {
		return usagef("%s is the source itself; name another output file", c.Output)
	}
	if isWasm(c.File) {
		return usagef("%s is WebAssembly, which is not built; stile run, stile inspect and stile ext add take a component, and stile componentize makes one of a core module", c.File)
	}
	w, err := c.wants()
	if err != nil {
		return err
	}
	n, err := c.openSession(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	wasm, err := n.assemble(ctx, c.File, w, c.Standalone)
	if err != nil {
		return err
	}
	if c.Try {
		small := wasm
		if c.Standalone { // the same code, with the engine that is compiled already
			if small, err = n.assemble(ctx, c.File, w, false); err != nil {
				return err
			}
		}
		if err := n.try(ctx, c.File, small); err != nil {
			return err
		}
	}
	return writeComponent(s, c.Output, wasm, "", c.JSON)
}

// try refuses a component with tools that can only fail. A component for another host, whose interfaces this one does not have, is not tried.
func (n *session) try(ctx context.Context, file string, wasm []byte) (err error) {
	component, err := n.loadComponent(ctx, file, wasm)
	if _, other := errors.AsType[*host.LoadError](err); other {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, component.Close()) }()
	kept, err := toolchain.ReadKept(component.Section(toolchain.KeptSection))
	if err != nil {
		return fmt.Errorf("read what the component was built from: %w", err)
	}
	own, packages := map[string][]byte{}, false
	for name, text := range kept.Files {
		if npmspec.InPackage(name) {
			packages = true
		} else {
			own[name] = text
		}
	}
	if !packages && !inspect.MayLack(own) {
		return nil
	}
	problems, err := trial.Probe(ctx, trial.Request{Component: component, Bindings: extension.Defaults(capabilities.Builtin), Open: true}, nil, inspect.InputNames(own))
	if err != nil || len(problems) == 0 {
		return err
	}
	for i := range problems {
		problems[i].Fix, _, _ = strings.Cut(problems[i].Fix, "; if the tool works")
		problems[i].Fix += "; if the tool works with what callers give it: --no-try"
	}
	return &extension.ProblemsError{Stage: extension.StageTest, Problems: problems}
}

// sameFile reports whether two names are of one file that exists.
func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// writeComponent writes a component to a file and says so, and how its instances begin if that is known.
func writeComponent(s *streams, file string, wasm []byte, begins string, json bool) error {
	if err := writeFile(file, wasm); err != nil {
		return err
	}
	digest := "sha256:" + sha256hex.Of(wasm)
	if json {
		return printJSON(s.out, struct {
			File   string `json:"file"`
			Size   int    `json:"size"`
			Digest string `json:"digest"`
			Start  string `json:"start,omitempty"`
		}{file, len(wasm), digest, begins})
	}
	if begins != "" {
		begins = "\n" + begins
	}
	_, err := fmt.Fprintf(s.out, "%s: %d bytes, %s%s\n", file, len(wasm), digest, begins)
	return err
}

// wants returns the bindings of the manifest, with the defaults, and the named interfaces.
func (c *buildCommand) wants() (w wants, err error) {
	if c.Manifest != "" {
		c.Manifest = manifestFile(c.Manifest)
		m, err := readManifest(c.Manifest)
		if err != nil {
			return wants{}, err
		}
		w.manifest, w.files, w.bindings = c.Manifest, m.FS, extension.Known(extension.Merge(m.Bindings, extension.Defaults(capabilities.Builtin)))
	}
	for _, name := range c.Import {
		if !strings.Contains(name, ":") {
			name = abi.CapabilityPackage + name + abi.ContractVersion
		}
		w.imports = append(w.imports, name)
	}
	return w, nil
}
