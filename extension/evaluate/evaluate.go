// Package evaluate runs the code of the kind code: it is what [code.Evaluator] asks of a program that embeds the host. The code runs in a
// fresh instance that has nothing but what its caller passes on, a clock, random numbers and a console.
package evaluate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/toolchain"
)

// Options configure an [Evaluator]. Toolchain is required.
type Options struct {
	// Toolchain is called when the first code runs, which may take seconds the first time.
	Toolchain func(context.Context) (*toolchain.Toolchain, error)
	// Recorder takes recordings of the runs, each as a call of its own. Default: they are recorded as the host's options say.
	Recorder Recorder
	// Logger receives what goes wrong beside a run. Default: nothing is logged.
	Logger *slog.Logger
}

// Recorder takes recordings of calls and keeps the components that they ran in, as *recording.Store does.
type Recorder interface {
	host.Recorder
	Keep(ctx context.Context, wasm []byte) error
}

// Evaluator runs code for the grants of any number of sites. It is safe for concurrent use. It needs no closing: the host frees what it has
// loaded.
type Evaluator struct {
	options Options
	// The evaluator of code without parts of the prelude, and that of code with some.
	plain, parts making
}

// making is an evaluator that is made when it is first used.
type making struct {
	building  chan struct{} // has room for one that makes it
	made      chan struct{} // closed when evaluator is set
	evaluator *toolchain.Evaluator
}

func newMaking() making { return making{building: make(chan struct{}, 1), made: make(chan struct{})} }

// New returns an evaluator, which has built nothing.
func New(o Options) *Evaluator {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Evaluator{options: o, plain: newMaking(), parts: newMaking()}
}

// get returns the component in which code with these parts runs. It knows every interface of the host and no names of bindings, so there is
// one, however a guest calls what it passes on.
func (e *Evaluator) get(ctx context.Context, parts toolchain.Parts) (*toolchain.Evaluator, error) {
	m := &e.plain
	if parts {
		m = &e.parts
	}
	select {
	case <-m.made:
		return m.evaluator, nil
	default:
	}
	select {
	case m.building <- struct{}{}:
		defer func() { <-m.building }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if m.evaluator != nil {
		return m.evaluator, nil
	}
	ctx = context.WithoutCancel(ctx) // a guest that starts code and ends could have this done again and again
	t, err := e.options.Toolchain(ctx)
	if err != nil {
		return nil, err
	}
	made, err := t.Evaluator(ctx, nil, parts)
	if err != nil {
		return nil, err
	}
	if e.options.Recorder != nil {
		if err := e.options.Recorder.Keep(ctx, made.Wasm()); err != nil {
			e.options.Logger.Warn("keep the component of code for replays", "error", err)
		}
	}
	m.evaluator = made
	close(m.made)
	return made, nil
}

// Run is a [code.Evaluator].
func (e *Evaluator) Run(ctx context.Context, p code.Program, done func(output []byte, err error)) {
	in, err := e.get(ctx, toolchain.PartsOf(p.Text))
	if err != nil {
		done(nil, err)
		return
	}
	if p.Env["clock"] == nil {
		p.Env["clock"] = clock.System()
	}
	if p.Env["random"] == nil {
		p.Env["random"] = random.System()
	}
	request := host.Request{
		Tool: toolchain.BodyTool, Name: p.Name, Input: p.Input, Env: p.Env,
		Limits: host.Limits{CPU: p.Limits.CPU, Memory: p.Limits.Memory, Input: int(p.Limits.Bytes) + maxCode, Output: int(p.Limits.Bytes)},
	}
	if e.options.Recorder != nil {
		request.Recorder = e.options.Recorder
	}
	ended := func(r host.Result, err error) { done(r.Output, forCaller(p.Name, err)) }
	if err := in.Start(ctx, toolchain.Body(toolchain.Program{Name: p.Name, Text: p.Text}), request, ended); err != nil {
		ended(host.Result{}, err)
	}
}

// maxCode is how many bytes the code can have besides the input, once it is transformed: the toolchain bounds its text and its source map.
const maxCode = 1 << 20

// maxProblems is how many bytes the problems of code have in an error.
const maxProblems = 4 << 10

// forCaller converts a run's error into the one for the guest that started it.
func forCaller(name string, err error) error {
	var broken *toolchain.BuildError
	var busy *toolchain.BusyError
	var failed *host.GuestError
	switch {
	case errors.As(err, &broken):
		return abi.Errorf(abi.CodeInvalid, "%s", printable.Short(broken.Error(), maxProblems))
	case errors.As(err, &busy):
		return abi.Errorf(abi.CodeUnavailable, "%s: %v", name, busy)
	case errors.As(err, &failed):
		return &code.ThrownError{Failure: failed.Failure}
	default:
		return host.ForCaller(name, err)
	}
}
