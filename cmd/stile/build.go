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
	"github.com/stilehost/stile/internal/sha256hex"
)

type buildCommand struct {
	File       string   `arg:"" help:"Source: .ts, .js or .mjs, or a folder with it."`
	Output     string   `short:"o" required:"" placeholder:"OUT.wasm" help:"File to write."`
	Standalone bool     `help:"Include the JavaScript engine, so that any host can run the component."`
	Manifest   string   `placeholder:"FILE" help:"Manifest whose bindings say what the component imports."`
	Import     []string `sep:"none" placeholder:"INTERFACE" help:"Interface the component may import, like kv or acme:crm/contacts@1.0.0. Can be repeated."`
	witFlag
	JSON bool `name:"json" help:"Print size and digest as JSON."`
}

// Help implements kong.HelpProvider.
func (*buildCommand) Help() string {
	return `Without --manifest and --import, the component imports the interfaces that the code uses. The same source gives the same bytes.

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
	return writeComponent(s, c.Output, wasm, "", c.JSON)
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
