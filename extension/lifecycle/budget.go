package lifecycle

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/sqlite"
)

// BudgetError is more than the policy lets an author or a scope have.
type BudgetError struct {
	// Budget is "builds an hour" or "extensions in a scope".
	Budget string
	Limit  int
}

// Error implements error.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the limit of %d %s is reached", e.Limit, e.Budget)
}

// checkBudget counts what was written in the scope in the last hour, what was refused included, and what is being written here until
// done is called.
func (m *Manager) checkBudget(ctx context.Context, d Draft) (done func(), err error) {
	m.mu.Lock()
	m.building[d.Scope]++
	builds := m.building[d.Scope]
	m.mu.Unlock()
	done = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.building[d.Scope]--; m.building[d.Scope] == 0 {
			delete(m.building, d.Scope)
		}
	}
	limit := m.options.Policy.Limits.BuildsPerHour
	if limit == 0 {
		return done, nil
	}
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		// What a clock that ran ahead wrote counts when its time comes.
		const query = `SELECT count(*) + ? FROM audit WHERE entry->>'scope' = ? AND at > ? AND at <= ? AND entry->>'kind' IN ('write', 'refuse')`
		now := m.options.Now()
		return c.Row(ctx, query, builds, d.Scope.String(), now.Add(-time.Hour).UnixMilli(), now.UnixMilli()).Scan(&builds)
	})
	if err == nil && builds > limit {
		err = &BudgetError{"builds an hour", limit}
	}
	if err != nil {
		done()
	}
	return done, err
}

// checkRoom counts the extensions of a scope.
func (m *Manager) checkRoom(ctx context.Context, c *sqlite.Conn, scope extension.Scope, name string) error {
	limit := m.options.Policy.Limits.ExtensionsPerScope
	if limit == 0 {
		return nil
	}
	var others int
	const query = "SELECT count(DISTINCT name) FROM release WHERE scope = ? AND name != ? AND state IN ('active', 'pending')"
	err := c.Row(ctx, query, scope.String(), name).Scan(&others)
	if err == nil && others >= limit {
		err = &BudgetError{"extensions in a scope", limit}
	}
	return err
}

// checkNames refuses tools that cannot be registered, among them those whose full names another extension has, in any scope: only a tool
// of an extension of the same name may take the place of one in a wider scope.
func checkNames(ctx context.Context, c *sqlite.Conn, manifest *extension.Manifest) error {
	var failed error
	problems := manifest.CheckNames(func(full string) (holder string) {
		const query = `SELECT name FROM release WHERE id IN (SELECT release FROM tool WHERE full_name = ?) AND state IN ('active', 'pending') AND name != ? LIMIT 1`
		if err := c.Row(ctx, query, full, manifest.Name).Scan(&holder); err != nil && !errors.Is(err, sql.ErrNoRows) {
			failed = err
		}
		return holder
	})
	if failed != nil {
		return failed
	}
	if len(problems) > 0 {
		return &extension.ProblemsError{Stage: extension.StageValidate, Problems: problems}
	}
	return nil
}
