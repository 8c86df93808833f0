package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// Extension is the state of a name in a scope.
type Extension struct {
	Scope       extension.Scope
	Name        string
	Description string
	// Active and Pending are nil if there is none. Pending is the newest one that the viewer sees; each author can have one.
	Active, Pending *Release
	// Version is the version number of the active release, or else of the pending one.
	Version string
	// NoSource is set if that is a component without source.
	NoSource bool
	// Tags are those of its manifest, in byte order.
	Tags  []string
	Tools []ToolState
	// Problem says why the record cannot be read; then only scope, name and releases are set.
	Problem string
}

// ToolState is a tool with its statistics.
type ToolState struct {
	// Name is the full name.
	Name, Description string
	Stats             Stats
	// ShadowedBy is the narrower scope, among those the viewer sees, whose tool of this name is called instead. It is nil if this
	// tool is called.
	ShadowedBy *extension.Scope
}

// List returns what a viewer sees, the narrowest scope first, then by name. It includes broken extensions with the reason.
// Only the author and a person see pending versions. Of each tool's description it has the first 500 bytes: all of them can have
// 2 MiB for each extension.
func (m *Manager) List(ctx context.Context, v Viewer) ([]Extension, error) {
	return m.list(ctx, v, listing{most: listed, counted: true})
}

// Overview is List without statistics.
func (m *Manager) Overview(ctx context.Context, v Viewer) ([]Extension, error) {
	return m.list(ctx, v, listing{most: listed})
}

// Statistics is List without descriptions of tools.
func (m *Manager) Statistics(ctx context.Context, v Viewer) ([]Extension, error) {
	return m.list(ctx, v, listing{counted: true})
}

// ListAll is List for a person and all scopes, each by itself: no tool is shadowed.
func (m *Manager) ListAll(ctx context.Context) (list []Extension, err error) {
	err = m.db.View(ctx, func(c *sqlite.Conn) error {
		list = nil
		var texts []string
		if err := c.Row(ctx, "SELECT json_group_array(scope) FROM (SELECT DISTINCT scope FROM release WHERE "+isLive+")").Scan(asJSON{&texts}); err != nil {
			return err
		}
		var scopes []extension.Scope
		for _, text := range texts {
			if scope, err := extension.ParseScope(text); err == nil { // who lists releases reports the others
				scopes = append(scopes, scope)
			}
		}
		slices.SortFunc(scopes, extension.Scope.Compare)
		for _, scope := range scopes {
			all, err := m.listScope(ctx, c, Viewer{Person: true}, scope, map[string]extension.Scope{}, listing{most: listed, counted: true})
			if err != nil {
				return err
			}
			list = append(list, all...)
		}
		return nil
	})
	return list, err
}

// State returns the state of one extension for a person, with whole descriptions. It is zero if there is neither an active nor a
// pending release.
func (m *Manager) State(ctx context.Context, scope extension.Scope, name string) (e Extension, err error) {
	err = m.db.View(ctx, func(c *sqlite.Conn) error {
		all, err := m.listScope(ctx, c, Viewer{Person: true}, scope, map[string]extension.Scope{}, listing{most: math.MaxInt, counted: true, name: name})
		if len(all) > 0 {
			e = all[0]
		}
		return err
	})
	return e, err
}

// listing is what a list has: so many bytes of each tool's description, statistics, and one extension or all.
type listing struct {
	most    int
	counted bool
	name    string // empty for all
}

const listed = 500 // bytes of a tool's description

func (m *Manager) list(ctx context.Context, v Viewer, l listing) (list []Extension, err error) {
	err = m.db.View(ctx, func(c *sqlite.Conn) error {
		list = nil
		narrower := map[string]extension.Scope{}
		for _, scope := range v.scopes() {
			all, err := m.listScope(ctx, c, v, scope, narrower, l)
			if err != nil {
				return err
			}
			list = append(list, all...)
		}
		return nil
	})
	return list, err
}

func (m *Manager) listScope(ctx context.Context, c *sqlite.Conn, v Viewer, scope extension.Scope, narrower map[string]extension.Scope, l listing) (list []Extension, err error) {
	const query = "SELECT " + releaseColumns + " FROM release WHERE scope = ?1 AND (?2 = '' OR name = ?2) AND " + isLive + " ORDER BY name, id"
	for row, err := range c.Rows(ctx, query, scope.String(), l.name) {
		if err != nil {
			return nil, err
		}
		r, err := scanRelease(row.Scan)
		if err != nil {
			return nil, err
		}
		if !v.Sees(r) {
			continue
		}
		if len(list) == 0 || list[len(list)-1].Name != r.Name {
			list = append(list, Extension{Scope: scope, Name: r.Name})
		}
		e := &list[len(list)-1]
		if r.State == Active {
			e.Active = &r
		} else {
			e.Pending = &r
		}
	}
	var stats map[toolName]Stats
	if l.counted && len(list) > 0 {
		if stats, err = toolStats(ctx, c, scope); err != nil {
			return nil, err
		}
	}
	for i := range list {
		e := &list[i]
		shown := e.Active
		if shown == nil {
			shown = e.Pending
		}
		version, _, err := loadRecord(ctx, c, shown.Digest)
		var manifest *extension.Manifest
		if err == nil {
			manifest, _, err = version.manifest(ctx, c, m.options.Kinds)
		}
		if damaged := (*DamagedError)(nil); errors.As(err, &damaged) {
			e.Problem = damaged.Error()
			continue
		} else if err != nil {
			return nil, err
		}
		e.NoSource = version.Component != ""
		e.Version, e.Description, e.Tags = manifest.Version, manifest.Description, manifest.Tags
		for _, t := range version.Tools {
			s := ToolState{Name: extension.ToolName(e.Name, t.Name), Description: printable.Cut(t.Description, l.most), Stats: stats[toolName{e.Name, t.Name}]}
			if by, ok := narrower[s.Name]; ok {
				s.ShadowedBy = &by
			} else if e.Active != nil {
				narrower[s.Name] = scope
			}
			e.Tools = append(e.Tools, s)
		}
	}
	return list, nil
}

// Pending lists the releases that wait for approval, in all scopes, the oldest first.
func (m *Manager) Pending(ctx context.Context) ([]Release, error) {
	return m.releasesWhere(ctx, "SELECT "+releaseColumns+" FROM release WHERE state = 'pending' ORDER BY id")
}

// Active lists the active releases of all scopes, by scope and name.
func (m *Manager) Active(ctx context.Context) ([]Release, error) {
	return m.releasesWhere(ctx, "SELECT "+releaseColumns+" FROM release WHERE state = 'active' ORDER BY scope, name")
}

// History lists all releases of an extension in a scope, the newest first.
func (m *Manager) History(ctx context.Context, scope extension.Scope, name string) ([]Release, error) {
	all, err := m.releasesWhere(ctx, "SELECT "+releaseColumns+" FROM release WHERE scope = ? AND name = ? ORDER BY id DESC", scope.String(), name)
	if err == nil && len(all) == 0 {
		err = notIn(scope, name)
	}
	return all, err
}

func (m *Manager) releasesWhere(ctx context.Context, query string, args ...any) (all []Release, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		for row, err := range c.Rows(ctx, query, args...) {
			if err != nil {
				return err
			}
			r, err := scanRelease(row.Scan)
			if errors.As(err, new(*DamagedError)) {
				m.unreadable(r.ID, err)
				continue
			} else if err != nil {
				return err
			}
			all = append(all, r)
		}
		return nil
	})
	return all, err
}

// Release returns a release by its number.
func (m *Manager) Release(ctx context.Context, id int64) (r Release, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error { r, err = releaseByID(ctx, c, id); return err })
	return r, err
}

// Find returns the release of an extension in the narrowest scope that the viewer sees: the active one, otherwise the
// pending one. If neither is left, the error says what happened to the extension.
func (m *Manager) Find(ctx context.Context, v Viewer, name string) (r Release, err error) {
	err = m.db.View(ctx, func(c *sqlite.Conn) error {
		for _, state := range []State{Active, Pending} {
			for _, scope := range v.scopes() {
				var found bool
				const query = "SELECT " + releaseColumns + " FROM release WHERE scope = ? AND name = ? AND state = ? AND " + isLive + " ORDER BY id DESC"
				if r, found, err = v.first(ctx, c, query, scope.String(), name, state); found || err != nil {
					return err
				}
			}
		}
		why, err := missing(ctx, c, v, "name = ?", name)
		if err != nil {
			return err
		}
		return &NotFoundError{What: "extension " + name, Why: why}
	})
	return r, err
}

// first returns the first release of a query that the viewer sees.
func (v Viewer) first(ctx context.Context, c *sqlite.Conn, query string, args ...any) (r Release, found bool, err error) {
	for row, err := range c.Rows(ctx, query, args...) {
		if err != nil {
			return r, false, err
		}
		if r, err = scanRelease(row.Scan); err != nil || v.Sees(r) {
			return r, err == nil, err
		}
	}
	return Release{}, false, nil
}

// FindVersion returns the last release of a version of an extension, in any state, in the narrowest scope that the viewer sees and
// that ever had it. Only its author and persons can find one that was never active. The version is named by its digest, or by at
// least the first [MinDigest] characters of it.
func (m *Manager) FindVersion(ctx context.Context, v Viewer, name, digest string) (Release, error) {
	var found []Release
	for _, scope := range v.scopes() {
		const query = "SELECT " + releaseColumns + " FROM release WHERE scope = ?1 AND name = ?2 AND digest >= ?3 AND digest < ?3 || 'g' ORDER BY id DESC"
		all, err := m.releasesWhere(ctx, query, scope.String(), name, digest)
		if err != nil {
			return Release{}, err
		}
		found = slices.DeleteFunc(all, func(r Release) bool { return !v.Sees(r) })
		if len(found) > 0 {
			break
		}
	}
	if _, err := oneDigest(digest, digests(found), " of the extension "+name); err != nil {
		return Release{}, err
	}
	return found[0], nil
}

// Version returns a version by its digest, or by at least the first [MinDigest] characters of it.
func (m *Manager) Version(ctx context.Context, digest string) (v *Version, err error) {
	err = m.db.View(ctx, func(c *sqlite.Conn) error {
		var found []string
		for row, err := range c.Rows(ctx, "SELECT digest FROM version WHERE digest >= ?1 AND digest < ?1 || 'g' LIMIT 2", digest) {
			if err != nil {
				return err
			}
			var one string
			if err := row.Scan(&one); err != nil {
				return err
			}
			found = append(found, one)
		}
		if digest, err = oneDigest(digest, found, ""); err != nil {
			return err
		}
		v, err = loadVersion(ctx, c, m.options.Kinds, digest)
		return err
	})
	return v, err
}

func digests(releases []Release) (all []string) {
	for _, r := range releases {
		all = append(all, r.Digest)
	}
	return all
}

// oneDigest returns the digest that begins with start. found are those that do, of versions of an extension, and of says of which.
func oneDigest(start string, found []string, of string) (string, error) {
	found = slices.Compact(slices.Sorted(slices.Values(found)))
	switch {
	case len(start) < MinDigest:
		return "", &NotFoundError{What: fmt.Sprintf("version %q%s: write at least its first %d characters", start, of, MinDigest)}
	case len(found) == 0:
		return "", &NotFoundError{What: fmt.Sprintf("version %q%s", start, of)}
	case len(found) > 1:
		return "", &NotFoundError{What: fmt.Sprintf("single version%s that begins with %q: write more of its digest", of, start)}
	}
	return found[0], nil
}

// Stats are the statistics of a tool.
type Stats struct {
	// Calls counts all calls, and Failures those in which the tool itself failed. Bad input and cancelled calls do not count as
	// failures.
	Calls, Failures int64
	// P50 and P95 are percentiles of the durations of its last calls, at most 1,000. With few calls, P95 is the longest.
	P50, P95  time.Duration
	LastUsed  time.Time // zero if it was never used
	LastError string    // the error of the last failure
}

// ErrorRate returns the share of the calls that failed, from 0 to 1.
func (s Stats) ErrorRate() float64 {
	if s.Calls == 0 {
		return 0
	}
	return float64(s.Failures) / float64(s.Calls)
}

// Score rates a tool from 0 to 100: the share of its calls that do not fail, as if there had been two more calls and one of them
// had failed. So a few calls have little weight.
func (s Stats) Score() int {
	return int(100 * float64(s.Calls-s.Failures+1) / float64(s.Calls+2))
}

// toolStats reads the statistics of the tools in a scope, in two queries for all of them. The caller's tools are of extensions that
// are active or wait.
func toolStats(ctx context.Context, c *sqlite.Conn, scope extension.Scope) (map[toolName]Stats, error) {
	all := map[toolName]Stats{}
	const listed = "scope = ?1 AND extension IN (SELECT name FROM release WHERE scope = ?1 AND " + isLive + ")"
	for row, err := range c.Rows(ctx, "SELECT extension, tool, calls, failures, last_used, last_error FROM usage WHERE "+listed, scope.String()) {
		var name toolName
		var s Stats
		var last int64
		if err == nil {
			err = row.Scan(&name.extension, &name.tool, &s.Calls, &s.Failures, &last, &s.LastError)
		}
		if err != nil {
			return nil, err
		}
		s.LastUsed = time.UnixMilli(last)
		all[name] = s
	}
	const durations = "SELECT extension, tool, json_group_array(duration) FROM (SELECT extension, tool, duration, row_number() OVER (PARTITION BY extension, tool ORDER BY id DESC) AS n FROM call WHERE " +
		listed + ") WHERE n <= ?2 GROUP BY extension, tool"
	for row, err := range c.Rows(ctx, durations, scope.String(), keptCalls) {
		var name toolName
		var took []int64
		if err == nil {
			err = row.Scan(&name.extension, &name.tool, asJSON{&took})
		}
		if err != nil {
			return nil, err
		}
		if s, is := all[name]; is {
			slices.Sort(took)
			at := func(percent int) time.Duration {
				return time.Duration(took[(percent*len(took)+99)/100-1]) * time.Microsecond
			}
			s.P50, s.P95 = at(50), at(95)
			all[name] = s
		}
	}
	return all, nil
}

// toolName names a tool within a scope.
type toolName struct{ extension, tool string }

// Prunable is an extension that could be removed, and why.
type Prunable struct {
	Release Release
	Reason  string
}

// DefaultUnused is the time without a call after which [Manager.Prune] usually finds an extension, and PrunedCalls how many calls it must
// have had to be found because most of them failed.
const (
	DefaultUnused = 30 * 24 * time.Hour
	PrunedCalls   = 20
)

// Prune lists the active extensions of a scope that were not used for so long, or that failed most of at least 20 calls. It
// changes nothing.
func (m *Manager) Prune(ctx context.Context, scope extension.Scope, unused time.Duration) (all []Prunable, err error) {
	now := m.options.Now()
	err = m.db.View(ctx, func(c *sqlite.Conn) error {
		all = nil
		list, err := m.listScope(ctx, c, Viewer{}, scope, map[string]extension.Scope{}, listing{counted: true})
		if err != nil {
			return err
		}
		for _, e := range list {
			if e.Active == nil {
				continue
			}
			last := e.Active.Decided
			var calls, failures int64
			for _, t := range e.Tools {
				calls, failures = calls+t.Stats.Calls, failures+t.Stats.Failures
				if t.Stats.LastUsed.After(last) {
					last = t.Stats.LastUsed
				}
			}
			switch {
			case e.Problem != "":
				all = append(all, Prunable{*e.Active, e.Problem})
			case now.Sub(last) >= unused:
				all = append(all, Prunable{*e.Active, fmt.Sprintf("not used since %s", last.UTC().Format(time.DateOnly))})
			case calls >= PrunedCalls && failures*2 > calls:
				all = append(all, Prunable{*e.Active, fmt.Sprintf("%d of %d calls failed", failures, calls)})
			}
		}
		return nil
	})
	return all, err
}
