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
	SpecMeans: `the tools of other extensions: env.NAME.call("FILE_TOOL", input, { env: { ... } })
or env.NAME.FILE.TOOL(input), without the ending of FILE`,
}

// Loader makes a toolbox of the tools in files.
type Loader func(ctx context.Context, files []string) (*Toolbox, error)

// Rights are rights to call the tools in files, which a command line gives.
type Rights struct {
	// Files are sources or components.
	Files []string
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
	box, err := load(ctx, g.Files)
	if err != nil {
		return nil, err
	}
	return box, nil
}
