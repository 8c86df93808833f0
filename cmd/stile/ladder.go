package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/rung"
	"github.com/stilehost/stile/ladder"
	"github.com/stilehost/stile/toolchain/npm"
)

type ladderCommand struct {
	Task string   `arg:"" optional:"" help:"File with code, as stile code takes it, or the name of a tool of the ladder. - reads code from stdin. Default: list the tools."`
	Code string   `short:"e" placeholder:"CODE" help:"The code itself."`
	Rung string   `default:"isolate" placeholder:"RUNG" help:"Highest rung that the tools and the code may use: workspace, isolate, npm, browser or sandbox, or its number from 0. Default: ${default}."`
	Bind []string `sep:"none" placeholder:"NAME=SPEC" help:"What is behind a rung: workspace, browser or sandbox. Can be repeated. Default: workspace=workspace:ladder,rw."`
	scopeFlag
	inputFlags
	asJSON
}

// Help implements kong.HelpProvider.
func (*ladderCommand) Help() string {
	return `The ladder has five rungs. Each adds tools to the ones below:

    0 workspace   workspace_read, workspace_edit, workspace_grep and their like
    1 isolate     code that calls tools, in a fresh instance without network
    2 npm         the same code with npm packages
    3 browser     browser_open, browser_read and their like
    4 sandbox     a container with real toolchains

Code is the body of an async function with the parameters input, env and tools, as in stile code. It has the workspace as env.workspace and calls the tools of the ladder as tools.workspace.read(...), besides those of the extensions that the scope sees. Without code or a tool, the command lists the tools up to the rung. Nothing climbs above --rung. stile mcp and stile serve offer the same tools to agents, up to the rung that policy.json names.

Examples:

    stile ladder --rung workspace
    stile ladder workspace_write --input '{"path": "a.txt", "text": "hello\n"}'
    stile ladder -e 'return await tools.workspace.read({ path: "a.txt" })'
    stile ladder task.ts --bind workspace=dir:.,rw`
}

// rungBindings shows how to bind what the tools of a rung need.
var rungBindings = map[string]string{
	"workspace": "workspace=workspace:ladder,rw", "browser": "browser=browser:https://HOST", "sandbox": "sandbox=sandbox:host",
}

// Run implements the command.
func (c *ladderCommand) Run(ctx context.Context, s *streams) error {
	if c.Task != "" && c.Code != "" {
		return usagef("name a file or a tool, or give the code with -e, not both")
	}
	highest, err := rung.Parse(c.Rung)
	if err != nil {
		return usagef("--rung: %w", err)
	}
	bindings, err := c.bindings()
	if err != nil {
		return err
	}
	if c.Task == "" && c.Code == "" {
		return c.list(s, highest, bindings)
	}
	tool := isOfLadder(c.Task)
	code := codeCommand{File: c.Task, Code: c.Code, callFlags: callFlags{inputFlags: c.inputFlags}}
	var program ladder.Code
	if !tool {
		p, err := code.read(ctx, s)
		if err != nil {
			return err
		}
		program = ladder.Code{Name: p.Name, Text: p.Text}
	}
	return c.forCall(ctx, s, c.inputFlags, func(e *extensions, viewer lifecycle.Viewer, limits host.Limits, input []byte) (err error) {
		e.state.Configure(tools.Kind, tools.Loader(func(ctx context.Context, given tools.Rights) (*tools.Toolbox, error) {
			return e.toolbox(ctx, s, e.state, given)
		}))
		env, err := e.state.Last(ctx, bindings)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, e.state.Release(env)) }()
		defaults, err := e.state.Env(ctx, extension.Defaults(capabilities.Builtin))
		if err != nil {
			return err
		}
		o := ladder.Options{Rung: highest, Env: env, User: viewer.String(), Limits: limits}
		if o.Toolbox, err = e.Toolbox(viewer, nil); err != nil { //nolint:contextcheck // it looks for changes, and no call should cut that short
			return err
		}
		if p, ok := s.person(); ok {
			var asking sync.Mutex // one question at a time
			o.Ask = func(ctx context.Context, question string, done func(bool, error)) error {
				if len(question) > lifecycle.MaxQuestion {
					return &lifecycle.QuestionError{Reason: fmt.Sprintf("the question has %d bytes; at most %d", len(question), lifecycle.MaxQuestion)}
				}
				go func() {
					asking.Lock()
					defer asking.Unlock()
					done(p.confirm(ctx, "The code asks, and nobody has approved its words:\n"+printable.Marked(question)+"\nMay it go on?"))
				}()
				return nil
			}
		}
		packages := e.CodePackages(viewer, o.Ask)
		show := oncePerSecond(func(_ extension.Stage, message string) { e.progress("npm: " + message + " ...") })
		packages.Progress = func(p npm.Progress) { show(extension.StageResolve, p.String()) }
		o.Packages = packages
		run, done := packages.Within(ctx)
		defer done()
		var result host.Result
		if l := e.ladders.Open(o); tool {
			result, err = l.Call(ctx, ladder.Call{Tool: c.Task, Input: input, Env: defaults})
		} else {
			program.Input, program.Env = input, defaults
			result, err = l.Run(run, program)
			if withdrawn, ok := errors.AsType[*lifecycle.PackagesError](context.Cause(run)); ok {
				err = withdrawn
			}
		}
		var unbound *ladder.UnboundError
		switch {
		case errors.As(err, new(*ladder.RungError)):
			return usagef("%w; --rung sets it", err)
		case errors.As(err, &unbound):
			return usagef("%w; --bind '%s' would bind it", err, rungBindings[unbound.Binding])
		case errors.As(err, new(*lifecycle.PackagesError)):
			return &usageError{err}
		case err != nil:
			return &boundError{error: err, specs: c.specs(), bare: true}
		}
		_, err = fmt.Fprintf(s.out, "%s\n", escape(result.Output))
		return err
	})
}

// isOfLadder reports whether a tool is one of the ladder's own.
func isOfLadder(tool string) bool {
	return slices.ContainsFunc(ladder.Tools(), func(t ladder.Tool) bool { return t.Name == tool })
}

// specs are the bindings of the command line and the default one.
func (c *ladderCommand) specs() []string {
	if slices.ContainsFunc(c.Bind, func(spec string) bool { return strings.HasPrefix(spec, "workspace=") }) {
		return c.Bind
	}
	return append(slices.Clone(c.Bind), "workspace=workspace:ladder,rw")
}

func (c *ladderCommand) bindings() ([]extension.Binding, error) {
	given, err := extension.ParseSpecs(capabilities.Builtin, c.specs())
	if err != nil {
		return nil, err
	}
	for _, b := range given {
		if !slices.Contains(rung.Bindings(), b.Name) {
			return nil, usagef("--bind: the ladder has no binding %s; it has %s", b.Name, strings.Join(rung.Bindings(), ", "))
		}
	}
	return given, nil
}

type ladderTool struct {
	Name        string `json:"name"`
	Rung        string `json:"rung"`
	Description string `json:"description"`
}

// list prints the tools up to a rung.
func (c *ladderCommand) list(s *streams, highest ladder.Rung, bindings []extension.Binding) error {
	known := extension.Known(bindings)
	list := []ladderTool{}
	for _, t := range ladder.Tools() {
		if name, _, _ := strings.Cut(t.Name, "_"); t.Rung <= highest && known[name] != "" {
			list = append(list, ladderTool{t.Name, t.Rung.String(), t.Definition.Description})
		}
	}
	if highest >= ladder.Isolate {
		list = append(list, ladderTool{ladder.CodeTool, ladder.Isolate.String(), "Runs code that calls the tools: stile ladder FILE, or -e CODE."})
	}
	if c.JSON {
		return printJSON(s.out, map[string][]ladderTool{"tools": list})
	}
	rows := make([][]string, len(list))
	for i, t := range list {
		first, _, _ := strings.Cut(t.Description, "\n")
		rows[i] = []string{t.Name, t.Rung, line(first, 100)}
	}
	_, err := io.WriteString(s.out, table("", rows))
	return err
}
