package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
)

// outcome is the result of a tool in a test: one of its fields.
type outcome struct {
	Output json.RawMessage `json:"output,omitempty"`
	Error  *string         `json:"error,omitempty"`
}

// doubled is a real toolbox with a test's outcomes. Its tools have finished when Start returns.
type doubled struct{ *Toolbox }

// Double implements [double.Doubler] with a toolbox whose results come from the test.
func (Rights) Double(_ context.Context, t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	return answered(t, answers, nil)
}

// Double implements [double.Doubler] with a toolbox of the tools that the patterns name, whose results come from the test.
func (g Calls) Double(_ context.Context, t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	return answered(t, answers, &g)
}

// answered is a toolbox with the results of a test, of tools that a manifest names, if there is one.
func answered(t *double.Test, answers json.RawMessage, named *Calls) (abi.Capability, error) {
	outcomes, err := double.Members[double.Answers[outcome]](t, answers, `{"github_create_pr": {"output": {"number": 1}}}`)
	if err != nil {
		return nil, err
	}
	for name, o := range outcomes {
		if named != nil && !named.Names(name) {
			return nil, t.Wrong(fmt.Sprintf("[%s]: the binding cannot call a tool of that name", double.Quoted(name)), "a name that fits "+list(named.Patterns))
		}
		if slices.ContainsFunc(o.List, func(o outcome) bool { return (o.Output == nil) == (o.Error == nil) }) {
			return nil, t.Wrong(fmt.Sprintf("[%s] needs either output or error", double.Quoted(name)), `{"output": {}} or {"error": "what went wrong"}`)
		}
	}
	var all []Description
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		all = append(all, Description{Name: name, InputSchema: `{"type":"object"}`})
	}
	script := double.NewScript(outcomes)
	box, err := New(Options{
		Resolve: func(name string) (Func, error) {
			if named != nil && !named.Names(name) {
				return nil, named.Unnamed(name)
			}
			o, n, ok := script.Next(name)
			if !ok {
				what := "a call of the tool " + double.Quoted(name)
				if n > 0 {
					what = fmt.Sprintf("call %d of the tool %s", n, double.Quoted(name))
				}
				return nil, t.Unanswered(what, double.Quoted(name)+`: {"output": {}}`)
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
