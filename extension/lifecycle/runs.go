package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
)

// RunTarget says whose a durable call is, and of what.
type RunTarget struct {
	Viewer    Viewer          `json:"viewer"`
	Scope     extension.Scope `json:"scope"`
	Extension string          `json:"extension"`
	// Tool is the full name.
	Tool string `json:"tool"`
}

// Visible reports whether a viewer may know about the run and end it: it is the viewer's own, or the viewer is a person. Others who can call the tool see
// as little of it as of the caller's other calls.
func (t RunTarget) Visible(v Viewer) bool {
	return v.Person || t.Viewer == v
}

// RunPin is what a durable call keeps from its begin: the release whose authority it has, and what the call was made with.
type RunPin struct {
	Release int64           `json:"release"`
	Digest  string          `json:"digest"`
	By      string          `json:"by"`
	Via     string          `json:"via,omitempty"`
	Vars    json.RawMessage `json:"vars,omitempty"`
	Limits  host.Limits     `json:"limits,omitzero"`
	// Callers are the durable calls that called this one, the first first. Each must have the right to do so whenever the call goes on.
	Callers []RunCaller `json:"callers,omitempty"`
}

// Run is a durable call of a tool before it begins.
type Run struct {
	RunTarget
	RunPin
	// Own is the tool's own name.
	Own string
	// Code is the digest of the component, Component returns it, and Modules are the names of the core modules that it imports.
	Code      string
	Component func(context.Context) ([]byte, error)
	Modules   []string
	// Deadline is how long it may take, and Retry says whether it begins again when it fails. They are zero if the manifest says nothing of the tool.
	Deadline time.Duration
	Retry    extension.Retry
}

// DurableTool returns what the manifest says of a tool whose calls are durable, if a viewer sees such a tool.
func (m *Manager) DurableTool(ctx context.Context, v Viewer, tool string) (extension.Durable, bool) {
	if m.Refresh(ctx) != nil { // the call fails for the same reason
		return extension.Durable{}, false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	o, ok := m.find(v, tool)
	if !ok {
		return extension.Durable{}, false
	}
	return o.release.manifest.DurableTool(o.tool.Name)
}

// UndurableError reports a call that cannot be durable.
type UndurableError struct{ Tool, Reason string }

// Error implements error.
func (e *UndurableError) Error() string {
	return fmt.Sprintf("%s cannot be called durably: %s", e.Tool, e.Reason)
}

// PrepareRun checks that a call could begin now, its input included, and returns what has to be written down to make it later. Its errors are those of
// [Manager.Call], and an *[UndurableError].
func (m *Manager) PrepareRun(ctx context.Context, c Call) (Run, error) {
	if len(c.Bind) > 0 {
		return Run{}, &UndurableError{c.Tool, "bindings that a person gives one call end with the process"}
	}
	s, err := m.prepare(ctx, c)
	if err != nil {
		return Run{}, err
	}
	defer s.drop()
	a := s.offer.release
	if usesWASI(s.request.WASI) {
		return Run{}, &UndurableError{c.Tool, "it uses WASI"}
	}
	if err := s.component.CheckInput(s.ctx, s.request); err != nil { //nolint:contextcheck // it is made of ctx
		return Run{}, err
	}
	if c.Allowed != nil {
		if err := c.Allowed(); err != nil {
			return Run{}, err
		}
	}
	digest := s.component.Digest()
	run := Run{
		RunTarget: RunTarget{c.Viewer, a.scope, a.manifest.Name, c.Tool},
		RunPin:    RunPin{Release: a.id, Digest: a.digest, By: c.by(), Via: c.Via, Vars: s.request.Vars, Limits: c.Limits},
		Own:       s.offer.tool.Name, Code: digest, Modules: s.component.Modules(),
		Component: func(ctx context.Context) (wasm []byte, err error) {
			err = m.db.View(ctx, func(conn *sqlite.Conn) error {
				wasm, err = object(ctx, conn, digest)
				return err
			})
			return wasm, err
		},
	}
	if c.pin != nil {
		run.Callers = c.pin.callers
	}
	if d, ok := a.manifest.DurableTool(run.Own); ok {
		run.Deadline, run.Retry = d.Deadline, d.Retry
	}
	return run, nil
}

// Awake is what a durable call may do while it is awake.
type Awake struct {
	Request host.Request
	// Context is what the call runs under. It ends with the context that Wake got, and before the authority is taken away, with the reason as its cause.
	Context context.Context
	// Release gives back what the call has. It must be called.
	Release func()
	// Caller is what the tool is told of an error that called this one. It is nil if no tool did. It returns nil if nothing is to be said.
	Caller func(error) *abi.Error
	// Ended writes down that the run has ended, in the statistics and the audit log.
	Ended func(host.Result, error)
}

// Wake returns what a durable call may do now: what its own release was approved for, as far as the policy allows it today. A release keeps its approval
// for its runs while another one has taken its place. Once the extension is revoked or removed, the error is a *[RevokedError]. A call that another tool made needs
// as well what was approved for that one, and so on: an error of such a call may be a *[CallerError].
func (m *Manager) Wake(ctx context.Context, t RunTarget, p RunPin) (Awake, error) {
	if err := m.enter(); err != nil {
		return Awake{}, err
	}
	s := &started{
		Manager: m, began: true, drops: []func(){m.calls.Done},
		call: Call{Viewer: t.Viewer, By: p.By, Via: p.Via, Tool: t.Tool, Limits: p.Limits},
	}
	awake, err := s.wake(ctx, t, p)
	if err != nil {
		s.drop()
		if told := t.told(err); told != nil && len(p.Callers) > 0 && ctx.Err() == nil {
			err = &CallerError{told, err}
		}
		return Awake{}, err
	}
	return awake, nil
}

func (s *started) wake(ctx context.Context, t RunTarget, p RunPin) (Awake, error) {
	m := s.Manager
	if err := m.Refresh(ctx); err != nil {
		return Awake{}, err
	}
	a, err := m.releaseOf(ctx, t, p)
	if err != nil {
		return Awake{}, err
	}
	s.drops = append(s.drops, func() { m.leave(a) })
	at := slices.IndexFunc(a.tools, func(d abi.Definition) bool { return extension.ToolName(a.manifest.Name, d.Name) == t.Tool })
	if at < 0 {
		return Awake{}, &UnknownToolError{t.Tool}
	}
	s.offer = offer{a, a.tools[at]}
	if err := s.link(ctx, t, p); err != nil {
		return Awake{}, err
	}
	s.breaker = a.breaker(broken{s.offer.tool.Name, t.Viewer, s.call.pin.by()})
	if reason := a.quarantined(); reason != "" {
		return Awake{}, &QuarantinedError{a.manifest.Name, reason}
	}
	under, cancel := context.WithCancelCause(a.ctx) // so that it has ended before a grant of the release is revoked, and not at some time after that
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	s.ctx = context.WithValue(under, startedKey{}, s)
	s.drops = append(s.drops, func() { stop(); cancel(nil) })
	if len(s.links) > 0 {
		s.drops = append(s.drops, s.awake(cancel))
	}
	env, made, err := m.environment(s.ctx, a) //nolint:contextcheck // it ends with ctx
	if err != nil {
		return Awake{}, cmp.Or(a.cause(), err)
	}
	request := host.Request{
		Name: t.Tool, Extension: a.manifest.Name, User: t.Viewer.String(), Env: env, Vars: p.Vars, Limits: p.Limits, Approved: a.tools,
		Begin: func(ctx context.Context) error {
			if err := cmp.Or(m.Refresh(ctx), s.stillLinked()); err != nil {
				return err
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.ctx.Err() != nil || a.renewed != made {
				return errAnother
			}
			return nil
		},
	}
	request.Limits.Nesting = max(1, s.nesting()-len(p.Callers)) // of what is not durable; durably counts the others
	s.at, s.clock = m.options.Now(), time.Now()
	awake := Awake{Request: request, Context: s.ctx, Release: s.drop, Ended: func(r host.Result, err error) {
		s.ctx = context.WithoutCancel(s.ctx)
		_, _ = s.finish(r, err)
	}}
	if len(p.Callers) > 0 {
		awake.Caller = t.told
	}
	return awake, nil
}

// releaseOf returns the release of a durable call, and counts a call of it: the one that the call began with, even if another took its place.
func (m *Manager) releaseOf(ctx context.Context, t RunTarget, p RunPin) (*active, error) {
	m.reloading.Lock() // so that a release which is added here is among those that the next reload looks at
	defer m.reloading.Unlock()
	m.mu.RLock()
	a := m.releases[p.Release]
	if i := slices.IndexFunc(m.superseded, func(a *active) bool { return a.id == p.Release }); a == nil && i >= 0 {
		a = m.superseded[i]
	}
	if a != nil {
		a.calls.Add(1)
	}
	m.mu.RUnlock()
	if a != nil {
		if a.digest != p.Digest || a.scope != t.Scope || a.manifest.Name != t.Extension {
			a.calls.Add(-1)
			return nil, t.lost()
		}
		return a, a.causeOr(func() { a.calls.Add(-1) })
	}
	a = newActive(p.Release, p.Digest)
	a.scope = t.Scope
	err := m.db.View(ctx, func(c *sqlite.Conn) error {
		r, err := releaseByID(ctx, c, p.Release)
		switch {
		case errors.As(err, new(*NotFoundError)):
			return t.lost()
		case err != nil:
			return err
		case r.Digest != p.Digest || r.Scope != t.Scope || r.Name != t.Extension: // the store is another, or an older copy
			return t.lost()
		}
		if cause, err := takenAway(ctx, c, r.Scope, r.Name, r.ID); err != nil || cause != nil {
			return cmp.Or(err, cause)
		}
		if r.State != Active && r.State != Superseded {
			return t.lost()
		}
		a.quarantine = r.Quarantine
		return a.read(ctx, c, m.options.Kinds)
	})
	if err != nil {
		return nil, err
	}
	a.calls.Add(1)
	m.mu.Lock()
	m.superseded = append(m.superseded, a)
	m.mu.Unlock()
	return a, nil
}

// lost reports that the store does not have the approval of a run.
func (t RunTarget) lost() error {
	return &NotFoundError{What: fmt.Sprintf("approval of the version of %s in %s with which the run began", t.Extension, t.Scope)}
}

// causeOr returns why the release was revoked, after undo.
func (a *active) causeOr(undo func()) error {
	err := a.cause()
	if err != nil {
		undo()
	}
	return err
}

// leave is the end of a run's call. It lets go of what a release that another one replaced has, with its last call.
func (m *Manager) leave(a *active) {
	if a.calls.Add(-1) > 0 {
		return
	}
	m.mu.Lock()
	at := slices.Index(m.superseded, a)
	unused := at >= 0 && a.calls.Load() == 0
	if unused {
		m.superseded = slices.Delete(slices.Clone(m.superseded), at, at+1)
	}
	m.mu.Unlock()
	if unused {
		m.renew(a)
	}
}
