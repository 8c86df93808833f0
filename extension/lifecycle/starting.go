package lifecycle

import (
	"context"
	"errors"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
)

// starting starts tools as runs of their own, as [runs.Starter].
type starting struct{ *calling }

// whose names those who reach the runs that a call starts: the extension, and whoever calls it.
func (s starting) whose(ctx context.Context) (string, error) {
	_, whose, err := s.by(ctx)
	return whose, err
}

func (s starting) by(ctx context.Context) (by *started, whose string, err error) {
	by, ok := ctx.Value(startedKey{}).(*started)
	switch {
	case !ok:
		return nil, "", errors.New("whoever starts a run is not a call of an extension")
	case s.options.Runs == nil:
		return nil, "", abi.Errorf(abi.CodeUnavailable, "this program keeps no runs, so it can start none")
	}
	return by, string(capability.JSON([]any{"extension", s.caller.scope, s.caller.manifest.Name, by.call.Viewer})), nil
}

// Start implements [runs.Starter].
func (s starting) Start(ctx context.Context, tool string, input []byte, key string) (string, error) {
	if _, err := s.resolve(tool); err != nil {
		return "", err
	}
	whose, err := s.whose(ctx)
	if err != nil {
		return "", err
	}
	by, call, err := s.callOf(ctx, tool, input, nil)
	if err != nil {
		return "", forCaller(tool, err)
	}
	if key != "" {
		key = string(capability.JSON([]string{tool, key}))
	}
	id, err := s.options.Runs.StartRun(ctx, whose, key, input, func() (Run, error) { return durably(s).prepareChild(ctx, by, call) })
	if undurable, ok := errors.AsType[*UndurableError](err); ok {
		return "", abi.Errorf(abi.CodeUnavailable, "%s: it cannot be a run, because %s", tool, undurable.Reason)
	}
	return id, forCaller(tool, err)
}

// Await implements [runs.Starter].
func (s starting) Await(ctx context.Context, id string) (over bool, err error) {
	whose, err := s.whose(ctx)
	if err != nil {
		return false, err
	}
	return s.options.Runs.AwaitRun(ctx, whose, id)
}

// Wait implements [runs.Starter].
func (s starting) Wait(ctx context.Context, id string) error {
	whose, err := s.whose(ctx)
	if err != nil {
		return err
	}
	return s.options.Runs.WaitRun(ctx, whose, id)
}

// Take implements [runs.Starter].
func (s starting) Take(ctx context.Context, id string) (tools.Ended, bool, error) {
	whose, err := s.whose(ctx)
	if err != nil {
		return tools.Ended{}, false, err
	}
	return s.options.Runs.RunEnded(ctx, whose, id)
}

// Status implements [runs.Starter].
func (s starting) Status(ctx context.Context, id string) (runs.Status, error) {
	whose, err := s.whose(ctx)
	if err != nil {
		return runs.Status{}, err
	}
	return s.options.Runs.RunStatus(ctx, whose, id)
}

// Signal implements [runs.Starter].
func (s starting) Signal(ctx context.Context, id, mailbox string, data []byte, key string) (bool, error) {
	by, whose, err := s.by(ctx)
	if err != nil {
		return false, err
	}
	from := "the tool " + extension.ToolName(by.offer.release.manifest.Name, by.offer.tool.Name)
	return s.options.Runs.SignalRun(ctx, whose, id, mailbox, from, data, key)
}

// Cancel implements [runs.Starter].
func (s starting) Cancel(ctx context.Context, id string) error {
	whose, err := s.whose(ctx)
	if err != nil {
		return err
	}
	return s.options.Runs.CancelRun(ctx, whose, id)
}
