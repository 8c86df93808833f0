package tools

import (
	"context"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/printable"
)

// Kind is the tools of other extensions. The options of a site are a [Loader].
var Kind = &capability.Kind{
	Name: "tools", Interface: Interface, Fixed: true, Example: `["github_*"]`, Parse: parse, ParseSpec: parseSpec, Learn: newRecorded,
	SpecForm: "tools:FILE[,FILE]...",
	SpecMeans: `the tools of other extensions: env.NAME.call("EXTENSION_TOOL", input) or
env.NAME.EXTENSION.TOOL(input). FILE is a source, a component or a
folder, or a manifest, whose bindings the tools get as with --manifest.
EXTENSION is the name in the manifest, also in one beside FILE, or
else that of FILE. Give the tools a binding with NAME.INNER=SPEC`,
}

// Loader makes a toolbox of the tools in files.
type Loader func(ctx context.Context, rights Rights) (*Toolbox, error)

// Rights are rights to call the tools in files, which a command line gives.
type Rights struct {
	// Files are sources, components, or manifests beside such.
	Files []string
	// Name is the name of the binding, and Inner are bindings that the command line gives the tools, by their names.
	Name  string
	Inner map[string]capability.Grant
}

// Nest implements [capability.Nester].
func (g Rights) Nest(name string, inner map[string]capability.Grant) capability.Grant {
	g.Name, g.Inner = name, inner
	return g
}

func parseSpec(s capability.Spec) (capability.Grant, error) {
	files := []string{s.Argument}
	if s.Options != "" {
		files = append(files, strings.Split(s.Options, ",")...)
	}
	if slices.Contains(files, "") {
		return nil, &capability.MistakeError{Text: "a file has no name", Fix: "tools:FILE[,FILE]..."}
	}
	return Rights{Files: files}, nil
}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return Interface }

// Document implements [capability.Grant]. It is for people: no manifest has files.
func (g Rights) Document() any { return g.Files }

// Describe implements [capability.Grant].
func (g Rights) Describe() []string { return []string{"may call the tools of " + list(g.Files)} }

// Authority implements [capability.Grant].
func (g Rights) Authority() []string {
	return []string{printable.Line("tools " + strings.Join(g.Files, " "))}
}

// Covers implements [capability.Grant].
func (g Rights) Covers(asked capability.Grant) bool { return capability.Same(g, asked) }

// Open implements [capability.Opener].
func (g Rights) Open(ctx context.Context, s *capability.Site) (abi.Capability, error) {
	load, ok := s.Options(Kind).(Loader)
	if !ok {
		return nil, capability.ErrUnbound
	}
	box, err := load(ctx, g)
	if err != nil {
		return nil, err
	}
	return box, nil
}
