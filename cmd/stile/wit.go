package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/wit"
	witoci "github.com/stilehost/stile/wit/oci"
)

type witCommand struct {
	Build witBuildCommand `cmd:"" help:"Write the packages of the contract as binaries."`
	Push  witPushCommand  `cmd:"" help:"Put the packages of the contract into an OCI registry, for wkg."`
}

// Help implements kong.HelpProvider.
func (*witCommand) Help() string {
	return `The contract between hosts and components is two packages of WIT, stile:capability and stile:extension. This program contains those of its version.

Examples:

    stile wit build packages
    stile wit push localhost:5000/contracts`
}

// witPackage is a package of the contract as a binary.
type witPackage struct {
	name, version string // "stile:capability", "0.1.0"
	wasm          []byte
	exports       []string
}

// witPackages are those of the contract, each after what it uses.
func witPackages() (all []witPackage, err error) {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range known.Interfaces() {
		names = append(names, i.Name)
	}
	for _, w := range known.Worlds() {
		names = append(names, w.Name)
	}
	for _, full := range names {
		name, rest, _ := strings.Cut(full, "/")
		_, version, _ := strings.Cut(rest, "@")
		at := slices.IndexFunc(all, func(p witPackage) bool { return p.name == name })
		if at < 0 {
			at, all = len(all), append(all, witPackage{name: name, version: version})
		}
		all[at].exports = append(all[at].exports, full)
	}
	for i, p := range all {
		if all[i].wasm, err = toolchain.EncodePackage(known, p.name+"@"+p.version); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// shownPackage is a package as --json has it.
type shownPackage struct {
	Package   string `json:"package"`
	Version   string `json:"version"`
	File      string `json:"file,omitempty"`
	Bytes     int    `json:"bytes"`
	Reference string `json:"reference,omitempty"`
	// Manifest is the digest to pull by.
	Manifest string `json:"manifest,omitempty"`
}

type witBuildCommand struct {
	Folder string `arg:"" help:"Folder to write to. It is made if it is missing."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*witBuildCommand) Help() string {
	return `The files are named NAMESPACE-NAME-VERSION.wasm. They hold the types and the documentation, and tools such as wasm-tools, wkg, jco and wit-bindgen read them like WIT.

Examples:

    stile wit build packages
    wasm-tools component wit packages/stile-extension-0.1.0.wasm`
}

// Run implements the command.
func (c *witBuildCommand) Run(s *streams) error {
	all, err := witPackages()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Folder, 0o755); err != nil {
		return &usageError{err}
	}
	var shown []shownPackage
	for _, p := range all {
		file := filepath.Join(c.Folder, strings.ReplaceAll(p.name, ":", "-")+"-"+p.version+".wasm")
		if err := writeFile(file, p.wasm); err != nil {
			return err
		}
		shown = append(shown, shownPackage{Package: p.name, Version: p.version, File: file, Bytes: len(p.wasm)})
	}
	return printPackages(s, c.JSON, shown, func(p shownPackage) string {
		return fmt.Sprintf("%s: %s@%s, %d bytes", p.File, p.Package, p.Version, p.Bytes)
	})
}

type witPushCommand struct {
	Registry string `arg:"" placeholder:"REGISTRY[/PREFIX]" help:"Registry, and what comes before the packages' names in it."`
	registryFlags
	asJSON
}

// Help implements kong.HelpProvider.
func (*witPushCommand) Help() string {
	return `Each package becomes REGISTRY/PREFIX/NAMESPACE/NAME:VERSION, in the format of wasm-pkg-tools: a config of the type application/vnd.wasm.config.v0+json and one layer, the binary. A registry on this machine is used without TLS. What the registry has already is not sent again.

Examples:

    stile wit push localhost:5000
    stile wit push registry.example.com/contracts --registry-user ada --registry-secret registry`
}

// Run implements the command.
func (c *witPushCommand) Run(ctx context.Context, s *streams) (err error) {
	all, err := witPackages()
	if err != nil {
		return err
	}
	place := strings.TrimSuffix(strings.TrimPrefix(c.Registry, ociScheme), "/")
	o := witoci.Options{Username: c.RegistryUser, PlainHTTP: onThisMachine(place)}
	if c.RegistrySecret != "" {
		n, err := openSession(ctx, s, sessionOptions{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.Close()) }()
		if o.Password, err = c.password(ctx, n.secrets); err != nil {
			return err
		}
	}
	var shown []shownPackage
	for _, p := range all {
		ref := place + "/" + strings.ReplaceAll(p.name, ":", "/") + ":" + p.version
		if s.interactive() {
			s.say("pushing %s", ref)
		}
		manifest, err := witoci.Push(ctx, ref, p.wasm, p.exports, o)
		if err != nil {
			return registryError(err)
		}
		shown = append(shown, shownPackage{Package: p.name, Version: p.version, Bytes: len(p.wasm), Reference: ref, Manifest: manifest})
	}
	return printPackages(s, c.JSON, shown, func(p shownPackage) string { return p.Reference + "@" + p.Manifest })
}

// printPackages prints packages as JSON or as lines.
func printPackages(s *streams, asJSON bool, all []shownPackage, line func(shownPackage) string) error {
	if asJSON {
		return printJSON(s.out, struct {
			Packages []shownPackage `json:"packages"`
		}{all})
	}
	for _, p := range all {
		if _, err := fmt.Fprintln(s.out, line(p)); err != nil {
			return err
		}
	}
	return nil
}
