package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/tools"
)

// outcome is what a stubbed tool gives: one of its fields.
type outcome struct {
	Output json.RawMessage `json:"output"`
	Error  *string         `json:"error"`
}

// toolbox is a real toolbox, of stubs, whose tools are done when they have been started: nothing is at work beside the
// guest, so that what comes first is always the same.
type toolbox struct{ *tools.Toolbox }

// toolbox makes a toolbox of tools whose results are in the test.
func (e *environment) toolbox(binding string, raw json.RawMessage) (abi.Capability, error) {
	stubs, err := members[outcome](e, raw, `{"github_create_pr": {"output": {"number": 1}}}`)
	if err != nil {
		return nil, err
	}
	for name, stub := range stubs {
		if (stub.Output == nil) == (stub.Error == nil) {
			return nil, e.wrong(fmt.Sprintf("[%s] has to say output or error, one of them", quoted(name)), `{"output": {}} or {"error": "what went wrong"}`)
		}
	}
	box, err := tools.New(tools.Options{
		Resolve: func(name string) (tools.Func, error) {
			stub, ok := stubs[name]
			if !ok {
				return nil, e.unanswered(binding, "a call of the tool "+quoted(name), quoted(name)+`: {"output": {}}`)
			}
			return func(context.Context, string, []byte, map[string]abi.Capability) ([]byte, error) {
				if stub.Error != nil {
					return nil, abi.Errorf(abi.CodeUnavailable, "%s: %s", name, *stub.Error)
				}
				return stub.Output, nil
			}, nil
		},
		Describe: func() []tools.Description {
			var all []tools.Description
			for _, name := range slices.Sorted(maps.Keys(stubs)) {
				all = append(all, tools.Description{Name: name, InputSchema: `{"type":"object"}`})
			}
			return all
		},
	})
	return toolbox{box}, err
}

// Open implements [abi.Opener].
func (t toolbox) Open(ctx context.Context) (any, error) {
	box, err := t.Toolbox.Open(ctx)
	if err != nil {
		return nil, err
	}
	return toolbox{box.(*tools.Toolbox)}, nil
}

// Start implements the method `start`.
func (t toolbox) Start(ctx context.Context, tool, input string, env abi.Env) (*tools.Call, error) {
	call, err := t.Toolbox.Start(ctx, tool, input, env)
	if err == nil {
		until(ctx, call.Subscribe(ctx))
	}
	return call, err
}

// until waits for what only this process can be waiting for.
func until(ctx context.Context, done abi.Pollable) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}
