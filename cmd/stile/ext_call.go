package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
)

type extCall struct {
	Tool string `arg:"" complete:"tool" help:"Tool to call: EXTENSION_TOOL."`
	scopeFlag
	inputFlags
	outputFlag
	durableFlags
	Bind []string `sep:"none" placeholder:"NAME=SPEC" help:"What the tool gets as env.NAME in this call, in place of what was approved. Can be repeated."`
	alwaysJSON
}

// Help implements kong.HelpProvider.
func (*extCall) Help() string {
	return `The tool has the approved bindings. The call is recorded for stile calls, and written to the audit log.

--bind replaces one of them for this call, in the forms of stile run --help. The kind stays, and the ceiling of policy.json holds. A binding that gives no more than was approved is used as it is. One that gives more, or another store, is shown on the terminal, where you have to agree; without a terminal it is denied. The audit log has it. Agents cannot do this: no tool of MCP has --bind.

Examples:

    stile ext call github_list_issues --input '{"repo": "stilehost/stile"}'
    stile ext call charts_draw --output chart.png
    stile ext call orders_order --durable --key order-17 --input @order.json
    stile ext call notes_add_note --scope agent:claude --input @note.json
    stile ext call github_list_issues --bind 'github=http:https://api.github.com/repos/stilehost/**'`
}

// Run implements the command.
func (c *extCall) Run(ctx context.Context, s *streams) error {
	if err := errors.Join(c.check(), c.ready()); err != nil {
		return err
	}
	if c.Durable && len(c.Bind) > 0 {
		return usagef("--durable: bindings that a person gives one call end with the process; have them approved, and leave --bind out")
	}
	return c.forCall(ctx, s, c.inputFlags, func(e *extensions, viewer lifecycle.Viewer, limits host.Limits, input []byte) error {
		by, err := e.author()
		if err != nil {
			return err
		}
		call := lifecycle.Call{Viewer: viewer, By: by, Via: s.via(), Tool: c.Tool, Input: input, Limits: limits}
		if len(c.Bind) == 0 {
			call.Via = lifecycle.ViaCommand
		} else if err := c.override(ctx, s, e, &call); err != nil {
			return err
		}
		if c.Durable {
			return c.durably(ctx, s, e, call)
		}
		result, err := e.Call(ctx, call)
		if errkind.Is[*lifecycle.UnknownToolError](err) {
			return e.unknown(ctx, viewer, c.Tool, err)
		}
		if err != nil {
			return &callError{err}
		}
		return c.result(s, result.Output)
	})
}

// durably makes a call durable.
func (c *extCall) durably(ctx context.Context, s *streams, e *extensions, call lifecycle.Call) error {
	run, err := e.PrepareRun(ctx, call)
	switch {
	case errkind.Is[*lifecycle.UnknownToolError](err):
		return e.unknown(ctx, call.Viewer, c.Tool, err)
	case errkind.Is[*lifecycle.UndurableError](err):
		return &usageError{err}
	case err != nil:
		return &callError{err}
	}
	spec, err := e.specOf(ctx, run, call.Input)
	if err != nil {
		return err
	}
	runs, err := e.openRuns(ctx, s, e.Manager)
	if err != nil {
		return err
	}
	return c.start(ctx, s, runs, spec, c.outputFlag)
}

// override gives a call the bindings of the command line. A person agrees to those that give more than was approved.
func (c *extCall) override(ctx context.Context, s *streams, e *extensions, call *lifecycle.Call) (err error) {
	if call.Bind, err = extension.ParseSpecs(capabilities.Builtin, c.Bind); err != nil {
		return err
	}
	err = e.CheckOverride(ctx, *call)
	if wider, ok := errors.AsType[*lifecycle.OverrideError](err); ok && wider.Wider {
		p, there := s.person()
		if !there {
			return err
		}
		call.Wider = true
		if err = e.CheckOverride(ctx, *call); err != nil {
			return err
		}
		var lines strings.Builder
		for _, b := range call.Bind {
			fmt.Fprintf(&lines, "    %s\n", b.Name)
			for _, text := range extension.Describe(b) {
				fmt.Fprintf(&lines, "        %s\n", printable.Line(text))
			}
		}
		agreed, err := p.confirm(ctx, fmt.Sprintf("For this call, %s would get bindings that nobody has approved:\n%sMay it?", line(c.Tool, 200), lines.String()))
		if err == nil && !agreed {
			err = &notApprovedError{question: "May it?", result: "nothing was called"}
		}
		return err
	}
	if errkind.Is[*lifecycle.UnknownToolError](err) {
		return e.unknown(ctx, call.Viewer, c.Tool, err)
	}
	return err
}
