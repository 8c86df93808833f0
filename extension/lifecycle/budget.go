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

// checkBudget counts what the author wrote in the last hour, what was refused included.
func (m *Manager) checkBudget(ctx context.Context, d Draft) error {
	limit := m.options.Policy.Limits.BuildsPerHour
	if limit == 0 {
		return nil
	}
	var builds int
	err := m.db.Read(ctx, func(c *sqlite.Conn) error {
		const query = "SELECT count(*) FROM audit WHERE at > ? AND entry->>'kind' IN ('write', 'refuse') AND entry->>'by' = ?"
		return c.Row(ctx, query, m.options.Now().Add(-time.Hour).UnixMilli(), d.Author).Scan(&builds)
	})
	if err == nil && builds >= limit {
		err = &BudgetError{"builds an hour", limit}
	}
	return err
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

// checkCollisions refuses tools whose full names another extension has, in any scope: only a tool of an extension of the same name may
// take the place of one in a wider scope.
func checkCollisions(ctx context.Context, c *sqlite.Conn, manifest *extension.Manifest) error {
	var problems []extension.Problem
	for _, tool := range manifest.Tools {
		full := extension.ToolName(manifest.Name, tool)
		const query = `SELECT name FROM release WHERE id IN (SELECT release FROM tool WHERE full_name = ?) AND state IN ('active', 'pending') AND name != ? LIMIT 1`
		var other string
		switch err := c.Row(ctx, query, full, manifest.Name).Scan(&other); {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		default:
			problems = append(problems, extension.Problem{
				File: "manifest.json", Text: fmt.Sprintf("the tool %s would be called %s, as one of the extension %s is", tool, full, other), Fix: "another name",
			})
		}
	}
	if len(problems) > 0 {
		return &extension.ProblemsError{Stage: extension.StageValidate, Problems: problems}
	}
	return nil
}
