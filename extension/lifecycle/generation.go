package lifecycle

import (
	"context"
	"fmt"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/sqlite"
)

// Generation is a model at work on drafts. It counts as a build from its start, or as the builds of its drafts, so that no output of
// a model is free. Only one goroutine may use it. Its creator ends it.
type Generation struct {
	m     *Manager
	draft Draft
	built bool // so further drafts count too
}

// The outcomes of generations in the audit log.
const (
	generationBuilt   = "built"
	generationNothing = "nothing"
)

// BeginGeneration must be called before a model is asked. It takes Scope, Author and Via from d, a sample of the drafts. An error is
// a *[BudgetError] or an error of the store.
func (m *Manager) BeginGeneration(ctx context.Context, d Draft) (*Generation, error) {
	if _, err := d.Scope.MarshalText(); err != nil {
		return nil, fmt.Errorf("scope: %w", err)
	}
	if _, err := m.count(ctx, d.Scope); err != nil {
		return nil, err
	}
	return &Generation{m: m, draft: Draft{Scope: d.Scope, Author: d.Author, Via: d.Via}}, nil
}

// Write is [Manager.Write] for a draft of the model. Scope, author and via are those of the generation.
func (g *Generation) Write(ctx context.Context, d Draft) (*Written, error) {
	d.Scope, d.Author, d.Via, d.generation = g.draft.Scope, g.draft.Author, g.draft.Via, g
	return g.m.Write(ctx, d)
}

// End records the cost of the generation in a few words, even if ctx has ended.
func (g *Generation) End(ctx context.Context, cost string) error {
	e := Entry{Kind: "generate", By: g.draft.Author, Via: g.draft.Via, Scope: g.draft.Scope.String(), Outcome: generationNothing, Reason: cost}
	if g.built {
		e.Outcome = generationBuilt
	}
	ctx = context.WithoutCancel(ctx)
	return g.m.db.Update(ctx, func(c *sqlite.Conn) error { return audit(ctx, c, g.m.options.Now(), e) })
}

// count counts the build of a draft. The first of a generation was counted when the generation began.
func (d Draft) count(ctx context.Context, m *Manager) (counted, error) {
	if g := d.generation; g != nil && !g.built {
		return 0, nil
	}
	if author, err := extension.ParseScope(d.Author); err == nil && author.Kind == extension.User && d.Via == ViaTerminal {
		return 0, nil // a person at a terminal does not write in a loop
	}
	return m.count(ctx, d.Scope)
}
