package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// toolbox offers the tools of extensions as "<extension>_<tool>", with the name of a file or folder as the extension's name. The tools have
// the default bindings and the bindings that callers pass on.
func (n *session) toolbox(ctx context.Context, state *extension.State, files []string) (*tools.Toolbox, error) {
	callees := map[string]tools.Func{}
	var found []tools.Description
	for _, file := range files {
		c, _, err := n.load(ctx, entryOf(file), wants{})
		if err != nil {
			return nil, err
		}
		definitions, err := c.Tools(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		env, err := state.Env(ctx, extension.Defaults(capabilities.Builtin))
		if err != nil {
			return nil, err
		}
		for _, d := range definitions {
			name := extensionName(file) + "_" + d.Name
			if callees[name] != nil {
				return nil, usagef("%s: there is another tool %s", file, name)
			}
			callees[name] = host.Callee{Component: c, Tool: d.Name, Env: env}.Start
			found = append(found, tools.Description{Name: name, Description: d.Description, InputSchema: d.InputSchema})
		}
	}
	return tools.New(tools.Options{
		Resolve: func(name string) (tools.Func, error) {
			if call := callees[name]; call != nil {
				return call, nil
			}
			var names []string
			for _, d := range found {
				names = append(names, d.Name)
			}
			return nil, abi.Errorf(abi.CodeNotFound, "tool %q; there are: %s", printable.Short(name, 64), strings.Join(names, ", "))
		},
		Finder: tools.NewCatalog(found),
	})
}

// notInNames matches what the name of an extension replaces in the name of its file.
var notInNames = lazyregexp.New(`[^a-z0-9]+`)

func extensionName(file string) string {
	base := filepath.Base(file)
	if abs, err := filepath.Abs(file); err == nil {
		base = filepath.Base(abs) // of "." too
	}
	return notInNames.ReplaceAllString(strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base))), "_")
}
