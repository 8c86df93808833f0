package lifecycle

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// calling is a binding of a release to the tools of others.
type calling struct {
	*Manager
	caller  *active
	binding string
	rights  capability.ToolCaller
	names   []string // of the tools that it may call

	asking sync.Mutex
	asked  map[[2]string]outgrown // by scope and name, callees that may do more than was approved

	finding    sync.Mutex
	generation int64 // of catalog
	catalog    *tools.Catalog
}

// outgrown is what is known of a callee that may do more than was approved.
type outgrown struct {
	release *active
	reason  string // why its tools are not called
}

// opens opens the binding for a release.
type opens struct {
	capability.ToolCaller
	opened abi.Capability
}

// Open implements [capability.Opener].
func (o opens) Open(context.Context, *capability.Site) (abi.Capability, error) { return o.opened, nil }

// withCalls returns the bindings of a release with those to other tools ready to open.
func (m *Manager) withCalls(a *active, bindings []extension.Binding) []extension.Binding {
	bindings = slices.Clone(bindings)
	for i, b := range bindings {
		g, ok := patternsOf(b)
		if !ok {
			continue
		}
		c := m.newCalling(a, b.Name, g)
		if _, starts := g.(runs.Starts); starts {
			bindings[i].Grant = opens{g, &runs.Control{Starter: starting{c}}}
			continue
		}
		options := tools.Options{Resolve: c.resolve, Finder: c}
		if m.options.Runs != nil {
			options.Durable = durably{c}
		}
		box, err := tools.New(options)
		if err != nil {
			panic(err) // Resolve is there
		}
		bindings[i].Grant = opens{g, box}
	}
	return bindings
}

func (m *Manager) newCalling(a *active, binding string, rights capability.ToolCaller) *calling {
	c := &calling{Manager: m, caller: a, binding: binding, rights: rights, asked: map[[2]string]outgrown{}}
	for _, callee := range rights.Callees() {
		c.names = append(c.names, callee.Tools...)
	}
	slices.Sort(c.names)
	return c
}

// resolve finds a tool that the binding may call.
func (c *calling) resolve(name string) (tools.Func, error) {
	switch callee := c.callee(name); {
	case callee != nil:
		return c.start, nil
	case !c.rights.Names(name):
		return nil, c.rights.Unnamed(name)
	}
	c.mu.RLock()
	_, there := c.callable(c.caller.scope, c.caller.manifest.Name, name)
	c.mu.RUnlock()
	if !there {
		return nil, abi.Errorf(abi.CodeNotFound, "tool %q; the binding can call: %s", printable.Short(name, 64), printable.Short(strings.Join(c.names, ", "), 1000))
	}
	return nil, abi.Deny(abi.Denial{
		Operation: "call " + name,
		Reason:    fmt.Sprintf("the tool came after the approval of %s, which does not cover it: write %[1]s again, so that a person can approve it", c.caller.manifest.Name),
	})
}

// callee returns the extension whose tool the binding may call by a full name. It is nil if there is none.
func (c *calling) callee(tool string) *capability.Callee {
	callees := c.rights.Callees()
	for i, callee := range callees {
		if _, ok := slices.BinarySearch(callee.Tools, tool); ok {
			return &callees[i]
		}
	}
	return nil
}

// startedKey is the key of the call that a context belongs to.
type startedKey struct{}

// callOf is a call that a call of the caller makes.
func (c *calling) callOf(ctx context.Context, name string, input []byte, env map[string]abi.Capability) (by *started, call Call, err error) {
	by, ok := ctx.Value(startedKey{}).(*started)
	if !ok {
		return nil, call, fmt.Errorf("%s: its caller is not a call of an extension", name)
	}
	if len(env) > 0 {
		return nil, call, abi.Errorf(abi.CodeInvalid, "%s: it has the approved bindings, and accepts no others", name)
	}
	p, err := c.pinOf(name)
	if err != nil {
		return nil, call, err
	}
	p.callers = by.chain(c.binding)
	return by, Call{
		Viewer: by.call.Viewer, Tool: name, Input: input, By: by.call.By, Allowed: by.call.Allowed, pin: p,
		Via: ViaTool + by.offer.release.scope.String() + "/" + extension.ToolName(by.offer.release.manifest.Name, by.offer.tool.Name),
	}, nil
}

// chain are the calls that a call was made by, and the call itself, which makes another one with a binding.
func (s *started) chain(binding string) (callers []RunCaller) {
	if p := s.call.pin; p != nil {
		callers = slices.Clip(p.callers)
	}
	r := s.offer.release
	return append(callers, RunCaller{
		Scope: r.scope, Extension: r.manifest.Name, Tool: extension.ToolName(r.manifest.Name, s.offer.tool.Name), Binding: binding, Release: r.id, Digest: r.digest,
	})
}

// pinOf is what a call of a tool is bound to that resolve has found.
func (c *calling) pinOf(name string) (*pin, error) {
	callee := c.callee(name)
	if callee == nil {
		return nil, c.rights.Unnamed(name)
	}
	scope, err := extension.ParseScope(callee.Scope)
	return &pin{calling: c, scope: scope, extension: callee.Extension}, err
}

// start starts a tool for the caller's code, as a [tools.Func].
func (c *calling) start(ctx context.Context, name string, input []byte, env map[string]abi.Capability, done func([]byte, error)) {
	by, call, err := c.callOf(ctx, name, input, env)
	if err != nil {
		done(nil, err)
		return
	}
	if log := by.call.Log; log != nil {
		call.Log = func(level capability.Level, message string) { log(level, name+": "+message) }
	}
	c.Start(ctx, call, func(r host.Result, err error) { done(r.Output, forCaller(name, err)) })
}

// Search implements [tools.Finder] with the tools that the binding may call and that are there.
func (c *calling) Search(query string, limit int) []tools.Description {
	c.finding.Lock()
	defer c.finding.Unlock()
	c.mu.RLock()
	now := c.Manager.generation
	c.mu.RUnlock()
	if c.catalog == nil || c.generation != now {
		var all []tools.Description
		for _, name := range c.names {
			if d, ok := c.Find(name); ok {
				all = append(all, d)
			}
		}
		c.catalog, c.generation = tools.NewCatalog(all), now
	}
	return c.catalog.Search(query, limit)
}

// Find implements [tools.Finder].
func (c *calling) Find(name string) (tools.Description, bool) {
	p, err := c.pinOf(name)
	if err != nil {
		return tools.Description{}, false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	o, ok := c.offerOf(Call{Tool: name, pin: p})
	if !ok || o.release.quarantined() != "" {
		return tools.Description{}, false
	}
	return described(name, o.tool.Description, o.tool.InputSchema), true
}

// pin is what a call of a tool by another one is bound to.
type pin struct {
	*calling
	scope     extension.Scope
	extension string
	callers   []RunCaller // the call that this one was made by last
}

// by names the extension that calls.
func (p *pin) by() string {
	if p == nil {
		return ""
	}
	return p.caller.scope.String() + "/" + p.caller.manifest.Name
}

// gone reports that what was approved is not there.
func (p *pin) gone() error {
	return &goneError{fmt.Sprintf("%s in %s, which %s may call, is no longer active or no longer has the tool", p.extension, p.scope, p.caller.manifest.Name)}
}

// goneError reports a callee that is not there.
type goneError struct{ text string }

func (e *goneError) Error() string { return e.text }

// uncoveredError reports a callee that may do more than the approval of its caller says.
type uncoveredError struct{ denial abi.Denial }

func (e *uncoveredError) Error() string { return e.denial.Text() }

// check returns an error if a release of the callee may do more than the caller's approval says. It has the caller ask again then.
func (p *pin) check(ctx context.Context, tool string, callee *active) error {
	if p.caller.covers(p.rights, callee) {
		return nil
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	key := [2]string{p.scope.String(), p.extension}
	if p.asked[key].release != callee {
		asked, err := p.askFor(ctx, p.caller)
		if err != nil {
			return err
		}
		reason := p.outgrew()
		switch asked.State {
		case Pending:
			reason += fmt.Sprintf(": a person must approve request %d: `stile ext approve %[1]d` shows it and asks", asked.ID)
		case Active:
			reason += ", and the policy has approved that: call it again"
		default:
			reason += fmt.Sprintf(": write %s again, so that a person can approve it", p.caller.manifest.Name)
		}
		p.asked[key] = outgrown{callee, reason}
	}
	return &uncoveredError{abi.Denial{Operation: "call " + tool, Reason: p.asked[key].reason}}
}

func (p *pin) outgrew() string {
	return fmt.Sprintf("%s in %s may do more now than when %s was approved", p.extension, p.scope, p.caller.manifest.Name)
}

// uncovered is the error of check, without asking again.
func (p *pin) uncovered(tool string) error {
	return &uncoveredError{abi.Denial{Operation: "call " + tool, Reason: p.outgrew()}}
}

// covered is what is known of a callee of a release.
type covered struct {
	release *active
	is      bool
}

// covers reports whether rights of the release cover everything that a callee may do now, by itself and through others.
func (a *active) covers(rights capability.ToolCaller, callee *active) bool {
	i := slices.IndexFunc(rights.Callees(), func(c capability.Callee) bool {
		return c.Scope == callee.scope.String() && c.Extension == callee.manifest.Name
	})
	if i < 0 {
		return false
	}
	of := &rights.Callees()[i] // the same for the life of the release
	a.covering.Lock()
	defer a.covering.Unlock()
	if known, ok := a.covered[of]; ok && known.release == callee {
		return known.is
	}
	now := collected{}
	now.add(callee, of.Tools...)
	is := capability.CoversAll([]capability.Grant{rights}, []capability.Grant{rights.WithCallees(now.callees())})
	if a.covered == nil {
		a.covered = map[*capability.Callee]covered{}
	}
	a.covered[of] = covered{callee, is}
	return is
}

// changedTools brings this process up to date, and has the releases ask again whose callees may do more now.
func (m *Manager) changedTools(ctx context.Context) error {
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	for _, a := range m.outgrown() {
		if _, err := m.askFor(ctx, a); err != nil { // a call that is denied tries again
			m.options.Logger.WarnContext(ctx, "ask again for an extension whose callees may do more", "extension", a.manifest.Name, "error", err)
		}
	}
	return nil
}

// outgrown returns the releases with a callee that may do more than was approved.
func (m *Manager) outgrown() (all []*active) {
	m.mu.RLock()
	releases := m.releases // which never changes
	m.mu.RUnlock()
	byName := map[[2]string]*active{}
	for _, a := range releases {
		byName[[2]string{a.scope.String(), a.manifest.Name}] = a
	}
	for _, a := range releases {
		if slices.ContainsFunc(a.manifest.Bindings, func(b extension.Binding) bool {
			g, ok := patternsOf(b)
			return ok && slices.ContainsFunc(g.Callees(), func(c capability.Callee) bool {
				callee := byName[[2]string{c.Scope, c.Extension}]
				return len(c.Tools) > 0 && callee != nil && !a.covers(g, callee)
			})
		}) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *active) int { return cmp.Compare(a.id, b.id) })
	return all
}

// errUnresolved reports that what a version calls is to be found out outside of the transaction.
var errUnresolved = errors.New("what the version calls is not known")

// askFor requests the version of a release again, with what its callees may do now, unless that waits or was denied already. A version of
// the same author that waits is requested again in its place. It returns the request, which the policy may have approved. It is zero
// if there is none: then the version must be written again.
func (m *Manager) askFor(ctx context.Context, a *active) (request Release, err error) {
	m.options.step("ask again")
	var called resolved // of the version with the digest
	var of *Version
	again := func(c *sqlite.Conn, load func(string) (*Version, error)) error {
		request = Release{}
		r, err := releaseByID(ctx, c, a.id)
		if err != nil || r.State != Active {
			return err
		}
		const own = "SELECT " + releaseColumns + " FROM release WHERE scope = ? AND name = ? AND author = ? AND state = 'pending'"
		digest, signer := r.Digest, r.Signer
		waits, err := scanRelease(c.Row(ctx, own, r.Scope.String(), r.Name, r.Author).Scan)
		if err == nil {
			digest, signer = waits.Digest, waits.Signer
		} else if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		v, err := load(digest)
		if err != nil {
			return err
		}
		if of == nil || of.Digest != digest {
			of = v
			return errUnresolved
		}
		if len(called.problems) > 0 || !callsTools(called.bindings) {
			return nil
		}
		text := calleesText(called.bindings)
		if waits.ID != 0 {
			if before, err := calleesIn(ctx, c, waits.ID); err != nil || before == text {
				request = waits
				return err
			}
		}
		var denied bool
		const no = `SELECT EXISTS (SELECT 1 FROM release INDEXED BY release_refused JOIN callee ON callee.release = release.id
			WHERE scope = ? AND name = ? AND state IN ('denied', 'revoked') AND state = 'denied' AND digest = ? AND id > ? AND callees = ?)`
		if err := c.Row(ctx, no, r.Scope.String(), r.Name, digest, r.ID, text).Scan(&denied); err != nil || denied {
			return err
		}
		d := Draft{Scope: r.Scope, Author: r.Author, Signer: signer, by: "host", reason: "the extensions that it calls may do more now", asked: called.bindings}
		decision := m.decideAgain(r, v, called.bindings, waits.ID != 0)
		if decision.Verdict == policy.Refused {
			return nil
		}
		asked, err := m.ask(ctx, c, d, v, m.options.Now())
		if err != nil {
			return err
		}
		request = asked
		refused, err := refusedBefore(ctx, c, asked)
		if err == nil && decision.Verdict == policy.Approved && !refused {
			request, err = m.activate(ctx, c, asked, v, Decision{By: "policy", Reason: decision.Reason}, "approve", decision.Line, m.options.Now())
		}
		return err
	}
	for err = m.update(ctx, again); errors.Is(err, errUnresolved); err = m.update(ctx, again) {
		called = m.resolveTools(a.scope, of.Manifest, of.manifest)
	}
	if err != nil {
		return Release{}, err
	}
	return request, m.Refresh(context.WithoutCancel(ctx))
}

// decideAgain asks the policy about a version that another decision let in.
func (m *Manager) decideAgain(r Release, v *Version, asked []extension.Binding, other bool) policy.Decision {
	q := policy.Request{Scope: r.Scope, Asked: asked, NoSource: !v.HasSource()}
	if other {
		q.Durable = v.Manifest.Durable
	}
	var err error
	if q.Author, err = extension.ParseScope(r.Author); err != nil {
		return policy.Decision{Verdict: policy.Pending}
	}
	for _, p := range v.Packages {
		if p.Undeclared {
			q.Undeclared = append(q.Undeclared, p.Name)
			if !other { // the active version has them
				q.Known = append(q.Known, p.Name)
			}
		}
	}
	return m.policy.Load().Decide(q)
}
