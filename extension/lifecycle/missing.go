package lifecycle

import (
	"context"
	"errors"
	"slices"

	"github.com/stilehost/stile/internal/sqlite"
)

// MissingTool returns the release that explains why a viewer cannot call a tool, by its full name. The release has this tool, and
// waits for approval, is active in a scope that the viewer does not see, is in quarantine, or was the last that a decision ended. There
// is none if no release that the viewer may know about had the tool. Superseded releases do not count.
func (m *Manager) MissingTool(ctx context.Context, v Viewer, tool string) (why *Release, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		why, err = missing(ctx, c, v, "id IN (SELECT release FROM tool WHERE full_name = ?)", tool)
		return err
	})
	return why, err
}

// MissingExtension is like [Manager.MissingTool] for an extension. An extension that is active in a scope of the viewer is not
// missing.
func (m *Manager) MissingExtension(ctx context.Context, v Viewer, name string) (why *Release, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		why, err = missing(ctx, c, v, "name = ?", name)
		return err
	})
	return why, err
}

// missing returns the most informative of the releases that meet a condition. Only a person gets releases of other scopes, because a
// person can act there. Superseded releases do not count, because their successors do. Requests that a revocation denied are less
// informative.
func missing(ctx context.Context, c *sqlite.Conn, v Viewer, condition, value string) (*Release, error) {
	const order = ` AND state != 'superseded' AND (scope IN (?2, ?3, ?4) OR ?5 AND state IN ('pending', 'active'))
		ORDER BY CASE state WHEN 'pending' THEN 0 WHEN 'active' THEN 1 ELSE 2 END, CASE scope WHEN ?2 THEN 0 WHEN ?3 THEN 1 WHEN ?4 THEN 2 ELSE 3 END,
			decided DESC, state = 'revoked' DESC, id DESC`
	scopes := v.scopeTexts()
	for row, err := range c.Rows(ctx, "SELECT "+releaseColumns+" FROM release WHERE "+condition+order, value, scopes[0], scopes[1], scopes[2], v.Person) {
		if err != nil {
			return nil, err
		}
		r, err := scanRelease(row.Scan)
		switch {
		case errors.As(err, new(*DamagedError)) || err == nil && !v.Sees(r):
		case err != nil:
			return nil, err
		case r.State == Active && r.Quarantine == "" && slices.Contains(v.scopes(), r.Scope):
			return nil, nil
		default:
			return &r, nil
		}
	}
	return nil, nil
}
