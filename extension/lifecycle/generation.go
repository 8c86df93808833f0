package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/sqlite"
)

// Generation is a model at work on drafts. It counts as a build from its start, or as the builds of its drafts, so that no output of
// a model is free. Only one goroutine may use it. Its creator ends it.
type Generation struct {
	m     *Manager
	draft Draft
	done  func()
	built bool // so it has entries that count
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
	done, err := m.reserve(ctx, d.Scope)
	if err != nil {
		return nil, err
	}
	return &Generation{m: m, draft: Draft{Scope: d.Scope, Author: d.Author, Via: d.Via}, done: done}, nil
}

// Write is [Manager.Write] for a draft of the model. Scope, author and via are those of the generation.
func (g *Generation) Write(ctx context.Context, d Draft) (*Written, error) {
	d.Scope, d.Author, d.Via, d.generation = g.draft.Scope, g.draft.Author, g.draft.Via, g
	w, err := g.m.Write(ctx, d)
	problems, refused := errors.AsType[*extension.ProblemsError](err)
	g.built = g.built || w != nil || refused && problems.Stage != extension.StageValidate
	return w, err
}

// End records the cost of the generation in a few words, even if ctx has ended.
func (g *Generation) End(ctx context.Context, cost string) error {
	defer g.done()
	e := Entry{Kind: "generate", By: g.draft.Author, Via: g.draft.Via, Scope: g.draft.Scope.String(), Outcome: generationNothing, Reason: cost}
	if g.built {
		e.Outcome = generationBuilt
	}
	ctx = context.WithoutCancel(ctx)
	return g.m.db.Update(ctx, func(c *sqlite.Conn) error { return audit(ctx, c, g.m.options.Now(), e) })
}

// reserve finds room in the budget for a draft. The generation already holds room for one, and earlier builds in it have entries.
func (d Draft) reserve(ctx context.Context, m *Manager) (done func(), err error) {
	switch g := d.generation; {
	case g == nil:
		return m.reserve(ctx, d.Scope)
	case g.built:
		return func() {}, m.checkBudget(ctx, d.Scope)
	default:
		return func() {}, nil
	}
}
