package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
)

// Runs are where the durable calls are written down that durable calls make of tools. It is safe for concurrent use.
type Runs interface {
	// StartChild has the durable call of whose operation ctx is start another one, unless that operation has done so before. Otherwise prepare says
	// what it is. An *[abi.Error] becomes the result of the tool.
	StartChild(ctx context.Context, input []byte, prepare func() (Run, error)) error
	// TakeChild returns how the call ended that the operation with this number started. name is the tool's for its caller. It reports false if the call goes on.
	TakeChild(ctx context.Context, name string, sequence uint64) (ended tools.Ended, ok bool, err error)
	// StartRun starts a durable call for an extension, which whose names, and returns its id. key, if not empty, names it among those of the extension: one that is there is found.
	// Otherwise prepare says what it is. An *[abi.Error] becomes that of the operation.
	StartRun(ctx context.Context, whose, key string, input []byte, prepare func() (Run, error)) (id string, err error)
	// AwaitRun has the durable call of whose operation ctx is get a message in [abi.RunMailbox] once a call has ended that StartRun returned. It reports true if that has ended
	// or is not there any more.
	AwaitRun(ctx context.Context, whose, id string) (over bool, err error)
	// WaitRun waits for that.
	WaitRun(ctx context.Context, whose, id string) error
	// RunEnded returns how the call ended, as TakeChild. It reports false if it goes on. The error is an [abi.ErrNotFound] if it is not there.
	RunEnded(ctx context.Context, whose, id string) (ended tools.Ended, ok bool, err error)
	// RunStatus returns where the call is. Its errors are those of [runs.Starter].
	RunStatus(ctx context.Context, whose, id string) (runs.Status, error)
	// SignalRun delivers a message to the call. from is who sends it. Its errors are those of [runs.Starter].
	SignalRun(ctx context.Context, whose, id, mailbox, from string, data []byte, key string) (delivered bool, err error)
	// CancelRun asks for its end. Its errors are those of [runs.Starter].
	CancelRun(ctx context.Context, whose, id string) error
}

// RunCaller is a call of an extension that calls another tool durably.
type RunCaller struct {
	Scope     extension.Scope `json:"scope"`
	Extension string          `json:"extension"`
	// Tool is the full name of the tool that calls, and Binding the one that it does so with.
	Tool    string `json:"tool"`
	Binding string `json:"binding"`
	// Release and Digest are its release.
	Release int64  `json:"release"`
	Digest  string `json:"digest"`
}

// CallerError is an error of [Manager.Wake] that the tool is told which called the one that cannot go on.
type CallerError struct {
	// Caller is what it is told.
	Caller *abi.Error
	err    error
}

func (e *CallerError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *CallerError) Unwrap() error { return e.err }

// durably calls tools for durable calls, as [tools.Durable].
type durably struct{ *calling }

// Can implements [tools.Durable].
func (d durably) Can(name string) bool {
	p, err := d.pinOf(name)
	if err != nil {
		return true // it says why when it starts
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	o, ok := d.offerOf(Call{Tool: name, pin: p})
	return !ok || !usesWASI(o.release.manifest.WASI)
}

func usesWASI(w abi.WASI) bool { return w.HTTP != "" || len(w.Filesystem) > 0 }

// Start implements [tools.Durable].
func (d durably) Start(ctx context.Context, name string, input []byte, env map[string]abi.Capability) error {
	by, call, err := d.callOf(ctx, name, input, env)
	if err == nil {
		err = d.options.Runs.StartChild(ctx, input, func() (Run, error) { return d.prepareChild(ctx, by, call) })
	}
	if undurable, ok := errors.AsType[*UndurableError](err); ok { // since Can, it has been replaced
		return abi.Errorf(abi.CodeUnavailable, "%s: a version has replaced it that cannot be called durably, because %s; call it again", name, undurable.Reason)
	}
	return forCaller(name, err)
}

// Take implements [tools.Durable].
func (d durably) Take(ctx context.Context, tool string, sequence uint64) (tools.Ended, bool, error) {
	return d.options.Runs.TakeChild(ctx, tool, sequence)
}

// prepareChild checks that a call could begin now, as calls of tools by others do.
func (d durably) prepareChild(ctx context.Context, by *started, call Call) (run Run, err error) {
	if nesting := by.nesting(); len(call.pin.callers) > nesting {
		return run, &host.LimitError{Limit: "nesting", Value: strconv.Itoa(nesting)}
	}
	call.Limits = within(by.call.Limits)
	if run, err = d.PrepareRun(ctx, call); err != nil {
		return run, err
	}
	chain := make([]string, 0, len(run.Callers)+1)
	cycle := false
	for _, c := range run.Callers {
		chain = append(chain, c.Tool)
		cycle = cycle || c.Scope == run.Scope && c.Extension == run.Extension && c.Tool == run.Tool && c.Digest == run.Digest
	}
	if cycle {
		return run, &host.CycleError{Chain: append(chain, run.Tool)}
	}
	return run, nil
}

// nesting is how deep a durable call may be in others.
func (s *started) nesting() int {
	return cmp.Or(s.call.Limits.Nesting, s.policy.Load().Limits.Nesting, host.DefaultLimits().Nesting)
}

// within are the limits of a call that one with these limits makes.
func within(of host.Limits) (l host.Limits) {
	most := host.DefaultLimits()
	if of.Memory < most.Memory {
		l.Memory = of.Memory
	}
	if of.CPU < most.CPU {
		l.CPU = of.CPU
	}
	if of.Wall < most.Wall {
		l.Wall = of.Wall
	}
	l.Nesting = of.Nesting
	return l
}

// link is a caller of a durable call, and what it has called.
type link struct {
	caller  *active
	binding string
	callee  *active
	tool    string
}

// pinned returns the pin of what was called, if the policy lets the caller have its binding now.
func (m *Manager) pinned(l link) (*pin, error) {
	granted, _ := m.policy.Load().Limit(l.caller.manifest.Bindings)
	if i := slices.IndexFunc(granted, func(b extension.Binding) bool { return b.Name == l.binding }); i >= 0 {
		if g, ok := patternsOf(granted[i]); ok {
			if c := m.newCalling(l.caller, l.binding, g); c.callee(l.tool) != nil {
				return &pin{calling: c, scope: l.callee.scope, extension: l.callee.manifest.Name}, nil
			}
		}
	}
	return nil, abi.Errorf(abi.CodeRevoked, "the operator's policy has changed: %s must not call %s", l.caller.manifest.Name, l.tool)
}

// link finds those who called a durable call, from the inside, and checks that they may. It counts a call of the release of each.
func (s *started) link(ctx context.Context, t RunTarget, p RunPin) error {
	callee, tool := s.offer.release, t.Tool
	for i, c := range slices.Backward(p.Callers) {
		caller, err := s.releaseOf(ctx, RunTarget{Scope: c.Scope, Extension: c.Extension}, RunPin{Release: c.Release, Digest: c.Digest})
		if err != nil {
			return err
		}
		s.drops = append(s.drops, func() { s.leave(caller) })
		l := link{caller, c.Binding, callee, tool}
		by, err := s.pinned(l)
		if err == nil {
			err = by.check(ctx, tool, callee)
		}
		if err != nil {
			return err
		}
		if s.call.pin == nil {
			by.callers = p.Callers[:i+1]
			s.call.pin = by
		}
		s.links = append(s.links, l)
		callee, tool = caller, c.Tool
	}
	return nil
}

// stillLinked returns an error if one of those who called a durable call may not do so any more.
func (s *started) stillLinked() error {
	for _, l := range s.links {
		if err := l.caller.cause(); err != nil {
			return err
		}
		by, err := s.pinned(l)
		if err != nil {
			return err
		}
		if !l.caller.covers(by.rights, l.callee) {
			return by.uncovered(l.tool)
		}
	}
	return nil
}

// awake has the call end once one of its callers may not make it any more. The result ends that.
func (s *started) awake(cancel context.CancelCauseFunc) (stop func()) {
	var stops []func() bool
	for _, l := range s.links {
		stops = append(stops, context.AfterFunc(l.caller.ctx, func() { cancel(l.caller.cause()) }))
	}
	s.mu.Lock()
	if s.children == nil {
		s.children = map[*started]context.CancelCauseFunc{}
	}
	s.children[s] = cancel
	s.mu.Unlock()
	return func() {
		for _, stop := range stops {
			stop()
		}
		s.mu.Lock()
		delete(s.children, s)
		s.mu.Unlock()
	}
}

// endUnlinked ends the calls that their callers may not make any more.
func (m *Manager) endUnlinked() {
	m.mu.RLock()
	children := maps.Clone(m.children)
	m.mu.RUnlock()
	for s, cancel := range children {
		if err := s.stillLinked(); err != nil {
			cancel(err)
		}
	}
}

// told returns what the caller of a durable call is told of an error, or nil.
func (t RunTarget) told(err error) *abi.Error {
	if errors.As(err, new(*NotFoundError)) || errors.As(err, new(*DroppedError)) {
		return abi.Errorf(abi.CodeUnavailable, "%s: %v", t.Tool, err)
	}
	told, _ := errors.AsType[*abi.Error](forCaller(t.Tool, err))
	return told
}
