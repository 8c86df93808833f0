// Package ladder offers an agent five rungs of tools, each useful alone and each adding to the ones below: files of a workspace, code in
// a fresh instance, that code with npm packages, a headless browser, and a container with real toolchains. The tools are extensions of
// Stile's own: they run as components, so each operation passes the gate, and limits, denials and recordings are those of any tool. The
// opener of a [Ladder] chooses the highest rung and hands over the capabilities; no tool widens either.
package ladder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// Options configure a [Ladder].
type Options struct {
	// Rung is the highest rung. Default: [Workspace], the lowest.
	Rung Rung
	// Env are the capabilities behind the rungs, by the names workspace, browser and sandbox. Code of rung [Isolate] has workspace too.
	// The caller of Open releases them after its last call.
	Env host.Env
	// Toolbox are tools that code can call besides those of the ladder. Default: none.
	Toolbox *tools.Toolbox
	// Packages resolves the npm packages that code imports, from rung [NPM] on. Default: code imports none.
	Packages Packages
	// Ask asks a person whether code may go on, for the tool [AskTool]: it calls done once, when the person has answered or ctx has ended. An
	// error says why the question cannot be asked. Default: code has no such tool.
	Ask func(ctx context.Context, question string, done func(approved bool, err error)) error
	// User is whose calls these are, as in [host.Request].
	User string
	// Limits that are not zero override the host's defaults.
	Limits host.Limits
}

// Ladder is the right to use the tools up to one rung. It is immutable, safe for concurrent use, and needs no closing.
type Ladder struct {
	kit     *Kit
	options Options
	catalog func() *tools.Catalog // what finds tools for code
}

// Open opens a ladder.
func (k *Kit) Open(o Options) *Ladder {
	o.Env = maps.Clone(o.Env)
	l := &Ladder{kit: k, options: o}
	l.catalog = sync.OnceValue(func() *tools.Catalog { return k.catalog(l.describe()) })
	return l
}

// Rung is the highest rung.
func (l *Ladder) Rung() Rung { return l.options.Rung }

// Tools are the tools up to the highest rung whose capabilities are there, from the bottom. [CodeTools] are not among them.
func (l *Ladder) Tools() []Tool {
	return slices.DeleteFunc(Tools(), func(t Tool) bool {
		return t.Rung > l.options.Rung || l.missing(setOf(t.Name)) != ""
	})
}

// setOf is the set that a registered name belongs to.
func setOf(tool string) (s set) {
	for _, s := range sets {
		if strings.HasPrefix(tool, s.name+"_") {
			return s
		}
	}
	return set{}
}

// missing names the first binding that a set needs and this ladder lacks.
func (l *Ladder) missing(s set) string {
	for _, name := range s.bindings {
		if l.options.Env[name] == nil {
			return name
		}
	}
	return ""
}

// find returns a tool that may be called. The error is a *[RungError], an *[UnboundError] or an *[UnknownToolError].
func (l *Ladder) find(name string) (Tool, set, error) {
	all := readTools()
	i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, set{}, &UnknownToolError{name}
	}
	s := setOf(name)
	if all[i].Rung > l.options.Rung {
		return Tool{}, set{}, &RungError{name, all[i].Rung, l.options.Rung}
	}
	if missing := l.missing(s); missing != "" {
		return Tool{}, set{}, &UnboundError{name, missing}
	}
	return all[i], s, nil
}

// Check returns the error that a call of a tool would begin with: a *[RungError], an *[UnboundError] or an *[UnknownToolError].
func (l *Ladder) Check(tool string) error {
	if slices.Contains(CodeTools(), tool) {
		if l.options.Rung < Isolate {
			return &RungError{tool, Isolate, l.options.Rung}
		}
		return nil
	}
	_, _, err := l.find(tool)
	return err
}

// Call is a call of a tool.
type Call struct {
	// Tool is a registered name, such as "workspace_read".
	Tool string
	// Input is JSON.
	Input []byte
	// Env are more capabilities for this call, such as a console whose lines its caller wants.
	Env host.Env
	// Begin is as in [host.Request].
	Begin func(context.Context) error
}

// Call calls a tool that is written in TypeScript. In addition to the errors of [host.Component.Do], there are *[RungError],
// *[UnboundError], *[UnknownToolError] and [ErrClosed].
func (l *Ladder) Call(ctx context.Context, c Call) (host.Result, error) {
	t, s, err := l.find(c.Tool)
	if err != nil {
		return host.Result{}, err
	}
	component, err := l.kit.component(ctx, s)
	if err != nil {
		return host.Result{}, err
	}
	return component.Do(ctx, l.request(t, s, c))
}

func (l *Ladder) request(t Tool, s set, c Call) host.Request {
	env := maps.Clone(c.Env)
	if env == nil {
		env = host.Env{}
	}
	for _, name := range s.bindings {
		env[name] = l.options.Env[name]
	}
	return host.Request{
		Tool: t.Definition.Name, Name: t.Name, User: l.options.User, Input: c.Input, Env: env, Limits: l.options.Limits,
		Recorder: l.kit.recorder(), Begin: c.Begin,
	}
}

// Code is a program for [Ladder.Run].
type Code struct {
	// Text is the body of an async function with the parameters input, env and tools, in TypeScript.
	Text string
	// Name is its name in errors and stacks. Default: code.ts.
	Name string
	// Input is any JSON. Default: null.
	Input []byte
	// Env are capabilities that the code has besides the workspace and tools, such as a console. Names of Options.Env win.
	Env host.Env
	// Begin is as in [host.Request].
	Begin func(context.Context) error
}

// AskTool is the tool with which code asks a person whether it may go on. Only code has it, and only where a person can be asked.
const AskTool = "person_approve"

const (
	askDescription = `Asks a person whether the code may go on, and waits for the answer: (await tools.person.approve({ question: "Delete 40 files?" })).approved`
	askSchema      = `{"type":"object","properties":{"question":{"type":"string","minLength":1}},"required":["question"],"additionalProperties":false}`
)

// ask is the tool AskTool.
func (l *Ladder) ask(ctx context.Context, _ string, input []byte, _ map[string]abi.Capability, done func([]byte, error)) {
	var in struct {
		Question string `json:"question"`
	}
	if err := json.Unmarshal(input, &in); err != nil || in.Question == "" {
		done(nil, abi.Errorf(abi.CodeInvalid, `%s: the input is not {"question": "..."}`, AskTool))
		return
	}
	err := l.options.Ask(ctx, in.Question, func(approved bool, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(fmt.Appendf(nil, `{"approved":%t}`, approved), nil)
	})
	if err != nil {
		done(nil, abi.Errorf(abi.CodeUnavailable, "%s: %v", AskTool, err))
	}
}

// codeBindings are the capabilities of the ladder that code has itself. It reaches the others through tools.
var codeBindings = []string{"workspace"}

// ToolsBinding is the binding of code's tools.
const ToolsBinding = "tools"

// Run runs code once, in a fresh instance. It can call the tools of this ladder up to its rung, and those of Options.Toolbox, as tools.
// It may begin with import statements, which need the rung [NPM]. In addition to the errors of [toolchain.Evaluator.Do] and of
// Options.Packages, there are *[RungError] and [ErrClosed].
func (l *Ladder) Run(ctx context.Context, c Code) (host.Result, error) {
	if err := l.Check(CodeTool); err != nil {
		return host.Result{}, err
	}
	env, err := l.codeEnv(c.Env)
	if err != nil {
		return host.Result{}, err
	}
	if c.Input == nil {
		c.Input = json.RawMessage("null")
	}
	body, modules, err := toolchain.BodyImports(c.Text)
	if err != nil {
		return host.Result{}, err
	}
	var evaluator *toolchain.Evaluator
	if len(modules) == 0 {
		evaluator, err = l.kit.evaluator(ctx, env, toolchain.PartsOf(body))
	} else {
		var done func()
		if evaluator, done, err = l.withPackages(ctx, c.Text, modules, env); err == nil {
			defer done()
		}
	}
	if err != nil {
		return host.Result{}, err
	}
	return evaluator.Do(ctx, toolchain.Body(toolchain.Program{Name: c.Name, Text: body, ImportsFirst: true}), host.Request{
		Tool: toolchain.BodyTool, User: l.options.User, Input: c.Input, Env: env, Limits: l.options.Limits, Recorder: l.kit.recorder(), Begin: c.Begin,
	})
}

// codeEnv is the env of code.
func (l *Ladder) codeEnv(more host.Env) (host.Env, error) {
	env := maps.Clone(more)
	if env == nil {
		env = host.Env{}
	}
	for _, name := range codeBindings {
		if c := l.options.Env[name]; c != nil {
			env[name] = c
		}
	}
	own, err := tools.New(tools.Options{Resolve: func(name string) (tools.Func, error) { return l.callee(name, more) }, Finder: l.catalog()})
	if err != nil {
		return nil, err
	}
	if l.options.Toolbox != nil {
		own = own.With(l.options.Toolbox)
	}
	env[ToolsBinding] = own
	return env, nil
}

// callee is a tool of the ladder as code calls it.
func (l *Ladder) callee(name string, more host.Env) (tools.Func, error) {
	if name == AskTool && l.options.Ask != nil {
		return l.ask, nil
	}
	t, s, err := l.find(name)
	switch {
	case errors.As(err, new(*UnknownToolError)):
		return nil, abi.Errorf(abi.CodeNotFound, "%v", err)
	case err != nil:
		return nil, abi.Errorf(abi.CodeUnavailable, "%v", err)
	}
	return func(ctx context.Context, name string, input []byte, passed map[string]abi.Capability, done func([]byte, error)) {
		if len(passed) > 0 {
			done(nil, abi.Errorf(abi.CodeInvalid, "%s: it has the ladder's bindings, and accepts no others", name))
			return
		}
		component, err := l.kit.component(ctx, s)
		if err != nil {
			done(nil, err)
			return
		}
		ended := func(r host.Result, err error) { done(r.Output, host.ForCaller(name, err)) }
		if err := component.Start(ctx, l.request(t, s, Call{Input: input, Env: more}), ended); err != nil {
			ended(host.Result{}, err)
		}
	}, nil
}

func (l *Ladder) describe() []tools.Description {
	var all []tools.Description
	if l.options.Ask != nil {
		all = append(all, tools.Description{Name: AskTool, Description: askDescription, InputSchema: askSchema})
	}
	for _, t := range l.Tools() {
		all = append(all, tools.Description{Name: t.Name, Description: t.Definition.Description, InputSchema: t.Definition.InputSchema})
	}
	return all
}
