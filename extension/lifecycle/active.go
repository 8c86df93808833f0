package lifecycle

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/toolsearch"
	"github.com/stilehost/stile/internal/turns"
)

// State is the state of a release.
type State string

// The states. A release begins as pending or active. Once it is neither, it never changes again.
const (
	Pending    State = "pending"    // waits for a person
	Active     State = "active"     // its tools can be called
	Superseded State = "superseded" // another version took its place
	Denied     State = "denied"     // a person said no
	Withdrawn  State = "withdrawn"  // its author asked for another version instead
	Revoked    State = "revoked"    // a person revoked it
	Removed    State = "removed"    // its author removed it
)

// active is a release whose tools can be called.
type active struct {
	id       int64
	scope    extension.Scope
	digest   string
	manifest *extension.Manifest
	tools    []abi.Definition

	vars atomic.Pointer[varsOf] // nil if it has none

	calls atomic.Int64    // under way
	ctx   context.Context // ends when the release is revoked
	end   context.CancelCauseFunc

	covering sync.Mutex
	covered  map[*capability.Callee]covered // by the callees in its bindings

	indexing sync.Once // makes index
	index    *toolsearch.Index

	making sync.Mutex // held while env is made
	env    host.Env   // behind grants
	made   host.Env   // the capabilities of the grants

	mu         sync.Mutex
	quarantine string // why its tools cannot be called
	renewed    int    // how often env was revoked
	grants     []*host.Grant
	breakers   map[broken]*breaker
}

// cause returns why the release was revoked, or nil.
func (a *active) cause() error { return context.Cause(a.ctx) }

// revoke ends the running calls, and revokes everything they hold.
func (a *active) revoke(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end(cause) // first, because a wait that ends with its grant could otherwise give a call its result
	for _, g := range a.grants {
		g.Revoke(cause.Error())
	}
}

// Refresh brings this process up to date with all decisions and policy changes made before Refresh began. Every call and
// list begins with it. It takes about a microsecond if nothing has changed.
func (m *Manager) Refresh(ctx context.Context) error {
	m.options.Follow(m.setPolicy)
	m.mu.RLock()
	known := m.generation
	m.mu.RUnlock()
	if m.stamp.Is(known) {
		return nil
	}
	return m.look(ctx)
}

// look refreshes the releases like Refresh, but asks the store without trusting the stamp.
func (m *Manager) look(ctx context.Context) error {
	m.mu.RLock()
	known := m.generation
	m.mu.RUnlock()
	var now int64
	if err := m.db.Read(ctx, func(c *sqlite.Conn) (err error) { now, err = generation(ctx, c); return err }); err != nil {
		return err
	}
	if now != known {
		if err := m.reload(ctx); err != nil {
			return err
		}
	}
	if m.stamp.Look(); !m.stamp.Is(now) {
		select {
		case m.old <- struct{}{}:
		default: // it was already told
		}
	}
	return nil
}

// settle makes the stamp name the generation of the store. A change clears the stamp, and the process that made it may be gone.
func (m *Manager) settle(ctx context.Context) error {
	return m.db.Update(ctx, func(c *sqlite.Conn) error {
		now, err := generation(ctx, c)
		if err != nil || m.stamp.Is(now) {
			return err
		}
		m.options.step("settle")
		if err := m.stamp.Set(now); err != nil {
			return err
		}
		m.options.step("settled")
		return nil
	})
}

// settleOld calls settle whenever somebody reports that the stamp is old.
func (m *Manager) settleOld(ctx context.Context) {
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.old:
		}
		err := m.settle(ctx)
		switch {
		case err == nil:
			failed = ""
		case ctx.Err() == nil && failed != err.Error(): // until it works, each call asks the store, so nothing else is affected
			failed = err.Error()
			m.options.Logger.Warn("name the newest state of the extensions", "error", err)
		}
	}
}

// reload finds out which releases are active. Calls continue while it reads. Calls of a release that is no longer active end if its
// extension was revoked or removed, and continue if another version replaced it.
func (m *Manager) reload(ctx context.Context) error {
	gone, ended, err := m.readReleases(ctx)
	if err != nil {
		return err
	}
	for a, cause := range ended {
		a.revoke(cause)
	}
	for _, a := range gone {
		if a.calls.Load() == 0 || ended[a] != nil {
			m.renew(a) // nobody uses it any more
		}
	}
	return nil
}

// readReleases is the part of reload after which no call of a removed release begins. It returns the reasons why releases ended.
func (m *Manager) readReleases(ctx context.Context) (gone []*active, ended map[*active]error, err error) {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	m.mu.RLock()
	known, before := m.releases, m.generation
	gone = slices.Clone(m.superseded)
	m.mu.RUnlock()
	var now int64
	releases := map[int64]*active{}
	ended = map[*active]error{}
	err = m.db.View(ctx, func(c *sqlite.Conn) (err error) {
		if now, err = generation(ctx, c); err != nil || known != nil && now == before { // another goroutine was here first
			return err
		}
		var fresh []*active
		for row, err := range c.Rows(ctx, "SELECT id, scope, digest, quarantine FROM release WHERE state = 'active'") {
			if err != nil {
				return err
			}
			var id int64
			var scope, digest, quarantine string
			if err := row.Scan(&id, &scope, &digest, &quarantine); err != nil {
				return err
			}
			a := known[id]
			if a == nil {
				a = newActive(id, digest)
				if a.scope, err = extension.ParseScope(scope); err != nil {
					m.unreadable(id, err)
					continue
				}
				fresh = append(fresh, a)
			}
			a.mu.Lock()
			a.quarantine = quarantine
			a.mu.Unlock()
			releases[id] = a
		}
		for _, a := range fresh {
			if err := a.read(ctx, c, m.options.Kinds); ctx.Err() != nil {
				return err
			} else if err != nil {
				m.unreadable(a.id, err)
				delete(releases, a.id)
			}
		}
		for id, a := range releases {
			if err := a.configure(ctx, c); ctx.Err() != nil {
				return err
			} else if err != nil {
				m.unreadable(id, err)
				delete(releases, id)
			}
		}
		for id, a := range known {
			if releases[id] == nil {
				gone = append(gone, a)
			}
		}
		for _, a := range gone {
			cause, err := takenAway(ctx, c, a.scope, a.manifest.Name, a.id)
			if err != nil {
				return err
			}
			if cause != nil {
				ended[a] = cause
			}
		}
		return nil
	})
	if err != nil || known != nil && now == before {
		return nil, nil, err
	}
	for a, cause := range ended {
		a.end(cause) // before anybody relies on the new generation
	}
	offers := map[extension.Scope]map[string]offer{}
	for _, a := range releases {
		if offers[a.scope] == nil {
			offers[a.scope] = map[string]offer{}
		}
		for _, t := range a.tools {
			offers[a.scope][extension.ToolName(a.manifest.Name, t.Name)] = offer{a, t}
		}
	}
	m.mu.Lock()
	m.generation, m.releases, m.offers, m.superseded = now, releases, offers, nil
	for _, a := range gone { // no further call of these begins
		if ended[a] == nil && a.calls.Load() > 0 {
			m.superseded = append(m.superseded, a)
		}
	}
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()
	return gone, ended, nil
}

// takenAway returns a *[RevokedError] if the extension of a release that was active was revoked or removed since.
func takenAway(ctx context.Context, c *sqlite.Conn, scope extension.Scope, name string, release int64) (cause, err error) {
	var state State
	var reason string
	const taken = `SELECT state, reason FROM release WHERE scope = ?1 AND name = ?2 AND state IN ('revoked', 'removed') AND
		(id >= ?3 OR decided >= (SELECT decided FROM release WHERE id = ?3)) ORDER BY decided LIMIT 1`
	switch err := c.Row(ctx, taken, scope.String(), name, release).Scan(&state, &reason); {
	case err == nil:
		return &RevokedError{Extension: name, Reason: reason, Removed: state == Removed}, nil
	case !errors.Is(err, sql.ErrNoRows):
		return nil, err
	}
	return nil, nil
}

// unreadable reports broken extensions. It affects nothing else, and List shows them.
func (m *Manager) unreadable(release int64, err error) {
	m.options.Logger.Warn("an extension cannot be read", "release", release, "error", err)
}

func newActive(id int64, digest string) *active {
	a := &active{id: id, digest: digest, breakers: map[broken]*breaker{}}
	a.ctx, a.end = context.WithCancelCause(context.Background())
	return a
}

// read takes from the record of a version what a list of tools needs. A call of a tool reads the rest, and checks everything.
func (a *active) read(ctx context.Context, c *sqlite.Conn, kinds capability.Set) error {
	r, _, err := loadRecord(ctx, c, a.digest)
	if err == nil {
		a.tools = r.Tools
		a.manifest, _, err = r.manifest(ctx, c, kinds)
	}
	if err == nil {
		a.manifest.Bindings, err = bindingsOf(ctx, c, kinds, a.id, a.manifest)
	}
	return err
}

// environment makes the capabilities of a release once. All its calls share them, and their connections. Each is behind a grant
// that can revoke it. made is the value of renewed that they belong to.
func (m *Manager) environment(ctx context.Context, a *active) (env host.Env, made int, err error) {
	a.making.Lock()
	defer a.making.Unlock()
	if a.env == nil {
		limited := *a.manifest
		limited.Bindings, _ = m.policy.Load().Limit(a.manifest.Bindings)
		env, err := m.options.State.Env(ctx, m.withCalls(a, m.withDefaults(limited.Own(a.scope))))
		if err != nil {
			return nil, 0, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.ctx.Err() != nil { // revoke has already run
			return nil, 0, errors.Join(a.cause(), m.options.State.Release(env))
		}
		a.made = maps.Clone(env)
		for name, capability := range env {
			g := host.NewGrant(capability, host.GrantOptions{})
			a.grants = append(a.grants, g)
			env[name] = g
		}
		a.env = env
	}
	return maps.Clone(a.env), a.renewed, nil
}

// load returns the component of a release for an agent, and a function that releases it.
func (m *Manager) load(ctx context.Context, a *active, who string) (*host.Component, func(), error) {
	ctx = turns.For(ctx, who) // the component may be built or compiled again
	return m.loaded.get(ctx, who, a.digest, func(given *host.Component) (*host.Component, int64, error) {
		if given != nil {
			m.keepForReplays(ctx, a, given.Digest(), nil)
			return given, 0, nil
		}
		release, err := m.roomToLoad(ctx, a.digest)
		if err != nil {
			return nil, 0, err
		}
		defer release()
		var v *Version
		var wasm []byte
		err = m.db.View(ctx, func(c *sqlite.Conn) (err error) {
			if v, err = loadVersion(ctx, c, m.options.Kinds, a.digest); err != nil {
				return err
			}
			wasm, err = v.component(ctx, c)
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		component, wasm, err := m.component(ctx, v, wasm)
		if err != nil {
			return nil, 0, err
		}
		if err := component.CheckTools(ctx, v.Tools); err != nil {
			return nil, 0, errors.Join(err, component.Close())
		}
		if component.Digest() != v.Component {
			m.keepRebuilt(ctx, v, wasm)
		}
		m.keepForReplays(ctx, a, component.Digest(), wasm)
		return component, memoryOf(wasm, v.Tools), nil
	})
}

// loading is the room for stored versions that are being loaded, in bytes. Those up to smallVersion have room of their own, so that they
// do not wait for larger ones. Agents take turns.
type loading struct{ small, large *turns.Places }

const (
	smallVersion = 1 << 20
	maxLoading   = 64 << 20 // of each kind
)

func newLoading() loading {
	return loading{turns.New(maxLoading), turns.New(maxLoading)}
}

// roomToLoad waits until there is room for what the store has of a version, in the turn of the user of ctx.
func (m *Manager) roomToLoad(ctx context.Context, digest string) (release func(), err error) {
	var bytes int64
	if err := m.db.View(ctx, func(c *sqlite.Conn) error {
		return c.Row(ctx, "SELECT coalesce(sum(source + component), 0) FROM content WHERE version = ?", digest).Scan(&bytes)
	}); err != nil {
		return nil, err
	}
	room := m.loading.small
	if bytes > smallVersion {
		room = m.loading.large
	}
	bytes = min(bytes, maxLoading)
	if err := room.TakeFor(ctx, turns.User(ctx), bytes); err != nil {
		return nil, err
	}
	return func() { room.GiveBack(bytes) }, nil
}

// keepForReplays makes the recorder keep a component. If wasm is nil, it is read from the extension store.
func (m *Manager) keepForReplays(ctx context.Context, a *active, digest string, wasm []byte) {
	if m.options.Recorder == nil {
		return
	}
	var err error
	if wasm == nil {
		err = m.db.View(ctx, func(c *sqlite.Conn) (err error) { wasm, err = object(ctx, c, digest); return err })
	}
	if err == nil {
		err = m.options.Recorder.Keep(ctx, wasm)
	}
	if err != nil {
		m.options.Logger.Warn("keep a component for replays", "extension", a.manifest.Name, "error", err)
	}
}

// component loads the stored component of a version. It builds it again if the store dropped it, where wasm is nil, or after an
// upgrade, when the engine that it imports must be obtained first or differs from the engine that it was built for.
func (m *Manager) component(ctx context.Context, v *Version, wasm []byte) (*host.Component, []byte, error) {
	load := func() (*host.Component, bool, error) {
		if wasm == nil {
			return nil, false, nil
		}
		component, err := m.options.Host.Load(ctx, wasm)
		return component, err == nil || !isEngine(err), err
	}
	if component, done, err := load(); done || !v.HasSource() { // nothing can build that again
		return component, wasm, err
	}
	tools, err := m.options.Toolchain(ctx)
	if err != nil {
		return nil, nil, err
	}
	if component, done, err := load(); done {
		return component, wasm, err
	}
	source, err := m.source(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	if wasm, err = tools.Assemble(ctx, source, false); err != nil {
		return nil, nil, err
	}
	component, err := m.options.Host.Load(ctx, wasm)
	return component, wasm, err
}

// keepRebuilt stores a component that was built again, so that the next process need not build it. It stores none for a version that
// is neither active nor waits.
func (m *Manager) keepRebuilt(ctx context.Context, v *Version, wasm []byte) {
	rebuilt := []stored{{sha256hex.Of(wasm), wasm}}
	live := func(ctx context.Context, c *sqlite.Conn) (is bool, err error) {
		err = c.Row(ctx, "SELECT NOT "+ended+" FROM content WHERE version = ?", v.Digest).Scan(&is)
		return is, err
	}
	err := m.withRoom(ctx, func() error {
		var is bool
		if err := m.db.Read(ctx, func(c *sqlite.Conn) (err error) { is, err = live(ctx, c); return err }); err != nil || !is {
			return err
		}
		before, err := m.writeObjects(ctx, v.Author, rebuilt)
		if err != nil {
			return err
		}
		return m.db.Update(ctx, func(c *sqlite.Conn) error {
			if is, err := live(ctx, c); err != nil || !is {
				return err
			}
			if err := putObjects(ctx, c, rebuilt, before); err != nil {
				return err
			}
			if err := errors.Join(shed(ctx, c, v.Digest, otherComponent, rebuilt[0].digest), addParts(ctx, c, v.Digest, rebuilt)); err != nil {
				return err
			}
			if _, err := c.Exec(ctx, "UPDATE version SET component = ? WHERE digest = ?", rebuilt[0].digest, v.Digest); err != nil {
				return err
			}
			if _, err := c.Exec(ctx, "UPDATE content SET component = ? WHERE version = ?", footprint(len(wasm)), v.Digest); err != nil {
				return err
			}
			return m.checkStored(ctx, c, v.Author)
		})
	})
	if err != nil {
		m.giveUp(ctx, rebuilt)
		m.options.Logger.Warn("keep a component that was built again", "extension", v.Manifest.Name, "error", err)
	}
}

// isEngine reports whether a component was refused because of the shared engine that it imports.
func isEngine(err error) bool {
	var refused *host.LoadError
	return errors.As(err, &refused) && refused.LacksModule()
}

// RevokedError reports a call of an extension that was revoked or removed, before or during the call.
type RevokedError struct {
	Extension string
	// Reason is the reason given by the person who revoked it. It may be empty.
	Reason string
	// Removed says that it was removed, and not revoked.
	Removed bool
}

// Error implements error.
func (e *RevokedError) Error() string {
	text := fmt.Sprintf("the extension %s was revoked", e.Extension)
	if e.Removed {
		text = fmt.Sprintf("the extension %s was removed", e.Extension)
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}
