package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/sqlite"
)

// BudgetError reports that an author or a scope would exceed the policy's limits.
type BudgetError struct {
	// Budget is "builds an hour" or "extensions in a scope".
	Budget string
	Limit  int
	// Field is the field of policy.json that sets the limit.
	Field string
	// Next is when one more is possible; zero if waiting does not help.
	Next time.Time
}

// Error implements error.
func (e *BudgetError) Error() string {
	until := "something is removed"
	if !e.Next.IsZero() {
		until = e.Next.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("the limit of %d %s is reached until %s; it is %s in policy.json", e.Limit, e.Budget, until, e.Field)
}

// reserve reserves room in the budget of a scope until done is called.
func (m *Manager) reserve(ctx context.Context, scope extension.Scope) (done func(), err error) {
	m.mu.Lock()
	m.building[scope]++
	m.mu.Unlock()
	done = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.building[scope]--; m.building[scope] == 0 {
			delete(m.building, scope)
		}
	}
	if err := m.checkBudget(ctx, scope); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// checkBudget counts what was built in the scope in the last hour, including refused versions and generations without a build, and
// what is reserved here. Drafts refused before the build cost nothing.
func (m *Manager) checkBudget(ctx context.Context, scope extension.Scope) error {
	limit := m.policy.Load().Limits.BuildsPerHour
	if limit == 0 {
		return nil
	}
	m.mu.RLock()
	builds := m.building[scope]
	m.mu.RUnlock()
	now := m.options.Now()
	var built []int64 // the oldest first
	err := m.db.Read(ctx, func(c *sqlite.Conn) error {
		// Entries written by a clock that ran ahead count once their time comes.
		const query = `SELECT at FROM audit WHERE entry->>'scope' = ? AND at > ? AND at <= ? AND entry->>'kind' IN ('write', 'refuse', 'generate')
			AND NOT (entry->>'kind' = 'refuse' AND entry->>'reason' GLOB ?) AND NOT (entry->>'kind' = 'generate' AND entry->>'outcome' = ?) ORDER BY at`
		for row, err := range c.Rows(ctx, query, scope.String(), now.Add(-time.Hour).UnixMilli(), now.UnixMilli(), string(extension.StageValidate)+": *", generationBuilt) {
			if err != nil {
				return err
			}
			var at int64
			if err := row.Scan(&at); err != nil {
				return err
			}
			built = append(built, at)
		}
		return nil
	})
	if over := len(built) + builds - limit; err == nil && over > 0 {
		last := now // the last one that must be an hour old
		if over <= len(built) {
			last = time.UnixMilli(built[over-1])
		}
		err = &BudgetError{Budget: "builds an hour", Limit: limit, Field: "limits.buildsPerHour", Next: last.Add(time.Hour)}
	}
	return err
}

// checkRoom checks the number of extensions in a scope.
func (m *Manager) checkRoom(ctx context.Context, c *sqlite.Conn, scope extension.Scope, name string) error {
	limit := m.policy.Load().Limits.ExtensionsPerScope
	if limit == 0 {
		return nil
	}
	var others int
	const query = "SELECT count(DISTINCT name) FROM release WHERE scope = ? AND name != ? AND state IN ('active', 'pending')"
	err := c.Row(ctx, query, scope.String(), name).Scan(&others)
	if err == nil && others >= limit {
		err = &BudgetError{Budget: "extensions in a scope", Limit: limit, Field: "limits.extensionsPerScope"}
	}
	return err
}

// checkNames refuses tools that cannot be registered, including those whose full names belong to another extension, in any scope.
// Only a tool of an extension of the same name may replace one in a wider scope. Requests reserve names only against their own
// author, because others must not learn of them; approval checks the names again. An agent is not told the name of an extension in a
// scope that it does not see.
func checkNames(ctx context.Context, c *sqlite.Conn, manifest *extension.Manifest, scope extension.Scope, author string) error {
	names := make([]string, len(manifest.Tools))
	for i, tool := range manifest.Tools {
		names[i] = extension.ToolName(manifest.Name, tool)
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	const query = `SELECT full_name, release.name, scope IN ('shared', ?3, ?4) OR author = ?4 OR ?4 NOT LIKE 'agent:%' FROM tool JOIN release ON release.id = tool.release
		WHERE full_name IN (SELECT value FROM json_each(?1)) AND live = 1 AND (state = 'active' OR state = 'pending' AND author = ?4) AND release.name != ?2`
	holders := map[string]string{}
	for row, err := range c.Rows(ctx, query, string(text), manifest.Name, scope.String(), author) {
		var full, name string
		var seen bool
		if err == nil {
			err = row.Scan(&full, &name, &seen)
		}
		if err != nil {
			return err
		}
		if holders[full] = "the extension " + strconv.Quote(name); !seen {
			holders[full] = "an extension in another scope"
		}
	}
	if problems := manifest.CheckNames(func(full string) string { return holders[full] }); len(problems) > 0 {
		return &extension.ProblemsError{Stage: extension.StageValidate, Problems: problems}
	}
	return nil
}
