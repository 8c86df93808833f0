package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
)

type typesCommand struct {
	Manifest string `arg:"" help:"Manifest of the extension."`
	Output   string `short:"o" placeholder:"FILE" help:"File to write, or - for stdout. Default: stile-env.d.ts beside the manifest."`
	witFlag
}

// Help implements kong.HelpProvider.
func (*typesCommand) Help() string {
	return `The file gives env its type: one field for each binding of the manifest. Include it in the extension's tsconfig.json. The command replaces only files that it wrote itself.

Examples:

    stile types notes.json
    stile types crm.json --wit contacts.wit -o types/env.d.ts`
}

// Run implements the command.
func (c *typesCommand) Run(_ context.Context, s *streams) error {
	m, err := readManifest(c.Manifest)
	if err != nil {
		return err
	}
	interfaces := extension.Known(m.Bindings)
	extra, err := c.embedded(interfaces)
	if err != nil {
		return err
	}
	output := c.Output
	if output == "" {
		output = filepath.Join(filepath.Dir(c.Manifest), "stile-env.d.ts")
	}
	types := toolchain.EnvTypes(interfaces, extra)
	if output == "-" {
		_, err = io.WriteString(s.out, types)
		return err
	}
	if err := replaceable(output); err != nil {
		return err
	}
	if err := writeFile(output, []byte(types)); err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, output)
	return err
}

// replaceable refuses a file that this command did not write.
func replaceable(name string) error {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil // writing it reports any error
	}
	f, err := openFile(name)
	if err != nil {
		return err
	}
	start := make([]byte, len(toolchain.EnvTypesMark))
	_, err = io.ReadFull(f, start)
	if err := f.Close(); err != nil {
		return err
	}
	if err != nil || string(start) != toolchain.EnvTypesMark {
		return usagef("%s was not changed, because stile types did not write it; remove it, or name another file with -o", line(name, 200))
	}
	return nil
}

// embedded returns the interfaces of --wit that bindings name.
func (c *typesCommand) embedded(bindings map[string]string) ([]*abi.Interface, error) {
	texts, err := c.read()
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	known, err := abi.ParseCapability(append([]string{wit.Capability()}, texts...)...)
	if err != nil {
		return nil, usagef("--wit: %w", err)
	}
	named := slices.Collect(maps.Values(bindings))
	return slices.DeleteFunc(known.Interfaces(), func(i *abi.Interface) bool {
		return strings.HasPrefix(i.Name, "stile:") || !slices.Contains(named, i.Name)
	}), nil
}
