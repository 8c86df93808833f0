package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// fieldBuilds is the field of the limit of builds.
const fieldBuilds = "limits.buildsPerHour"

// BudgetError reports that an author or a scope would exceed the policy's limits.
type BudgetError struct {
	// Budget is "builds an hour", "extensions in a scope", or bytes of definitions.
	Budget string
	Limit  int
	// Field is the field of policy.json that sets the limit. It is empty if none does.
	Field string
	// Next is when one more is possible; zero if waiting does not help.
	Next time.Time
}

// Error implements error.
func (e *BudgetError) Error() string { return e.In(policy.File) }

// In is Error with the path of the policy, for the person who can change it.
func (e *BudgetError) In(file string) string {
	until := "something is removed"
	if !e.Next.IsZero() {
		until = e.Next.UTC().Format(time.RFC3339)
	}
	text := fmt.Sprintf("the limit of %d %s is reached until %s", e.Limit, e.Budget, until)
	if e.Field == fieldBuilds {
		text += "; what a person adds at a terminal does not count"
	}
	if section, name, ok := strings.Cut(e.Field, "."); ok {
		text += fmt.Sprintf("; this line of %s would raise it: %q: { %q: %d }", printable.Line(file), section, name, 2*e.Limit)
	}
	return text
}

// counted is a row that counts a build, or 0.
type counted int64

// count counts one more build in a scope, before it begins and for all processes, or fails with a *BudgetError. It also counts if it
// fails, is cancelled, or its process ends.
func (m *Manager) count(ctx context.Context, scope extension.Scope) (n counted, err error) {
	limit := m.policy.Load().Limits.BuildsPerHour
	if limit == 0 {
		return 0, nil
	}
	now := m.options.Now()
	hour := now.Add(-time.Hour).UnixMilli()
	err = m.db.Update(ctx, func(c *sqlite.Conn) error {
		if _, err := c.Exec(ctx, `DELETE FROM build WHERE at <= ?`, hour); err != nil {
			return err
		}
		var builds, over int64
		// Those of a clock that ran ahead count once their time comes.
		if err := c.Row(ctx, `SELECT count(*) FROM build WHERE scope = ? AND at <= ?`, scope.String(), now.UnixMilli()).Scan(&builds); err != nil {
			return err
		}
		if over = builds - int64(limit); over < 0 {
			return c.Row(ctx, `INSERT INTO build (scope, at) VALUES (?, ?) RETURNING id`, scope.String(), now.UnixMilli()).Scan(&n)
		}
		var last int64 // that must be an hour old
		if err := c.Row(ctx, `SELECT at FROM build WHERE scope = ? AND at <= ? ORDER BY at LIMIT 1 OFFSET ?`, scope.String(), now.UnixMilli(), over).Scan(&last); err != nil {
			return err
		}
		return &BudgetError{Budget: "builds an hour", Limit: limit, Field: fieldBuilds, Next: time.UnixMilli(last).Add(time.Hour)}
	})
	return n, err
}

// uncount takes back a build that did not begin.
func (m *Manager) uncount(ctx context.Context, n counted) {
	if n == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := m.db.Update(ctx, func(c *sqlite.Conn) error {
		_, err := c.Exec(ctx, `DELETE FROM build WHERE id = ?`, int64(n))
		return err
	}); err != nil {
		m.options.Logger.Warn("take back a build that did not begin; it counts for an hour", "error", err)
	}
}

// checkRoom checks the number of extensions in a scope.
func (m *Manager) checkRoom(ctx context.Context, c *sqlite.Conn, scope extension.Scope, name string) error {
	limit := m.policy.Load().Limits.ExtensionsPerScope
	if limit == 0 {
		return nil
	}
	var others int
	const query = "SELECT count(DISTINCT name) FROM release WHERE scope = ? AND name != ? AND " + isLive
	err := c.Row(ctx, query, scope.String(), name).Scan(&others)
	if err == nil && others >= limit {
		err = &BudgetError{Budget: "extensions in a scope", Limit: limit, Field: "limits.extensionsPerScope"}
	}
	return err
}

// Every process keeps the definitions of all active extensions in memory, because a list of tools and a call need them.
const (
	maxScopeDefinitions = 16 << 20 // bytes of the records of one scope
	maxDefinitions      = 96 << 20 // bytes of the records of all scopes
)

// checkDefinitions checks what the active extensions of a scope, and of all scopes, keep in memory.
func (m *Manager) checkDefinitions(ctx context.Context, c *sqlite.Conn, scope extension.Scope) error {
	var all, own int64
	const query = `SELECT coalesce(sum(size), 0), coalesce(sum(iif(scope = ?, size, 0)), 0) FROM
		(SELECT scope, octet_length(record) AS size FROM release JOIN version ON version.digest = release.digest WHERE state = 'active')`
	switch err := c.Row(ctx, query, scope.String()).Scan(&all, &own); {
	case err != nil:
		return err
	case own > maxScopeDefinitions:
		return &BudgetError{Budget: "bytes of definitions of active extensions in a scope", Limit: maxScopeDefinitions}
	case all > maxDefinitions:
		return &BudgetError{Budget: "bytes of definitions of active extensions in all scopes", Limit: maxDefinitions}
	default:
		return nil
	}
}

// checkNames refuses tools that cannot be registered, including those whose full names belong to another extension, in any scope.
// Only a tool of an extension of the same name may replace one in a wider scope. Requests reserve names only against their own
// author, because others must not learn of them; approval checks the names again. An agent is not told the name of an extension in a
// scope that it does not see.
func checkNames(ctx context.Context, c *sqlite.Conn, manifest *extension.Manifest, text []byte, scope extension.Scope, author string) error {
	names := make([]string, len(manifest.Tools))
	for i, tool := range manifest.Tools {
		names[i] = extension.ToolName(manifest.Name, tool)
	}
	list, err := json.Marshal(names)
	if err != nil {
		return err
	}
	const query = `SELECT full_name, release.name, scope IN ('shared', ?3, ?4) OR author = ?4 OR ?4 NOT LIKE 'agent:%' FROM tool JOIN release ON release.id = tool.release
		WHERE full_name IN (SELECT value FROM json_each(?1)) AND live = 1 AND (state = 'active' OR state = 'pending' AND author = ?4) AND release.name != ?2`
	holders := map[string]string{}
	for row, err := range c.Rows(ctx, query, string(list), manifest.Name, scope.String(), author) {
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
	if problems := manifest.CheckNames(text, func(full string) string { return holders[full] }); len(problems) > 0 {
		return &extension.ProblemsError{Stage: extension.StageValidate, Problems: problems}
	}
	return nil
}
