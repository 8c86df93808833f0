package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
)

// State says what became of a release.
type State string

// The states. A release is pending or active first, and never changes again once it is none of the two.
const (
	Pending    State = "pending"    // waits for a person
	Active     State = "active"     // its tools can be called
	Superseded State = "superseded" // another version took its place
	Denied     State = "denied"     // a person said no
	Withdrawn  State = "withdrawn"  // its author asked for another version instead
	Revoked    State = "revoked"    // a person took it back
	Removed    State = "removed"    // its author took it away
)

// active is a release whose tools can be called.
type active struct {
	id        int64
	scope     extension.Scope
	digest    string
	manifest  *extension.Manifest
	tools     []abi.Definition
	component string

	calls sync.WaitGroup
	ctx   context.Context // ends when the release is taken back
	end   context.CancelCauseFunc

	mu         sync.Mutex
	over       bool   // no further call begins
	quarantine string // why its tools cannot be called
	env        host.Env
	grants     []*host.Grant
	breakers   map[string]*breaker
}

// begin counts a call in, unless the release is over.
func (a *active) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return false
	}
	a.calls.Add(1)
	return true
}

// retire lets no further call begin. With a cause, calls under way end and everything they hold is taken back.
func (a *active) retire(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if cause == nil {
		return
	}
	a.end(cause) // first, so that a call which a grant ends finds the cause
	for _, g := range a.grants {
		g.Revoke(cause.Error())
	}
}

// refresh makes what this process knows of releases what the store says.
func (m *Manager) refresh(ctx context.Context) error {
	m.mu.RLock()
	known := m.generation
	m.mu.RUnlock()
	var now int64
	if err := m.db.Read(ctx, func(c *sqlite.Conn) (err error) { now, err = generation(ctx, c); return err }); err != nil || now == known {
		return err
	}
	return m.reload(ctx)
}

// reload reads all active releases. Those that are gone end: with the calls under way when they were revoked or removed, and
// without them when another version took their place.
func (m *Manager) reload(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	var now int64
	releases := map[int64]*active{}
	ended := map[int64]error{}
	err := m.db.View(ctx, func(c *sqlite.Conn) (err error) {
		if now, err = generation(ctx, c); err != nil {
			return err
		}
		const query = `SELECT id, scope, release.digest, quarantine, component, record FROM release JOIN version USING (digest) WHERE state = 'active'`
		for row, err := range c.Rows(ctx, query) {
			if err != nil {
				return err
			}
			var id int64
			var scope, digest, quarantine, component, text string
			if err := row.Scan(&id, &scope, &digest, &quarantine, &component, &text); err != nil {
				return err
			}
			if a := m.releases[id]; a != nil {
				a.mu.Lock()
				a.quarantine, a.component = quarantine, component
				a.mu.Unlock()
				releases[id] = a
				continue
			}
			a := newActive(id, digest, component, quarantine)
			if err := a.read(ctx, c, scope, text); err != nil {
				m.options.Logger.Warn("an extension cannot be read", "release", id, "error", err)
				continue // what is broken stops nothing else; List shows it
			}
			releases[id] = a
		}
		for id := range m.releases {
			if releases[id] != nil {
				continue
			}
			var state State
			var reason string
			if err := c.Row(ctx, "SELECT state, reason FROM release WHERE id = ?", id).Scan(&state, &reason); err != nil {
				return err
			}
			if state == Revoked || state == Removed {
				ended[id] = &RevokedError{Extension: m.releases[id].manifest.Name, Reason: reason}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, a := range m.releases {
		if releases[id] == nil {
			a.retire(ended[id])
		}
	}
	m.generation, m.releases, m.offers = now, releases, map[string][]offer{}
	for _, a := range releases {
		for _, t := range a.tools {
			name := extension.ToolName(a.manifest.Name, t.Name)
			m.offers[name] = append(m.offers[name], offer{a, t})
		}
	}
	close(m.changed)
	m.changed = make(chan struct{})
	return nil
}

func newActive(id int64, digest, component, quarantine string) *active {
	a := &active{id: id, digest: digest, component: component, quarantine: quarantine, breakers: map[string]*breaker{}}
	a.ctx, a.end = context.WithCancelCause(context.Background())
	return a
}

// read takes from the record of a version what a list of tools needs. The rest is read, and all of it checked, when a tool is called.
func (a *active) read(ctx context.Context, c *sqlite.Conn, scope, text string) (err error) {
	if a.scope, err = extension.ParseScope(scope); err != nil {
		return err
	}
	var r record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	manifest, err := object(ctx, c, r.Manifest)
	if err != nil {
		return err
	}
	a.tools = r.Tools
	a.manifest, err = extension.Parse(manifest)
	return err
}

// environment makes the capabilities of a release once; all its calls share them, and their connections. Each is behind a grant,
// by which it can be taken back.
func (m *Manager) environment(ctx context.Context, a *active) (host.Env, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.env == nil {
		granted, _ := m.options.Policy.Limit(a.manifest.Own(a.scope))
		env, err := m.options.State.Env(ctx, extension.Merge(granted, extension.Defaults()))
		if err != nil {
			return nil, err
		}
		for name, capability := range env {
			g := host.NewGrant(capability, host.GrantOptions{})
			a.grants = append(a.grants, g)
			env[name] = g
		}
		a.env = env
	}
	return maps.Clone(a.env), nil
}

// load returns the component of a release, and what lets go of it.
func (m *Manager) load(ctx context.Context, a *active) (*host.Component, func(), error) {
	return m.loaded.get(ctx, a.digest, func() (*host.Component, error) {
		var v *Version
		var wasm []byte
		err := m.db.View(ctx, func(c *sqlite.Conn) (err error) {
			if v, err = loadVersion(ctx, c, a.digest); err != nil {
				return err
			}
			wasm, err = object(ctx, c, v.Component)
			return err
		})
		if err != nil {
			return nil, err
		}
		component, err := m.options.Host.Load(ctx, wasm)
		if err != nil && isEngine(err) {
			component, wasm, err = m.rebuild(ctx, v, wasm)
		}
		if err != nil {
			return nil, err
		}
		if err := component.CheckTools(ctx, v.Tools); err != nil {
			return nil, errors.Join(err, component.Close())
		}
		if component.Digest() != v.Component {
			m.keepRebuilt(ctx, v, component.Digest(), wasm)
		}
		if m.options.Recorder != nil {
			if err := m.options.Recorder.Keep(ctx, wasm); err != nil {
				m.options.Logger.Warn("keep a component for replays", "extension", a.manifest.Name, "error", err)
			}
		}
		return component, nil
	})
}

// rebuild is for the day after an upgrade: the engine that a component imports has to be obtained first, or is another one than the
// one it was built for.
func (m *Manager) rebuild(ctx context.Context, v *Version, wasm []byte) (*host.Component, []byte, error) {
	tools, err := m.options.Toolchain(ctx)
	if err != nil {
		return nil, nil, err
	}
	component, err := m.options.Host.Load(ctx, wasm)
	if err == nil || !isEngine(err) {
		return component, wasm, err
	}
	source, err := m.source(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	if wasm, err = tools.Assemble(ctx, source, false); err != nil {
		return nil, nil, err
	}
	if component, err = m.options.Host.Load(ctx, wasm); err != nil {
		return nil, nil, err
	}
	return component, wasm, nil
}

// keepRebuilt spares the next process what this one built again.
func (m *Manager) keepRebuilt(ctx context.Context, v *Version, digest string, wasm []byte) {
	err := m.db.Update(ctx, func(c *sqlite.Conn) error {
		if _, err := putObject(ctx, c, wasm); err != nil {
			return err
		}
		_, err := c.Exec(ctx, "UPDATE version SET component = ? WHERE digest = ?", digest, v.Digest)
		return err
	})
	if err != nil {
		m.options.Logger.Warn("keep a component that was built again", "extension", v.Manifest.Name, "error", err)
	}
}

// isEngine says whether a component was refused for the shared engine that it imports.
func isEngine(err error) bool {
	var refused *host.LoadError
	return errors.As(err, &refused) && len(refused.Name) > 8 && refused.Name[:8] == "engine-x"
}

// RevokedError is a call of an extension that was revoked or removed, before the call or in its midst.
type RevokedError struct {
	Extension string
	// Reason is what the person who revoked it said; it may be empty.
	Reason string
}

// Error implements error.
func (e *RevokedError) Error() string {
	text := fmt.Sprintf("the extension %s was revoked", e.Extension)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}
