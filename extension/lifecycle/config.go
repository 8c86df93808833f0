package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/sqlite"
)

// Configured is what a person configured of an extension, and its vars.
type Configured struct {
	// Release is the active one, or else the newest that waits. Its manifest has the vars.
	Release Release
	// Vars are those of the manifest with their values, and set values that it does not have.
	Vars []extension.VarState
}

// Unfit returns the set values that the code does not read, because the manifest has other vars now.
func (c Configured) Unfit() []extension.VarState { return unfit(c.Vars) }

func unfit(vars []extension.VarState) []extension.VarState {
	return slices.DeleteFunc(slices.Clone(vars), func(s extension.VarState) bool { return s.Unfit == "" })
}

// Configuration returns what a person configured of an extension that is active or waits in a scope.
func (m *Manager) Configuration(ctx context.Context, scope extension.Scope, name string) (configured Configured, err error) {
	err = m.db.View(ctx, func(c *sqlite.Conn) error {
		var manifest *extension.Manifest
		if configured.Release, manifest, err = m.configurable(ctx, c, scope, name); err != nil {
			return err
		}
		set, err := varsIn(ctx, c, scope, name)
		configured.Vars = manifest.Configure(set)
		return err
	})
	return configured, err
}

// configurable finds the release whose manifest says what can be set.
func (m *Manager) configurable(ctx context.Context, c *sqlite.Conn, scope extension.Scope, name string) (r Release, manifest *extension.Manifest, err error) {
	for _, state := range []State{Active, Pending} {
		r, err = releaseIn(ctx, c, scope, name, state)
		if notFound := (*NotFoundError)(nil); errors.As(err, &notFound) {
			continue
		} else if err != nil {
			return r, nil, err
		}
		found, _, err := loadRecord(ctx, c, r.Digest)
		if err == nil {
			manifest, _, err = found.manifest(ctx, c, m.options.Kinds)
		}
		return r, manifest, err
	}
	return r, nil, notIn(scope, name)
}

// Configure sets vars of an extension, those whose value is nil back to their defaults. The next call reads them. Only a person may
// call it. A value that the manifest does not allow is an *[extension.VarError], and then nothing is set.
func (m *Manager) Configure(ctx context.Context, scope extension.Scope, name string, set map[string]json.RawMessage, d Decision) (configured Configured, err error) {
	m.options.Follow(m.setPolicy)
	if err := m.db.Update(ctx, func(c *sqlite.Conn) error {
		r, manifest, err := m.configurable(ctx, c, scope, name)
		if err != nil {
			return err
		}
		now, err := varsIn(ctx, c, scope, name)
		if err != nil {
			return err
		}
		var entries []Entry
		for _, v := range sortedVars(set) {
			said := v + " is back to its default"
			if value := set[v]; value == nil {
				if now[v] == nil {
					if _, ok := manifest.Var(v); !ok { // a name that was mistyped
						_, err := manifest.CheckVar(v, nil)
						return err
					}
					continue
				}
				delete(now, v)
				_, err = c.Exec(ctx, "DELETE FROM var WHERE scope = ? AND extension = ? AND name = ?", scope.String(), name, v)
			} else {
				if value, err = manifest.CheckVar(v, value); err != nil {
					return err
				}
				now[v] = value
				said = fmt.Sprintf("%s is %s", v, value)
				_, err = c.Exec(ctx, "INSERT INTO var VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", scope.String(), name, v, string(value))
			}
			if err != nil {
				return err
			}
			entries = append(entries, Entry{
				Kind: "configure", By: d.By, Via: d.Via, Scope: scope.String(), Extension: name, Release: r.ID, Digest: r.Digest, Reason: said,
			})
		}
		if err := extension.TooManyVars(now); err != nil {
			return &extension.VarError{Name: "all together", Problem: "is too large: " + err.Error()}
		}
		configured = Configured{r, manifest.Configure(now)}
		if len(entries) == 0 {
			return nil
		}
		return errors.Join(audit(ctx, c, m.options.Now(), entries...), m.change(ctx, c))
	}); err != nil {
		return Configured{}, err
	}
	return configured, m.Refresh(context.WithoutCancel(ctx))
}

func sortedVars(set map[string]json.RawMessage) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// varsIn reads what a person set.
func varsIn(ctx context.Context, c *sqlite.Conn, scope extension.Scope, name string) (map[string]json.RawMessage, error) {
	set := map[string]json.RawMessage{}
	for row, err := range c.Rows(ctx, "SELECT name, value FROM var WHERE scope = ? AND extension = ?", scope.String(), name) {
		if err != nil {
			return nil, err
		}
		var name, value string
		if err := row.Scan(&name, &value); err != nil {
			return nil, err
		}
		set[name] = json.RawMessage(value)
	}
	return set, nil
}

// varsOf is what calls of a release read. It is a pointer, so that a call can see that it has changed.
type varsOf struct{ text []byte }

// configure gives the calls of a release what a person set.
func (a *active) configure(ctx context.Context, c *sqlite.Conn) error {
	if len(a.manifest.Vars) == 0 {
		return nil
	}
	set, err := varsIn(ctx, c, a.scope, a.manifest.Name)
	if err != nil {
		return err
	}
	text := extension.VarsText(a.manifest.Configure(set))
	if now := a.vars.Load(); now == nil || string(now.text) != string(text) {
		a.vars.Store(&varsOf{text})
	}
	return nil
}
