package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
)

// OverrideError reports bindings that a call cannot have in place of those of the extension.
type OverrideError struct {
	Binding, Reason string
	// Denied is set if the policy, or that nobody has approved it, is the reason. Otherwise the extension has no use for the binding.
	Denied bool
	// Wider is set if the binding gives what nobody has approved, so that [Call.Wider] would allow it. Lines say what it gives.
	Wider bool
	Lines []string
}

// Error implements error.
func (e *OverrideError) Error() string { return fmt.Sprintf("the binding %s: %s", e.Binding, e.Reason) }

// CheckOverride returns an *[OverrideError] if a call cannot have its bindings in place of those of the extension. If they give no more than was
// approved, nobody needs to agree to them.
func (m *Manager) CheckOverride(ctx context.Context, c Call) error {
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	m.mu.RLock()
	o, ok := m.offerOf(c)
	m.mu.RUnlock()
	if !ok {
		return &UnknownToolError{c.Tool}
	}
	return m.checkOverride(o.release, c)
}

func (m *Manager) checkOverride(a *active, c Call) error {
	approved := a.manifest.Own(a.scope)
	for _, b := range c.Bind {
		fail := func(format string, args ...any) error {
			return &OverrideError{Binding: b.Name, Reason: fmt.Sprintf(format, args...), Lines: extension.Describe(b)}
		}
		at := slices.IndexFunc(approved, func(own extension.Binding) bool { return own.Name == b.Name })
		if at < 0 {
			var names []string
			for _, own := range approved {
				names = append(names, own.Name)
			}
			return fail("%s asks for no binding of this name; it has: %s", a.manifest.Name, strings.Join(names, ", "))
		}
		own := approved[at].Grant
		if own.Interface() != b.Grant.Interface() {
			return fail("it must stay a binding of %s, and this is one of %s", own.Interface(), b.Grant.Interface())
		}
		if kind := b.Grant.Kind(); kind.Fixed {
			return fail("a binding of %s cannot be replaced for a call", kind.Name)
		}
		if _, cut := m.policy.Load().Limit([]extension.Binding{b}); len(cut) > 0 {
			return &OverrideError{Binding: b.Name, Reason: "the ceiling in policy.json does not allow: " + strings.Join(cut[0].Lines, "; "), Denied: true, Lines: extension.Describe(b)}
		}
		if !c.Wider && !extension.Covers(approved[at:at+1], []extension.Binding{b}) {
			return &OverrideError{
				Binding: b.Name, Reason: "it gives more than was approved, so somebody at a terminal has to agree; what gives no more needs nobody", Denied: true, Wider: true, Lines: extension.Describe(b),
			}
		}
	}
	return nil
}

// override gives a call its bindings in place of those of the extension, and writes that down first.
func (s *started) override(env host.Env) error {
	c, a := s.call, s.offer.release
	if len(c.Bind) == 0 {
		return nil
	}
	if err := s.checkOverride(a, c); err != nil {
		return err
	}
	var said []string
	for _, b := range c.Bind {
		said = append(said, b.Name+": "+strings.Join(extension.Describe(b), "; "))
	}
	err := s.db.Update(s.ctx, func(conn *sqlite.Conn) error {
		return audit(s.ctx, conn, s.options.Now(), Entry{
			Kind: "override", By: c.by(), Via: c.Via, Scope: a.scope.String(), Extension: a.manifest.Name, Release: a.id, Digest: a.digest,
			Tool: s.offer.tool.Name, Reason: cut(strings.Join(said, "; ")),
		})
	})
	if err != nil {
		return err
	}
	given, err := s.options.State.Last(s.ctx, c.Bind)
	if err != nil {
		return err
	}
	s.drops = append(s.drops, func() {
		if err := s.options.State.Release(given); err != nil {
			s.options.Logger.Warn("release the bindings of a call", "extension", a.manifest.Name, "error", err)
		}
	})
	maps.Copy(env, given)
	return nil
}
