package main

import (
	"context"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
)

type extCall struct {
	Tool string `arg:"" help:"Tool to call: EXTENSION_TOOL."`
	scopeFlag
	inputFlags
	outputFlag
	alwaysJSON
}

// Help implements kong.HelpProvider.
func (*extCall) Help() string {
	return `The tool has the approved bindings. The call is recorded for stile calls, and written to the audit log.

Examples:

    stile ext call github_list_issues --input '{"repo": "stilehost/stile"}'
    stile ext call charts_draw --output chart.png
    stile ext call notes_add_note --scope agent:claude --input @note.json`
}

// Run implements the command.
func (c *extCall) Run(ctx context.Context, s *streams) error {
	return c.forCall(ctx, s, c.inputFlags, func(e *extensions, viewer lifecycle.Viewer, limits host.Limits, input []byte) error {
		by, err := e.author()
		if err != nil {
			return err
		}
		result, err := e.Call(ctx, lifecycle.Call{Viewer: viewer, By: by, Via: lifecycle.ViaCommand, Tool: c.Tool, Input: input, Limits: limits})
		if errkind.Is[*lifecycle.UnknownToolError](err) {
			return e.unknown(ctx, viewer, c.Tool, err)
		}
		if err != nil {
			return &callError{err}
		}
		return c.result(s, result.Output)
	})
}
