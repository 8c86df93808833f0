package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/ladder"
	"github.com/stilehost/stile/toolchain/npm"
)

const codeDescription = `Runs TypeScript once, in a fresh sandbox. code is the body of an async function: input is in scope, so are tools and env, and what it returns is the result, as JSON; a Blob is shown as the picture or file that it is.
e.g. code: "const ns: number[] = input.ns; return ns.reduce((a, b) => a + b, 0) / ns.length;", input: {"ns": [1, 2, 6]}
tools are all tools that you can call, extensions' own names first: "return (await tools.github.list_issues({ repo: 'a/b' })).length;" calls github_list_issues with the bindings that were approved for it.
env.workspace has your own files: "await env.workspace.write('a.txt', text); return env.workspace.list();"
The code has the JavaScript language, URL, TextEncoder, crypto.subtle.digest and the like, console.log (whose output is returned), Date, Math.random and timers. (await tools.person.approve({ question: "Delete 40 files?" })).approved asks a person, and waits.
Where the ladder has the rung npm, code may begin with import statements: "import { z } from 'zod';". A person may be asked whether it may. Apart from this it reaches nothing: no network. If you need more, or need it again, write an extension.`

type codeInput struct {
	Code  string          `json:"code" jsonschema:"the body of an async function, in TypeScript"`
	Input json.RawMessage `json:"input,omitempty" jsonschema:"any JSON, which the code has as input"`
}

type codeOutput struct {
	Result any      `json:"result" jsonschema:"what the code returned"`
	Logs   []string `json:"logs,omitempty" jsonschema:"the last lines that the code logged"`
	CPUMS  float64  `json:"cpu_ms" jsonschema:"processor time, in milliseconds"`
}

// ladder opens the ladder of the agent as the operator's policy has it now.
func (e *endpoint) ladder(ctx context.Context) (ladder.Options, error) {
	r, err := e.options.Manager.Rungs(ctx, e.viewer.Agent)
	return ladder.Options{Rung: r.Rung, Env: r.Env, User: e.viewer.String(), Limits: e.options.Limits}, err
}

// climb offers the tools of the agent's ladder, if the policy has changed since the last time.
func (e *endpoint) climb(ctx context.Context) error {
	if e.options.Ladder == nil {
		return nil
	}
	o, err := e.ladder(ctx)
	if err != nil {
		return err
	}
	reach := o.Rung.String() + " " + strings.Join(slices.Sorted(maps.Keys(o.Env)), " ")
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reach == reach {
		return nil
	}
	e.reach = reach
	var gone []string
	open := map[string]bool{}
	for _, t := range e.options.Ladder.Open(o).Tools() {
		open[t.Name] = true
		if e.climbed[t.Name] {
			continue
		}
		tool, err := ladderTool(t)
		if err != nil {
			return err
		}
		e.sdk.AddTool(tool, e.climber(tool))
		e.climbed[t.Name] = true
	}
	if o.Rung >= ladder.Isolate {
		if !e.climbed[ladder.CodeTool] {
			add[codeInput, codeOutput](e, ladder.CodeTool, "Run code", codeDescription, hints{destructive: true, open: true}, (*request).runCode)
			e.addSearch()
		}
		for _, name := range ladder.CodeTools() {
			open[name], e.climbed[name] = true, true
		}
	}
	for name := range e.climbed {
		if !open[name] {
			gone = append(gone, name)
			delete(e.climbed, name)
		}
	}
	if len(gone) > 0 {
		e.sdk.RemoveTools(gone...)
	}
	return nil
}

// ladderTools are the names of the tools that any ladder may have.
func ladderTools() []string {
	names := ladder.CodeTools()
	for _, t := range ladder.Tools() {
		names = append(names, t.Name)
	}
	return names
}

// beyond explains why the agent cannot call a tool that its ladder does not reach. It is nil for any other tool of Stile's own.
func (e *endpoint) beyond(ctx context.Context, tool string) error {
	e.mu.Lock()
	open := e.climbed[tool]
	e.mu.Unlock()
	if open || e.options.Ladder == nil {
		return nil
	}
	o, err := e.ladder(ctx)
	if err != nil {
		return err
	}
	if err := e.options.Ladder.Open(o).Check(tool); !errors.As(err, new(*ladder.UnknownToolError)) {
		return err
	}
	return nil
}

// ladderTool is a tool of the ladder as a client sees it.
func ladderTool(t ladder.Tool) (*sdk.Tool, error) {
	schema, err := readSchema(t.Definition.InputSchema)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	a := t.Definition.Annotations
	return &sdk.Tool{
		Name: t.Name, Description: t.Definition.Description, InputSchema: json.RawMessage(text), Meta: sdk.Meta{"stile/rung": t.Rung.String()},
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: a.ReadOnly, DestructiveHint: &a.Destructive, IdempotentHint: a.Idempotent, OpenWorldHint: &a.OpenWorld},
	}, nil
}

// climber calls a tool of the ladder.
func (e *endpoint) climber(tool *sdk.Tool) sdk.ToolHandler {
	return func(ctx context.Context, call *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		deepen(false)
		r, done, err := e.begin(call, tool)
		if err != nil {
			f, _ := e.explain(err, host.Usage{})
			return f.result(false), nil
		}
		defer done()
		defer r.tick(ctx)()
		r.builtin = true
		ctx = turns.For(ctx, e.viewer.String())
		o, err := e.ladder(ctx)
		if err != nil {
			return r.fail(err, host.Usage{})
		}
		env, err := r.defaults(ctx)
		if err != nil {
			return r.fail(err, host.Usage{})
		}
		allowed := allowed(call.Extra)
		result, err := e.options.Ladder.Open(o).Call(ctx, ladder.Call{Tool: tool.Name, Input: call.Params.Arguments, Env: env, Begin: func(context.Context) error {
			if allowed == nil {
				return nil
			}
			return allowed()
		}})
		if err != nil {
			return r.failOnLadder(err, result.Usage)
		}
		return r.say(result.Output)
	}
}

// defaults are the capabilities that a call has without asking, with the log and the progress of this request.
func (r *request) defaults(ctx context.Context) (host.Env, error) {
	state := extension.NewState("", r.log(ctx)) // these bindings keep nothing
	state.Progress = r.reported(ctx)
	return state.Env(ctx, extension.Defaults(r.options.Manager.Kinds()))
}

// failOnLadder reports a failure of a tool that Stile has written: its stack says nothing to a model, and no manifest would allow more.
func (r *request) failOnLadder(err error, usage host.Usage) (*sdk.CallToolResult, error) {
	if guest, ok := errors.AsType[*host.GuestError](err); ok {
		guest.Failure.Stack = ""
	}
	for i := range usage.Denials {
		usage.Denials[i].Private = true
	}
	return r.fail(err, usage)
}

// maxSaid is how many bytes of text a tool of the ladder answers at most: what the largest budget of tokens allows.
const maxSaid = 256 << 10

// say shows the output of a tool of the ladder: a text as it is, and anything else as any output.
func (r *request) say(output []byte) (*sdk.CallToolResult, error) {
	var text string
	if content := contentOf(output, r.options.MaxOutput, r.keepFile); content != nil {
		return &sdk.CallToolResult{Content: content}, nil
	}
	if len(output) > maxSaid || json.Unmarshal(output, &text) != nil {
		return r.reply(output, nil)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
}

// codeTime is how long code may take, because it may wait for a person.
const codeTime = 10 * time.Minute

// asker returns what asks a person whether code may go on: the client's, if the policy says that a person uses it, and otherwise whoever
// opens the pages.
func (r *request) asker(ctx context.Context) func(context.Context, string, func(bool, error)) error {
	if r.person() == "" || r.call.ProtocolVersion() >= sessionless {
		return func(ctx context.Context, question string, done func(bool, error)) error {
			return r.options.Manager.Ask(ctx, r.viewer, question, done)
		}
	}
	return func(within context.Context, question string, done func(bool, error)) error {
		if len(question) > lifecycle.MaxQuestion {
			return &lifecycle.QuestionError{Reason: fmt.Sprintf("the question has %d bytes; at most %d", len(question), lifecycle.MaxQuestion)}
		}
		answered, err := r.options.Manager.Asking(r.viewer)
		if err != nil {
			return err
		}
		asking, cancel := context.WithTimeout(ctx, keepFor)
		stop := context.AfterFunc(within, cancel)
		go func() {
			defer answered()
			defer cancel()
			defer stop()
			said, err := r.call.Session.Elicit(asking, &sdk.ElicitParams{
				Mode: "form", Message: fmt.Sprintf("Code of the agent %s asks, and nobody has approved its words:\n%s", r.viewer.Agent, printable.Marked(question)),
				RequestedSchema: map[string]any{
					"type": "object", "required": []string{questionName},
					"properties": map[string]any{questionName: map[string]any{"type": "boolean", "title": "Let it go on", "default": false}},
				},
			})
			done(err == nil && said.Action == "accept" && said.Content[questionName] == true, err)
		}()
		return nil
	}
}

func (r *request) runCode(ctx context.Context, in codeInput) (*sdk.CallToolResult, error) {
	if strings.TrimSpace(in.Code) == "" {
		return nil, mistake("code is empty; send the body of a function")
	}
	defer r.tick(ctx)()
	ctx = turns.For(ctx, r.viewer.String())
	o, err := r.ladder(ctx)
	if err != nil {
		return nil, err
	}
	if o.Toolbox, err = r.options.Manager.Toolbox(r.viewer, allowed(r.call.Extra)); err != nil { //nolint:contextcheck // it looks for changes, and no call should cut that short
		return nil, err
	}
	o.Ask = r.asker(ctx)
	packages := r.options.Manager.CodePackages(r.viewer, o.Ask)
	packages.Progress = func(p npm.Progress) { r.progress(ctx, 0, 0, "npm: "+p.String()) }
	o.Packages = packages
	o.Limits.Wall = cmp.Or(o.Limits.Wall, codeTime)
	env, err := r.defaults(ctx)
	if err != nil {
		return nil, err
	}
	run, done := packages.Within(ctx)
	defer done()
	result, err := r.options.Ladder.Open(o).Run(run, ladder.Code{Text: in.Code, Input: in.Input, Env: env})
	if err != nil {
		if withdrawn, ok := errors.AsType[*lifecycle.PackagesError](context.Cause(run)); ok {
			return r.fail(withdrawn, result.Usage)
		}
		if thrown, ok := errors.AsType[*host.GuestError](err); ok && lifecycle.Sort(thrown).Unbound != "" {
			thrown.Failure.Message += "; code_run cannot have it: write an extension, and ask for it in the manifest"
		}
		for i, d := range result.Usage.Denials { // no manifest allows the code or Stile's own tools more, but one may allow an extension more
			tool, _, _ := strings.Cut(d.Operation, ":")
			result.Usage.Denials[i].Private = d.Private || d.Binding != ladder.ToolsBinding || slices.Contains(ladderTools(), tool)
		}
		if ctx.Err() == nil {
			return r.fail(err, result.Usage)
		}
		return nil, err
	}
	return r.ran(result)
}

// shownBeside takes the place of what code returned where that is content.
const shownBeside = "shown as content"

// ran answers what code returned: pictures, sounds and files as such, beside the rest of the answer, and anything else as JSON in it.
func (r *request) ran(result host.Result) (*sdk.CallToolResult, error) {
	output := codeOutput{json.RawMessage(result.Output), r.logs.last(), milliseconds(result.Usage.CPU)}
	content := contentOf(result.Output, r.options.MaxOutput, r.keepFile)
	if content != nil {
		output.Result = shownBeside
	}
	answer, err := r.answer(output)
	if err == nil {
		answer.Content = append(content, answer.Content...)
	}
	return answer, err
}
