package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/sqlite"
)

// MissingReason is why an extension or a tool is missing for a viewer.
type MissingReason string

// The reasons.
const (
	MissingWaits       MissingReason = "waits"       // a version waits for approval
	MissingElsewhere   MissingReason = "elsewhere"   // it is active in a scope that the viewer does not see
	MissingQuarantined MissingReason = "quarantined" // it could not be loaded
	MissingEnded       MissingReason = "ended"       // a decision ended it
)

// MissingError explains why an extension or a tool is missing for a viewer. It unwraps to the error of a call of what was revoked or
// is in quarantine.
type MissingError struct {
	Reason MissingReason
	// Release is the release that is not active for the viewer.
	Release Release
}

// Error implements error. It does not say what to do.
func (e *MissingError) Error() string {
	r := e.Release
	switch e.Reason {
	case MissingWaits:
		return fmt.Sprintf("a version of %s waits in scope %s as request %d", r.Name, r.Scope, r.ID)
	case MissingElsewhere:
		return fmt.Sprintf("%s is active in scope %s", r.Name, r.Scope)
	case MissingQuarantined:
		return fmt.Sprintf("%s is in quarantine: %s", r.Name, cut(r.Quarantine))
	default:
		return fmt.Sprintf("%s %s in scope %s (request %d)", r.Name, r.Ending(), r.Scope, r.ID)
	}
}

// Unwrap returns a *[QuarantinedError], a *[RevokedError] or nil.
func (e *MissingError) Unwrap() error {
	switch {
	case e.Reason == MissingQuarantined:
		return &QuarantinedError{Extension: e.Release.Name, Reason: cut(e.Release.Quarantine)}
	case e.Release.State == Revoked:
		return &RevokedError{Extension: e.Release.Name, Reason: cut(e.Release.Reason)}
	default:
		return nil
	}
}

// Ending says how a release ended, by whom and why, e.g. "was revoked by user:tom (too slow)".
func (r Release) Ending() string {
	var b strings.Builder
	fmt.Fprintf(&b, "was %s", r.State)
	if r.By != "" {
		fmt.Fprintf(&b, " by %s", cut(r.By))
	}
	if r.Reason != "" {
		fmt.Fprintf(&b, " (%s)", cut(r.Reason))
	}
	return b.String()
}

// MissingTool explains why a viewer cannot call a tool, by its full name. A release has this tool, and waits for approval, is active
// in a scope that the viewer does not see, is in quarantine, or was the last that a decision ended. The result is nil if no release
// that the viewer may know about had the tool, or if the viewer can call it. Superseded releases do not count.
func (m *Manager) MissingTool(ctx context.Context, v Viewer, tool string) (why *MissingError, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		why, err = missing(ctx, c, v, "id IN (SELECT release FROM tool WHERE full_name = ?)", tool)
		return err
	})
	return why, err
}

// MissingExtension is like [Manager.MissingTool] for an extension. An extension that is active in a scope of the viewer is not
// missing.
func (m *Manager) MissingExtension(ctx context.Context, v Viewer, name string) (why *MissingError, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		why, err = missing(ctx, c, v, "name = ?", name)
		return err
	})
	return why, err
}

// missing explains with the most informative of the releases that meet a condition. Only a person gets releases of other scopes, because a
// person can act there. Superseded releases do not count, because their successors do. Requests that a revocation denied are less
// informative.
func missing(ctx context.Context, c *sqlite.Conn, v Viewer, condition, value string) (*MissingError, error) {
	const order = ` AND state != 'superseded' AND (scope IN (?2, ?3, ?4) OR ?5 AND ` + isLive + `)
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
		case r.State == Pending:
			return &MissingError{MissingWaits, r}, nil
		case r.State != Active:
			return &MissingError{MissingEnded, r}, nil
		case !slices.Contains(v.scopes(), r.Scope):
			return &MissingError{MissingElsewhere, r}, nil
		case r.Quarantine != "":
			return &MissingError{MissingQuarantined, r}, nil
		default:
			return nil, nil
		}
	}
	return nil, nil
}
