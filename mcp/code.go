package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	captools "github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/toolchain"
)

const codeDescription = `Runs TypeScript once, in a fresh sandbox. code is the body of an async function: input is in scope, so are tools, and what it returns is the result, as JSON.
e.g. code: "const ns: number[] = input.ns; return ns.reduce((a, b) => a + b, 0) / ns.length;", input: {"ns": [1, 2, 6]}
tools are all tools that you can call, extensions' own names first: "return (await tools.github.list_issues({ repo: 'a/b' })).length;" calls github_list_issues with the bindings that were approved for it.
The code has the JavaScript language, URL, TextEncoder, crypto.subtle.digest and the like, console.log (whose output is returned), Date, Math.random and timers. Apart from tools it reaches nothing: no imports, no network, no files. Nothing is kept for the next call. If you need more, or need it again, write an extension.`

type codeInput struct {
	Code  string          `json:"code" jsonschema:"the body of an async function, in TypeScript"`
	Input json.RawMessage `json:"input,omitempty" jsonschema:"any JSON, which the code has as input"`
}

type codeOutput struct {
	Result any      `json:"result" jsonschema:"what the code returned"`
	Logs   []string `json:"logs,omitempty" jsonschema:"the last lines that the code logged"`
	CPUMS  float64  `json:"cpu_ms" jsonschema:"processor time, in milliseconds"`
}

const toolsBinding = "tools"

// CodeBindings are the bindings of the code that code_run runs, with their interfaces, in the form that toolchain.Evaluator takes.
// kinds are those of the manager.
func CodeBindings(kinds capability.Set) map[string]string {
	known := extension.Known(extension.Defaults(kinds))
	known[toolsBinding] = captools.Interface
	return known
}

func (e *endpoint) addCode() {
	if e.options.Evaluator == nil {
		return
	}
	add[codeInput, codeOutput](e, "code_run", "Run code", codeDescription, hints{destructive: true, open: true}, (*request).runCode)
}

func (r *request) runCode(ctx context.Context, in codeInput) (*sdk.CallToolResult, error) {
	if strings.TrimSpace(in.Code) == "" {
		return nil, mistake("code is empty; send the body of a function")
	}
	defer r.tick(ctx)()
	ctx = turns.For(ctx, r.viewer.String())
	evaluator, err := r.options.Evaluator(ctx)
	if err != nil {
		return nil, err
	}
	if in.Input == nil {
		in.Input = json.RawMessage("null")
	}
	toolbox, err := r.options.Manager.Toolbox(r.viewer, allowed(r.call.Extra)) //nolint:contextcheck // it looks for changes, and no call should cut that short
	if err != nil {
		return nil, err
	}
	env, err := extension.NewState("", r.log(ctx)).Env(ctx, extension.Defaults(r.options.Manager.Kinds())) // these bindings keep nothing
	if err != nil {
		return nil, err
	}
	env[toolsBinding] = toolbox
	result, err := evaluator.Do(ctx, toolchain.Body(toolchain.Program{Name: "code.ts", Text: in.Code}), host.Request{
		Tool: toolchain.BodyTool, User: r.viewer.String(), Input: in.Input, Env: env, Limits: r.options.Limits,
	})
	if err != nil {
		if thrown, ok := errors.AsType[*host.GuestError](err); ok && toolchain.Unbound(thrown.Failure) != "" {
			thrown.Failure.Message += "; code_run cannot have it: write an extension, and ask for it in the manifest"
		}
		return nil, err
	}
	return r.answer(codeOutput{json.RawMessage(result.Output), r.logs.last(), milliseconds(result.Usage.CPU)})
}
