package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// Viewer is somebody who looks for tools. It sees what is shared, what belongs to its user, and its own. Either name may be empty.
type Viewer struct {
	User  string `json:"user,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Person is set for a person, who decides about requests and sees those of all authors. It is never set for a model, because
	// unapproved descriptions would then reach other agents. Default: only the author sees a version that was never active.
	Person bool `json:"person,omitempty"`
}

// Sees reports whether the viewer may know about a release in a scope that it sees. Only its author and persons may know about one
// that was never active.
func (v Viewer) Sees(r Release) bool {
	switch r.State {
	case Active, Superseded, Revoked:
		return true
	default: // a removed release may have been pending
		return v.Person || r.Author == v.String()
	}
}

// Check returns an error if the agent, or the user if there is one, cannot own a scope.
func (v Viewer) Check() error {
	if _, err := (extension.Scope{Kind: extension.Agent, Owner: v.Agent}).MarshalText(); err != nil {
		return fmt.Errorf("name of the agent: %w", err)
	}
	if v.User == "" {
		return nil
	}
	if _, err := (extension.Scope{Kind: extension.User, Owner: v.User}).MarshalText(); err != nil {
		return fmt.Errorf("name of the user: %w", err)
	}
	return nil
}

// scopes returns the viewer's scopes, the narrowest first.
func (v Viewer) scopes() []extension.Scope { return extension.Visible(v.User, v.Agent) }

// scopeTexts returns them for a query, which takes three.
func (v Viewer) scopeTexts() (texts [3]string) {
	for i, s := range v.scopes() {
		texts[i] = s.String()
	}
	return texts
}

// Call is a call of a tool.
type Call struct {
	Viewer Viewer
	// By is the caller, in the form of a scope, and Via how the call came. Default: the viewer.
	By, Via string
	// Tool is the tool's full name: extension, "_", tool.
	Tool  string
	Input []byte
	// Digest, if it is not empty, is the version that must be called, in full. If the name is another one's when the call begins, the error is a
	// *[ReplacedError].
	Digest string
	// Log receives the tool's log lines. Default: the state's console.
	Log func(level console.Level, message string)
	// Progress receives how far the tool says it is, if Log is not nil. Default: nobody is told.
	Progress func(console.Progress)
	// Bind are bindings that a person gives this call, in place of the extension's own of the same names and interfaces. The ceiling of the policy
	// holds. Those that give more than was approved need Wider. Nothing that a model can reach may set either.
	Bind []extension.Binding
	// Wider is set if the person at a terminal has agreed to Bind.
	Wider bool
	// Limits that are not zero override the host's defaults.
	Limits host.Limits
	// Allowed, when not nil, is called right before the call begins. Its error ends the call before anything has run.
	Allowed func() error

	pin *pin // set by a tool that calls it
}

func (c Call) by() string { return cmp.Or(c.By, c.Viewer.String()) }

// UnknownToolError reports a call of a tool that this viewer cannot see.
type UnknownToolError struct{ Tool string }

// Error implements error.
func (e *UnknownToolError) Error() string { return fmt.Sprintf("there is no tool %q", e.Tool) }

// ReplacedError reports a call of a version that no longer has the name of the tool.
type ReplacedError struct{ Tool string }

// Error implements error.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("the tool %s has another version now; call it again", e.Tool)
}

// QuarantinedError reports a call of an extension that could not be loaded.
type QuarantinedError struct{ Extension, Reason string }

// Error implements error.
func (e *QuarantinedError) Error() string {
	return fmt.Sprintf("the extension %s is in quarantine: %s; write it again or revoke it", e.Extension, e.Reason)
}

// BrokenError reports a call of a tool that is paused because it failed too often for this caller.
type BrokenError struct {
	Tool     string
	Failures int
	Until    time.Time
}

// Error implements error.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the tool %s failed %d times in a row and pauses until %s", e.Tool, e.Failures, e.Until.UTC().Format(time.RFC3339))
}

// CeilingError reports a denial of something that the manifest asks for and the policy's ceiling removes.
type CeilingError struct {
	Denied *host.DeniedError
	Cut    extension.Change
}

// Error implements error.
func (e *CeilingError) Error() string {
	return e.Denied.Denial.Text() + "; the manifest asks for it, but the ceiling in policy.json does not allow: " + strings.Join(e.Cut.Lines, "; ")
}

// Unwrap returns the denial.
func (e *CeilingError) Unwrap() error { return e.Denied }

// ceiling reports whether the ceiling caused the denial in err.
func (m *Manager) ceiling(a *active, err error) error {
	denied, ok := errors.AsType[*host.DeniedError](err)
	if !ok {
		return err
	}
	asked := a.manifest.Bindings
	_, cuts := m.policy.Load().Limit(asked)
	for _, cut := range cuts {
		whole := cut.What == extension.Removed && cut.Binding == denied.Denial.Binding
		remedy, ok := extension.ParseRemedy(m.options.Kinds, cut.Binding, denied.Denial.Remedy)
		of := slices.IndexFunc(asked, func(b extension.Binding) bool { return b.Name == cut.Binding })
		if whole || ok && of >= 0 && extension.Covers(asked[of:of+1], []extension.Binding{remedy}) {
			return &CeilingError{denied, cut}
		}
	}
	return err
}

// offer is a tool of an active release under its full name.
type offer struct {
	release *active
	tool    abi.Definition
}

// enter counts a user of components, so that Close waits for it.
func (m *Manager) enter() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return ErrClosed
	}
	m.calls.Add(1)
	return nil
}

// begin finds the offer of a call, and counts a call of its release.
func (m *Manager) begin(c Call) (offer, bool) {
	m.mu.RLock() // with the lock, reload knows every call of a release that it removes from the offers
	defer m.mu.RUnlock()
	o, ok := m.offerOf(c)
	if ok {
		o.release.calls.Add(1)
	}
	return o, ok
}

// offerOf returns the offer of a call. The caller holds m.mu.
func (m *Manager) offerOf(c Call) (offer, bool) {
	if c.pin == nil {
		return m.find(c.Viewer, c.Tool)
	}
	o, ok := m.offers[c.pin.scope][c.Tool]
	return o, ok && o.release.manifest.Name == c.pin.extension
}

// find returns the offer of a tool in the narrowest scope that the viewer sees. The caller holds m.mu.
func (m *Manager) find(v Viewer, tool string) (offer, bool) {
	for _, scope := range v.scopes() {
		if o, ok := m.offers[scope][tool]; ok {
			return o, true
		}
	}
	return offer{}, false
}

// Call calls a tool. In addition to the errors of host.Component.Do, there are *[UnknownToolError], *[ReplacedError], *[RevokedError],
// *[QuarantinedError], *[BrokenError], *[OverrideError] and [ErrClosed]. A denial may be a *[CeilingError].
func (m *Manager) Call(ctx context.Context, c Call) (host.Result, error) {
	for {
		s, err := m.prepare(ctx, c)
		if err != nil {
			return host.Result{}, err
		}
		if result, err := s.do(); !errors.Is(err, errAnother) {
			return result, err
		}
	}
}

// Start is Call in the background. It returns once the component is loaded and the input is checked. done gets what Call returns, once: on
// a goroutine of the host, or before Start returns if the call cannot begin. The call takes no goroutine while it waits, as
// [host.Component.Start] says.
func (m *Manager) Start(ctx context.Context, c Call, done func(host.Result, error)) {
	s, err := m.prepare(ctx, c)
	if err != nil {
		done(host.Result{}, err)
		return
	}
	ended := func(result host.Result, err error) {
		result, err = s.finish(result, err)
		if s.drop(); errors.Is(err, errAnother) {
			m.Start(ctx, c, done)
			return
		}
		done(result, err)
	}
	if err := s.component.Start(s.ctx, s.request, ended); err != nil { //nolint:contextcheck // it is made of ctx
		ended(host.Result{}, err)
	}
}

// started is a call that is under way.
type started struct {
	*Manager
	call      Call
	offer     offer
	breaker   *breaker
	ctx       context.Context // also ends with the release
	component *host.Component // nil until the call is prepared
	request   host.Request
	began     bool
	links     []link // of a durable call to those who called it
	at        time.Time
	clock     time.Time
	drops     []func() // give back what the call has
}

func (s *started) drop() {
	for _, drop := range slices.Backward(s.drops) {
		drop()
	}
}

// errAnother ends a call whose tool or handles changed before it began.
var errAnother = errors.New("the tool or its handles changed before the call began")

// still says why a call that waited must not begin as prepared. It runs right before the call begins, so that earlier decisions
// apply.
func (m *Manager) still(ctx context.Context, c Call, o offer, made int, vars *varsOf) error {
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	a := o.release
	if err := a.cause(); err != nil {
		return err
	}
	m.mu.RLock()
	now, _ := m.offerOf(c)
	m.mu.RUnlock()
	if now.release != a {
		return errAnother
	}
	a.mu.Lock()
	quarantine, renewed := a.quarantine, a.renewed
	a.mu.Unlock()
	switch {
	case quarantine != "":
		return &QuarantinedError{a.manifest.Name, quarantine}
	case renewed != made, a.vars.Load() != vars:
		return errAnother
	case c.Allowed != nil:
		return c.Allowed()
	default:
		return nil
	}
}

// do makes a call that is prepared.
func (s *started) do() (host.Result, error) {
	defer s.drop()
	return s.finish(s.component.Do(s.ctx, s.request))
}

// prepare finds the tool of a call, and all that the call needs. drop must follow, unless there is an error.
func (m *Manager) prepare(ctx context.Context, c Call) (s *started, err error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	s = &started{Manager: m, call: c, began: true, drops: []func(){m.calls.Done}}
	defer func() {
		if s.component == nil { // or it panics
			s.drop()
		}
	}()
	err = m.Refresh(ctx)
	o, ok := m.begin(c)
	switch {
	case !ok && err == nil && c.pin != nil:
		return s, c.pin.gone()
	case !ok && err == nil:
		return s, &UnknownToolError{printable.Short(c.Tool, 100)}
	case !ok:
		return s, err
	}
	a := o.release
	s.offer = o
	s.drops = append(s.drops, func() { a.calls.Add(-1) })
	if c.Digest != "" && a.digest != c.Digest {
		return s, cmp.Or(err, error(&ReplacedError{printable.Short(c.Tool, 100)}))
	}
	if err = cmp.Or(a.cause(), err); err != nil { // first the cause, which may exist in this process only
		return s, err
	}
	s.breaker = a.breaker(broken{o.tool.Name, c.Viewer, c.pin.by()})
	if err := s.breaker.check(m.options.Now(), c.Tool); err != nil {
		return s, err
	}
	if reason := a.quarantined(); reason != "" {
		return s, &QuarantinedError{a.manifest.Name, reason}
	}
	if c.pin != nil {
		if err := c.pin.check(ctx, c.Tool, a); err != nil {
			return s, err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.ctx, func() { cancel(a.cause()) }) //nolint:contextcheck // the release's context ends the call's
	ctx = context.WithValue(ctx, startedKey{}, s)
	s.ctx, s.drops = ctx, append(s.drops, func() { stop(); cancel(nil) })

	component, done, err := m.load(ctx, a, c.Viewer.String())
	if err == nil {
		s.drops = append(s.drops, done)
		var env host.Env
		var made int
		if env, made, err = m.environment(ctx, a); err == nil {
			if err := s.override(env); err != nil {
				return s, err
			}
			if err := s.ask(env, made); err != nil {
				return s, err
			}
			s.component = component
			return s, nil
		}
	}
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	return s, m.quarantine(ctx, a, err)
}

// ask makes the request to the host, for a call with the env of its release.
func (s *started) ask(env host.Env, made int) error {
	m, c, o := s.Manager, s.call, s.offer
	a := o.release
	if c.Log != nil {
		logs := slices.DeleteFunc(m.withDefaults(a.manifest.Bindings), func(b extension.Binding) bool { return !b.Grant.Kind().Logs })
		site := extension.NewState("", c.Log)
		site.Progress = c.Progress
		apart, err := site.Env(s.ctx, logs) // these bindings keep nothing
		if err != nil {
			return err
		}
		maps.Copy(env, apart)
	}
	vars := a.vars.Load()
	s.request = host.Request{
		Tool: o.tool.Name, Name: c.Tool, Extension: a.manifest.Name, User: c.Viewer.String(), Input: c.Input, Env: env, Limits: c.Limits, Approved: a.tools, Recorder: m.options.Recorder,
		WASI: a.manifest.WASI.Only(func(name string) bool { return env[name] != nil }), // a ceiling can take a binding away
		Begin: func(ctx context.Context) error {
			err := m.still(ctx, c, o, made, vars)
			s.began = err == nil
			return err
		},
	}
	if vars != nil {
		s.request.Vars = vars.text
	}
	if s.request.Limits.Nesting == 0 {
		s.request.Limits.Nesting = m.policy.Load().Limits.Nesting
	}
	s.at, s.clock = m.options.Now(), time.Now()
	m.options.step("call")
	return nil
}

// finish records the outcome of a call, unless it has not begun, and returns what its caller gets.
func (s *started) finish(result host.Result, err error) (host.Result, error) {
	m, c, a, tool := s.Manager, s.call, s.offer.release, s.offer.tool.Name
	if !s.began {
		return host.Result{}, cmp.Or(a.cause(), err)
	}
	if a.ctx.Err() != nil {
		result, err = host.Result{}, a.cause()
	}
	err = m.ceiling(a, err)
	m.ledger.add(s.ctx, used{
		scope: a.scope.String(), extension: a.manifest.Name, tool: tool, digest: a.digest,
		started: s.at, took: time.Since(s.clock), outcome: outcome(err), message: message(err), by: c.by(), via: c.Via,
	})
	s.breaker.count(m.options.Now(), m.policy.Load().Limits, err)
	return result, err
}

// quarantine puts an extension that cannot be loaded into quarantine. Temporary problems do not count.
func (m *Manager) quarantine(ctx context.Context, a *active, why error) error {
	var refused *host.LoadError
	var damaged *DamagedError
	var definition *host.DefinitionError
	var unbound *extension.UnboundError
	if !errors.As(why, &refused) && !errors.As(why, &damaged) && !errors.As(why, &definition) && !errors.As(why, &unbound) {
		return why
	}
	reason := cut(why.Error())
	a.mu.Lock()
	a.quarantine = reason
	a.mu.Unlock()
	err := m.db.Update(ctx, func(c *sqlite.Conn) error {
		if _, err := c.Exec(ctx, "UPDATE release SET quarantine = ? WHERE id = ?", reason, a.id); err != nil {
			return err
		}
		e := Entry{Kind: "quarantine", By: "host", Scope: a.scope.String(), Extension: a.manifest.Name, Release: a.id, Digest: a.digest, Reason: reason}
		if err := audit(ctx, c, m.options.Now(), e); err != nil {
			return err
		}
		return m.change(ctx, c)
	})
	if err != nil {
		m.options.Logger.Warn("write down a quarantine", "extension", a.manifest.Name, "error", err)
	}
	return &QuarantinedError{a.manifest.Name, reason}
}

func (a *active) quarantined() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.quarantine
}

// Tool is a tool that a viewer can call.
type Tool struct {
	// Name is the full name. Definition has the tool's own name.
	Name       string
	Definition abi.Definition
	Extension  string
	Scope      extension.Scope
	Digest     string
	// Tags are those of its extension, in byte order.
	Tags []string
	// Bindings are what its extension may use.
	Bindings []extension.Binding
	// Durable is what the manifest says of it if its calls are durable, or nil.
	Durable *extension.Durable
	// Shadows are the wider scopes that offer a tool of this name too.
	Shadows []extension.Scope
}

// Tools lists the tools that a viewer can call, in byte order of the names. It leaves out tools in quarantine and tools that
// these shadow.
func (m *Manager) Tools(ctx context.Context, v Viewer) ([]Tool, error) {
	if err := m.Refresh(ctx); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := map[string][]offer{}
	for _, scope := range v.scopes() {
		for name, o := range m.offers[scope] {
			found[name] = append(found[name], o)
		}
	}
	var tools []Tool
	for _, name := range slices.Sorted(maps.Keys(found)) {
		a := found[name][0].release
		if a.quarantined() != "" {
			continue // a call would not reach the tool in a wider scope
		}
		t := Tool{Name: name, Definition: found[name][0].tool, Extension: a.manifest.Name, Scope: a.scope, Digest: a.digest, Tags: a.manifest.Tags, Bindings: a.manifest.Bindings}
		if d, ok := a.manifest.DurableTool(t.Definition.Name); ok {
			t.Durable = &d
		}
		for _, o := range found[name][1:] {
			t.Shadows = append(t.Shadows, o.release.scope)
		}
		tools = append(tools, t)
	}
	return tools, nil
}
