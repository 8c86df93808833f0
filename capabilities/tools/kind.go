package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/printable"
)

// Kind is the tools of other extensions. Only a command line can grant them. The options of a site are a [Loader].
var Kind = &capability.Kind{
	Name: "tools", Interface: Interface, Example: "true", ParseSpec: parseSpec,
	SpecForm: "tools:FILE[,FILE]...",
	SpecMeans: `the tools of other extensions: env.NAME.call("FILE_TOOL", input, { env: { ... } })
or env.NAME.FILE.TOOL(input), without the ending of FILE`,
}

// Loader makes a toolbox of the tools in files.
type Loader func(ctx context.Context, files []string) (*Toolbox, error)

// Rights are rights to call the tools of other extensions.
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

// Document implements [capability.Grant]. It is for people: no manifest has it.
func (g Rights) Document() any { return g.Files }

// Describe implements [capability.Grant].
func (g Rights) Describe() []string {
	return []string{"may call the tools of " + printable.Line(strings.Join(g.Files, ", "))}
}

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

// outcome is the result of a tool in a test: one of its fields.
type outcome struct {
	Output json.RawMessage `json:"output"`
	Error  *string         `json:"error"`
}

// doubled is a real toolbox with a test's outcomes. Its tools have finished when Start returns.
type doubled struct{ *Toolbox }

// Double implements [double.Doubler] with a toolbox whose results come from the test.
func (Rights) Double(_ context.Context, t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	outcomes, err := double.Members[outcome](t, answers, `{"github_create_pr": {"output": {"number": 1}}}`)
	if err != nil {
		return nil, err
	}
	for name, o := range outcomes {
		if (o.Output == nil) == (o.Error == nil) {
			return nil, t.Wrong(fmt.Sprintf("[%s] needs either output or error", double.Quoted(name)), `{"output": {}} or {"error": "what went wrong"}`)
		}
	}
	var all []Description
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		all = append(all, Description{Name: name, InputSchema: `{"type":"object"}`})
	}
	box, err := New(Options{
		Resolve: func(name string) (Func, error) {
			o, ok := outcomes[name]
			if !ok {
				return nil, t.Unanswered("a call of the tool "+double.Quoted(name), double.Quoted(name)+`: {"output": {}}`)
			}
			return func(_ context.Context, _ string, _ []byte, _ map[string]abi.Capability, done func([]byte, error)) {
				if o.Error != nil {
					done(nil, abi.Errorf(abi.CodeUnavailable, "%s: %s", name, *o.Error))
				} else {
					done(o.Output, nil)
				}
			}, nil
		},
		Finder: NewCatalog(all),
	})
	return doubled{box}, err
}

// Open implements [abi.Opener].
func (d doubled) Open(ctx context.Context) (any, error) {
	box, err := d.Toolbox.Open(ctx)
	if err != nil {
		return nil, err
	}
	return doubled{box.(*Toolbox)}, nil
}

// Start implements the method `start`.
func (d doubled) Start(ctx context.Context, tool, input string, env abi.Env) (*Call, error) {
	call, err := d.Toolbox.Start(ctx, tool, input, env)
	if err == nil {
		double.Until(ctx, call.Subscribe(ctx))
	}
	return call, err
}
