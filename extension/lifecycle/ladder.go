package lifecycle

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/rung"
)

// Rungs is how far an agent may climb the ladder, and with which capabilities.
type Rungs struct {
	Rung rung.Rung
	Env  host.Env
}

// rungsOf are the rungs of one agent, under one policy. All its calls share the capabilities.
type rungsOf struct {
	entry  policy.Ladder
	made   map[string]abi.Capability
	grants map[string]*host.Grant
}

// ladderStore is the last part of the name of an agent's workspace. No extension has this name, because its tools would be reserved.
const ladderStore = "workspace"

// Rungs returns what the operator's policy gives an agent. The capabilities are the same for all calls of the agent, until the policy
// changes what they allow: then they are revoked, also in running calls. The manager keeps and closes them.
func (m *Manager) Rungs(ctx context.Context, agent string) (Rungs, error) {
	m.options.Follow(m.setPolicy)
	m.climbing.Lock()
	defer m.climbing.Unlock()
	entry := m.policy.Load().LadderOf(agent)
	r := m.ladders[agent]
	if r == nil {
		if m.closedNow() {
			return Rungs{}, ErrClosed
		}
		scope := extension.Scope{Kind: extension.Agent, Owner: agent}
		env, err := m.options.State.Last(ctx, extension.Own(ladderStore, scope, entry.Bindings))
		if err != nil {
			return Rungs{}, err
		}
		r = &rungsOf{entry, env, map[string]*host.Grant{}}
		for name, capability := range env {
			r.grants[name] = host.NewGrant(capability, host.GrantOptions{})
		}
		m.ladders[agent] = r
	}
	env := host.Env{}
	for name, g := range r.grants {
		env[name] = g
	}
	return Rungs{entry.Rung, env}, nil
}

func (m *Manager) closedNow() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.closed
}

// endLadders revokes and releases the capabilities of agents to which a new policy gives others, or a lower rung. Without one, it ends all.
func (m *Manager) endLadders(before, now *policy.Policy) {
	m.climbing.Lock()
	defer m.climbing.Unlock()
	var ended []*rungsOf
	for agent, r := range m.ladders {
		if now != nil {
			is := now.LadderOf(agent)
			sends := slices.ContainsFunc(is.Bindings, extension.Binding.Hosts)
			if is.Rung >= r.entry.Rung && reflect.DeepEqual(r.entry.Bindings, is.Bindings) && (!sends || maps.EqualFunc(before.Hosts, now.Hosts, slices.Equal)) {
				r.entry = is
				continue
			}
		}
		for _, g := range r.grants {
			g.Revoke("the operator's policy has changed")
		}
		ended = append(ended, r)
		delete(m.ladders, agent)
	}
	var errs []error
	for _, r := range ended { // which may take a while
		errs = append(errs, m.options.State.Release(r.made))
	}
	if err := errors.Join(errs...); err != nil {
		m.options.Logger.Warn("let go of what a ladder used", "error", err)
	}
}
