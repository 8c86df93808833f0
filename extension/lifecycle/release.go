package lifecycle

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/internal/sqlite"
)

// Decision is a person's decision. A model must never make one.
type Decision struct {
	// Release is the number of the request, and Digest the digest of the version that the person saw. A decision about any
	// other version is refused.
	Release int64
	Digest  string
	// By is the person, e.g. "user:tom", and Via how the decision came, as in [Entry].
	By, Via string
	// Reason is the person's reason. It may be empty.
	Reason string
}

// isLive is the condition that a release is active or waits for a person.
const isLive = "state IN ('active', 'pending')"

// NotFoundError reports a missing extension, version or request.
type NotFoundError struct {
	What string
	// Why explains why an extension is missing, as [Manager.MissingExtension] does, or is nil.
	Why *MissingError
}

// Error implements error.
func (e *NotFoundError) Error() string {
	text := "there is no " + cut(e.What)
	if e.Why != nil {
		text += "; " + e.Why.Error()
	}
	return text
}

// notIn reports that a scope has no extension of a name.
func notIn(scope extension.Scope, name string) error {
	return &NotFoundError{What: fmt.Sprintf("extension %s in scope %s", name, scope)}
}

// StateError reports a release that is not in the state that an action needs.
type StateError struct {
	Release int64
	State   State
	Needed  State
}

// Error implements error.
func (e *StateError) Error() string {
	return fmt.Sprintf("request %d is %s, no longer %s", e.Release, e.State, e.Needed)
}

// DigestError reports a decision about bytes that the person did not see.
type DigestError struct{ Release int64 }

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("request %d is for another version than the one that was shown", e.Release)
}

const releaseColumns = `id, scope, name, digest, state, author, signer, asked, decided, decider, line, reason, quarantine,
	coalesce((SELECT CASE WHEN content.source = 0 THEN 'source' WHEN version.component = '' THEN 'component' END
		FROM content JOIN version ON version.digest = content.version WHERE content.version = release.digest), '')`

// scanRelease reads releaseColumns. A row that was altered is a *[DamagedError].
func scanRelease(scan func(...any) error) (r Release, err error) {
	var scope string
	var asked int64
	var decided sql.NullInt64
	if err := scan(&r.ID, &scope, &r.Name, &r.Digest, &r.State, &r.Author, &r.Signer, &asked, &decided, &r.By, &r.Line, &r.Reason, &r.Quarantine, &r.Dropped); err != nil {
		return r, err
	}
	r.Asked = time.UnixMilli(asked)
	if decided.Valid {
		r.Decided = time.UnixMilli(decided.Int64)
	}
	if r.Scope, err = extension.ParseScope(scope); err != nil {
		err = &DamagedError{fmt.Sprintf("request %d", r.ID), err.Error()}
	}
	return r, err
}

func releaseByID(ctx context.Context, c *sqlite.Conn, id int64) (Release, error) {
	r, err := scanRelease(c.Row(ctx, "SELECT "+releaseColumns+" FROM release WHERE id = ?", id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = &NotFoundError{What: fmt.Sprintf("request %d", id)}
	}
	return r, err
}

// releaseIn returns the release of an extension that is active or pending. If several are pending, it returns the newest.
func releaseIn(ctx context.Context, c *sqlite.Conn, scope extension.Scope, name string, state State) (Release, error) {
	r, err := scanRelease(c.Row(ctx, "SELECT "+releaseColumns+" FROM release WHERE scope = ? AND name = ? AND state = ? AND "+isLive+" ORDER BY id DESC LIMIT 1", scope.String(), name, state).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = &NotFoundError{What: fmt.Sprintf("extension %s that is %s in scope %s", name, state, scope)}
	}
	return r, err
}

// commit stores a draft that passed all stages, in one transaction with the policy's decision. Only large objects are written before.
func (b *build) commit(ctx context.Context) error {
	if problems, err := b.resolveCallees(ctx, b.version.Manifest); err != nil || len(problems) > 0 { // others may have changed them during the build
		return cmp.Or(err, error(&extension.ProblemsError{Stage: extension.StagePolicy, Problems: problems}))
	}
	now := b.options.Now()
	b.options.Follow(b.setPolicy)
	objects := b.version.objects(b.wasm)
	if err := b.forgetUnfinished(ctx); err != nil {
		return err
	}
	err := b.withRoom(ctx, func() (err error) {
		for range 3 { // somebody may drop an object that this version shares with another one
			if err = b.store(ctx, objects, now); !errors.Is(err, errLacking) {
				return err
			}
		}
		return abi.Errorf(abi.CodeUnavailable, "%s: %v", schema.Kind, err)
	})
	if err != nil {
		b.giveUp(ctx, objects)
	}
	return err
}

// store writes the objects of a draft, and then the draft in one transaction.
func (b *build) store(ctx context.Context, objects []stored, now time.Time) error {
	v, d := b.version, b.draft
	before, err := b.writeObjects(ctx, d.Author, objects)
	if err != nil {
		return err
	}
	r := v.record()
	text, err := r.text()
	if err != nil {
		return err
	}
	known := b.before
	return b.update(ctx, func(c *sqlite.Conn, load func(string) (*Version, error)) error {
		// Somebody may have decided something else during the build.
		if err := b.look(ctx, c, func(digest string) (*Version, error) {
			if known != nil && known.Digest == digest {
				return known, nil
			}
			return load(digest)
		}); err != nil {
			return err
		}
		if err := b.decide(ctx); err != nil {
			return err
		}
		if b.before != nil && b.before.Digest == v.Digest && b.active.Quarantine == "" && calleesText(b.approved) == calleesText(b.called.bindings) {
			b.written.Release, b.written.Unchanged = b.active, true
			return audit(ctx, c, now, written(d, v, b.active.ID))
		}
		if err := b.checkRoom(ctx, c, d.Scope, v.Manifest.Name); err != nil {
			return err
		}
		if err := checkNames(ctx, c, v.Manifest, v.manifest, d.Scope, d.Author); err != nil {
			return err
		}
		first, err := v.first(ctx, c, load)
		if err != nil {
			return err
		}
		if first != nil && (first.Author != v.Author || !first.Created.Equal(v.Created)) { // a version keeps its first author
			v.Author, v.Created = first.Author, first.Created
			r.Author, r.Created = v.Author, v.Created.UnixMilli()
			if text, err = r.text(); err != nil {
				return err
			}
		}
		if err := v.put(ctx, c, text, objects, before); err != nil {
			return err
		}
		d.verdict, d.asked = b.decision, b.called.bindings
		r, err := b.ask(ctx, c, d, v, now)
		if err != nil {
			return err
		}
		refused, err := refusedBefore(ctx, c, r)
		if err != nil {
			return err
		}
		if b.decision.Verdict == policy.Approved && !refused {
			if r, err = b.activate(ctx, c, r, v, Decision{By: "policy", Reason: b.decision.Reason}, "approve", b.decision.Line, now); err != nil {
				return err
			}
		}
		b.written.Release = r
		return b.checkStored(ctx, c, v.Author)
	})
}

// refusedBefore reports whether a person denied these bytes, or revoked the extension and has not approved any version since. Then
// no policy approves it.
func refusedBefore(ctx context.Context, c *sqlite.Conn, r Release) (refused bool, err error) {
	const query = `SELECT EXISTS (SELECT 1 FROM release WHERE scope = ?1 AND name = ?2 AND state IN ('denied', 'revoked') AND (digest = ?3 OR state = 'revoked' AND decided >=
		(SELECT coalesce(max(decided), 0) FROM release WHERE scope = ?1 AND name = ?2 AND state IN ('active', 'superseded') AND decider != 'policy')))`
	err = c.Row(ctx, query, r.Scope.String(), r.Name, r.Digest).Scan(&refused)
	return refused, err
}

// ask makes a pending release. It withdraws an earlier pending one of the same author, unless it is the same version. Requests of
// other authors stay, because no author may hide another's request from a person.
func (m *Manager) ask(ctx context.Context, c *sqlite.Conn, d Draft, v *Version, now time.Time) (r Release, err error) {
	calls, by := calleesText(d.asked), cmp.Or(d.by, d.Author)
	const own = "SELECT " + releaseColumns + " FROM release WHERE scope = ? AND name = ? AND author = ? AND state = 'pending'"
	pending, err := scanRelease(c.Row(ctx, own, d.Scope.String(), v.Manifest.Name, d.Author).Scan)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return r, err
	}
	if err == nil {
		before, err := calleesIn(ctx, c, pending.ID)
		if err != nil {
			return r, err
		}
		if pending.Digest == v.Digest && before == calls {
			const query = "UPDATE release SET signer = ifnull(nullif(?, ''), signer), reason = ifnull(nullif(?, ''), reason) WHERE id = ?"
			if _, err := c.Exec(ctx, query, cut(d.Signer), cut(d.reason), pending.ID); err != nil {
				return r, err
			}
			if err := audit(ctx, c, now, written(d, v, pending.ID)); err != nil {
				return r, err
			}
			return releaseByID(ctx, c, pending.ID)
		}
		if _, err := m.end(ctx, c, pending, Withdrawn, Decision{By: by, Via: d.Via}, "withdraw"); err != nil {
			return r, err
		}
	}
	result, err := c.Exec(ctx, "INSERT INTO release (scope, name, digest, state, author, signer, reason, asked) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		d.Scope.String(), v.Manifest.Name, v.Digest, Pending, d.Author, cut(d.Signer), cut(d.reason), now.UnixMilli())
	if err != nil {
		return r, err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return r, err
	}
	// An author who removes a version and writes it again leaves the names of its tools once.
	const removed = "DELETE FROM tool WHERE release = (SELECT max(id) FROM release WHERE scope = ? AND name = ? AND digest = ? AND author = ? AND state = 'removed')"
	if _, err := c.Exec(ctx, removed, d.Scope.String(), v.Manifest.Name, v.Digest, d.Author); err != nil {
		return r, err
	}
	names := map[string]string{}
	for _, t := range v.Tools {
		names[extension.ToolName(v.Manifest.Name, t.Name)] = t.Name
	}
	text, err := json.Marshal(names)
	if err != nil {
		return r, err
	}
	if _, err := c.Exec(ctx, "INSERT INTO tool (release, full_name, name) SELECT ?, key, value FROM json_each(?)", id, string(text)); err != nil {
		return r, err
	}
	if err := errors.Join(putCallees(ctx, c, id, calls), audit(ctx, c, now, written(d, v, id))); err != nil {
		return r, err
	}
	if err := m.change(ctx, c); err != nil {
		return r, err
	}
	return releaseByID(ctx, c, id)
}

// written returns the audit entry of a draft that passed all stages. There is one even if the draft changes nothing, because it was
// built. The entry says if the policy leaves the decision to a person.
func written(d Draft, v *Version, release int64) Entry {
	e := Entry{
		Kind: "write", By: d.Author, Via: d.Via, Scope: d.Scope.String(), Extension: v.Manifest.Name, Release: release, Digest: v.Digest,
		Signer: d.Signer, Reason: d.reason,
	}
	if d.by != "" {
		e.Kind, e.By = "ask", d.by
	}
	if d.verdict.Verdict == policy.Pending {
		e.Line, e.Reason = d.verdict.Line, cmp.Or(d.reason, d.verdict.Reason)
	}
	return e
}

// activate replaces the active release by another.
func (m *Manager) activate(ctx context.Context, c *sqlite.Conn, r Release, v *Version, d Decision, kind, line string, now time.Time) (Release, error) {
	at := now.UnixMilli()
	const replaced = "UPDATE release SET state = 'superseded' WHERE scope = ? AND name = ? AND state = 'active'"
	if _, err := c.Exec(ctx, replaced, r.Scope.String(), r.Name); err != nil {
		return r, err
	}
	// If the person who approves it gives no reason, the reason still says where it came from.
	if _, err := c.Exec(ctx, "UPDATE content SET ran = 1 WHERE version = ?", r.Digest); err != nil {
		return r, err
	}
	const query = "UPDATE release SET state = 'active', decided = ?, decider = ?, line = ?, reason = ifnull(nullif(?, ''), reason) WHERE id = ?"
	if _, err := c.Exec(ctx, query, at, cut(d.By), line, cut(d.Reason), r.ID); err != nil {
		return r, err
	}
	if err := errors.Join(m.checkDefinitions(ctx, c, r.Scope), dropCallees(ctx, c, r.Scope.String(), r.Name)); err != nil {
		return r, err
	}
	e := Entry{Kind: kind, By: d.By, Via: d.Via, Scope: r.Scope.String(), Extension: r.Name, Release: r.ID, Digest: r.Digest, Line: line, Reason: d.Reason}
	if err := audit(ctx, c, now, e); err != nil {
		return r, err
	}
	if err := m.change(ctx, c); err != nil {
		return r, err
	}
	return releaseByID(ctx, c, r.ID)
}

// Approve activates a pending release. Only a person may call it: nothing that a model can call may lead here.
func (m *Manager) Approve(ctx context.Context, d Decision) (r Release, err error) {
	return m.act(ctx, func(c *sqlite.Conn, load func(string) (*Version, error)) (Release, error) {
		r, err := m.pending(ctx, c, d)
		if err != nil {
			return r, err
		}
		v, err := load(r.Digest)
		if err != nil {
			return r, err
		}
		// Since the request, the names of its tools may have been taken.
		asked, err := bindingsOf(ctx, c, m.options.Kinds, r.ID, v.Manifest)
		if err := errors.Join(err, m.allowed(r.Scope, asked), checkNames(ctx, c, v.Manifest, v.manifest, r.Scope, "")); err != nil {
			return r, err
		}
		return m.activate(ctx, c, r, v, d, "approve", "", m.options.Now())
	})
}

// allowed returns a *[PolicyError] if no person may approve what is asked for.
func (m *Manager) allowed(scope extension.Scope, asked []extension.Binding) error {
	if d := m.policy.Load().Decide(policy.Request{Scope: scope, Asked: asked}); d.Verdict == policy.Refused {
		return &PolicyError{d.Reason, d.Line}
	}
	return nil
}

// PolicyError reports an approval that the operator's policy does not allow anybody to give.
type PolicyError struct{ Reason, Line string }

// Error implements error.
func (e *PolicyError) Error() string {
	return fmt.Sprintf("the policy does not allow this: %s (%s)", e.Reason, e.Line)
}

// Deny denies a pending release.
func (m *Manager) Deny(ctx context.Context, d Decision) (r Release, err error) {
	return m.act(ctx, func(c *sqlite.Conn, _ func(string) (*Version, error)) (Release, error) {
		r, err := m.pending(ctx, c, d)
		if err != nil {
			return r, err
		}
		return m.end(ctx, c, r, Denied, d, "deny")
	})
}

// pending returns the release that a decision is about, if it still waits and has the version that was shown.
func (m *Manager) pending(ctx context.Context, c *sqlite.Conn, d Decision) (Release, error) {
	r, err := releaseByID(ctx, c, d.Release)
	switch {
	case err != nil:
		return r, err
	case r.State != Pending:
		return r, &StateError{r.ID, r.State, Pending}
	case r.Digest != d.Digest:
		return r, &DigestError{r.ID}
	}
	return r, nil
}

// Revoke revokes an active release: running calls end, and the resources behind their handles are closed. It also denies pending
// requests of the same extension. It works on a full disk, because space is reserved for it. If nothing can be written at all, it
// still applies in this process, and the error is an *[UnsavedError].
func (m *Manager) Revoke(ctx context.Context, scope extension.Scope, name string, d Decision) (Release, error) {
	return m.insist(ctx, scope, name, d.Reason, func() (Release, error) { return m.takeAway(ctx, scope, name, Revoked, d, "revoke") })
}

// Remove is Revoke by the author of an extension. Its versions stay in the history. If By is an agent, requests of other authors
// stay, because an agent may not hide another author's request from a person.
func (m *Manager) Remove(ctx context.Context, scope extension.Scope, name string, d Decision) (Release, error) {
	return m.takeAway(ctx, scope, name, Removed, d, "remove")
}

func (m *Manager) takeAway(ctx context.Context, scope extension.Scope, name string, to State, d Decision, kind string) (Release, error) {
	return m.act(ctx, func(c *sqlite.Conn, _ func(string) (*Version, error)) (gone Release, err error) {
		const query = "SELECT " + releaseColumns + " FROM release WHERE scope = ? AND name = ? AND " + isLive + " ORDER BY state DESC, id"
		var ended []Release
		for row, err := range c.Rows(ctx, query, scope.String(), name) {
			if err != nil {
				return gone, err
			}
			r, err := scanRelease(row.Scan)
			if err != nil {
				return gone, err
			}
			if agent := strings.HasPrefix(d.By, string(extension.Agent)+":"); agent && r.State == Pending && r.Author != d.By {
				continue
			}
			ended = append(ended, r)
		}
		if len(ended) == 0 {
			return gone, notIn(scope, name)
		}
		for _, r := range ended {
			to, kind := to, kind
			if to == Revoked && r.State == Pending {
				to, kind = Denied, "deny" // there is nothing to revoke
			}
			if gone, err = m.end(ctx, c, r, to, d, kind); err != nil {
				return gone, err
			}
		}
		return gone, nil
	})
}

// end puts a release into a state that it never leaves.
func (m *Manager) end(ctx context.Context, c *sqlite.Conn, r Release, to State, d Decision, kind string) (Release, error) {
	now := m.options.Now()
	const query = "UPDATE release SET state = ?, decided = ?, decider = ?, line = '', reason = ? WHERE id = ?"
	if _, err := c.Exec(ctx, query, to, now.UnixMilli(), cut(d.By), cut(d.Reason), r.ID); err != nil {
		return r, err
	}
	e := Entry{Kind: kind, By: d.By, Via: d.Via, Scope: r.Scope.String(), Extension: r.Name, Release: r.ID, Digest: r.Digest, Reason: d.Reason}
	if err := audit(ctx, c, now, e); err != nil {
		return r, err
	}
	if err := m.change(ctx, c); err != nil {
		return r, err
	}
	return releaseByID(ctx, c, r.ID)
}

// Earlier returns the release whose version [Manager.Rollback] can activate again: the newest that another one replaced and whose
// version was not revoked since. digest names the version as in [Manager.Version]; without it, only versions whose source is stored
// count. The error is a *[StateError] of the revoked release if there is no other.
func (m *Manager) Earlier(ctx context.Context, scope extension.Scope, name, digest string) (r Release, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error { r, err = earlier(ctx, c, scope, name, digest); return err })
	return r, err
}

func earlier(ctx context.Context, c *sqlite.Conn, scope extension.Scope, name, digest string) (Release, error) {
	const ended = " FROM release WHERE scope = ?1 AND name = ?2 AND state IN ('superseded', 'revoked') AND digest >= ?3 AND digest < ?3 || 'g'"
	query, given := "SELECT "+releaseColumns+" FROM release INDEXED BY release_ended WHERE scope = ?1 AND name = ?2 AND state IN ('superseded', 'revoked') ORDER BY id DESC", digest != ""
	args := []any{scope.String(), name}
	if given {
		var first, last sql.NullString
		const ends = "SELECT (SELECT min(digest)" + ended + "), (SELECT max(digest)" + ended + ")"
		if err := c.Row(ctx, ends, scope.String(), name, digest).Scan(&first, &last); err != nil {
			return Release{}, err
		}
		var found []string
		if first.Valid {
			found = []string{first.String, last.String}
		}
		whole, err := oneDigest(digest, found, " in this scope")
		if err != nil {
			return Release{}, err
		}
		query = "SELECT " + releaseColumns + " FROM release INDEXED BY release_ended_digest WHERE scope = ?1 AND name = ?2 AND state IN ('superseded', 'revoked') AND digest = ?3 ORDER BY id DESC LIMIT 1"
		args = append(args, whole)
	}
	var newest *Release // of those revoked
	revoked := map[string]bool{}
	for row, err := range c.Rows(ctx, query, args...) {
		if err != nil {
			return Release{}, err
		}
		r, err := scanRelease(row.Scan)
		switch {
		case err != nil:
			return Release{}, err
		case r.State == Revoked:
			if revoked[r.Digest] = true; newest == nil {
				newest = &r
			}
		case !revoked[r.Digest] && (given || r.Dropped != DroppedSource):
			return r, nil
		}
	}
	if newest != nil {
		return Release{}, &StateError{newest.ID, newest.State, Superseded}
	}
	return Release{}, &NotFoundError{What: fmt.Sprintf("version of %s to go back to in scope %s", name, scope)}
}

// Rollback activates a version that was active before and was not revoked. If the store dropped its component, Rollback first builds
// it again; if that fails, nothing changes. Only a person may call it.
func (m *Manager) Rollback(ctx context.Context, scope extension.Scope, name, digest string, d Decision) (Release, error) {
	var v *Version
	var built []byte
	for {
		r, err := m.act(ctx, func(c *sqlite.Conn, load func(string) (*Version, error)) (Release, error) {
			before, err := earlier(ctx, c, scope, name, digest)
			if err != nil {
				return before, err
			}
			if v, err = load(digest); err != nil {
				return before, err
			}
			// It calls what it could call when it was active. If those do more now, it asks again.
			asked, err := bindingsOf(ctx, c, m.options.Kinds, before.ID, v.Manifest)
			if err != nil {
				return before, err
			}
			// Other extensions may have taken its names and its place since.
			if err := errors.Join(m.allowed(scope, asked), checkNames(ctx, c, v.Manifest, v.manifest, scope, ""), m.checkRoom(ctx, c, scope, name)); err != nil {
				return before, err
			}
			if v.Component == "" && built == nil {
				return before, errNotBuilt
			}
			r, err := m.ask(ctx, c, Draft{Scope: scope, Author: d.By, Via: d.Via, Signer: before.Signer, asked: asked}, v, m.options.Now())
			if err != nil {
				return r, err
			}
			return m.activate(ctx, c, r, v, d, "rollback", "", m.options.Now())
		})
		switch {
		case errors.Is(err, errNotBuilt):
			if built, err = m.buildAgain(ctx, v); err != nil {
				return Release{}, fmt.Errorf("build version %s again, because its component was dropped to make room: %w", digest, err)
			}
			continue
		case err == nil && built != nil:
			m.keepRebuilt(ctx, v, built)
		}
		return r, err
	}
}

// errNotBuilt reports that the component of a version is to be built outside of the transaction.
var errNotBuilt = errors.New("the component of the version was dropped")

// buildAgain returns the component of a version, built from its source.
func (m *Manager) buildAgain(ctx context.Context, v *Version) ([]byte, error) {
	component, wasm, err := m.component(ctx, v, nil)
	if err != nil {
		return nil, err
	}
	return wasm, errors.Join(component.CheckTools(ctx, v.Tools), component.Close())
}

// Promote requests the active version of an extension in a wider scope. A person can approve it even if it is no longer active in the
// narrower one. The reason of the release says where it came from.
func (m *Manager) Promote(ctx context.Context, from, to extension.Scope, name, author, via string) (Release, error) {
	if _, err := extension.ParseScope(author); err != nil {
		return Release{}, fmt.Errorf("author: %w", err)
	}
	if !from.Narrower(to) {
		return Release{}, fmt.Errorf("%s is not a wider scope than %s", to, from)
	}
	var called resolved // of the version
	var of *Version
	promote := func(c *sqlite.Conn, load func(string) (*Version, error)) (Release, error) {
		r, err := releaseIn(ctx, c, from, name, Active)
		if err != nil {
			return r, err
		}
		v, err := load(r.Digest)
		if err != nil {
			return r, err
		}
		if of == nil || of.Digest != v.Digest {
			of = v
			return r, errUnresolved
		}
		if err := m.checkRoom(ctx, c, to, name); err != nil {
			return r, err
		}
		if problems := called.all(); len(problems) > 0 {
			return r, &extension.ProblemsError{Stage: extension.StageValidate, Problems: problems}
		}
		d := Draft{Scope: to, Author: author, Via: via, Signer: r.Signer, reason: "promoted from " + from.String(), asked: called.bindings}
		return m.ask(ctx, c, d, v, m.options.Now())
	}
	r, err := m.act(ctx, promote)
	for ; errors.Is(err, errUnresolved); r, err = m.act(ctx, promote) {
		called = m.resolveTools(to, of.Manifest, of.manifest)
	}
	return r, err
}

// act changes releases. When it returns, this process has seen the change.
func (m *Manager) act(ctx context.Context, do func(c *sqlite.Conn, load func(digest string) (*Version, error)) (Release, error)) (r Release, err error) {
	m.options.Follow(m.setPolicy)
	if err := m.update(ctx, func(c *sqlite.Conn, load func(string) (*Version, error)) (err error) {
		r, err = do(c, load)
		return err
	}); err != nil {
		return Release{}, err
	}
	m.options.step("committed")
	return r, m.changedTools(context.WithoutCancel(ctx))
}
