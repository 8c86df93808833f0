package lifecycle

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// Dropped says what the store no longer has of a version.
type Dropped string

// What the store drops to make room. A version that is active or waits for a person is always whole.
const (
	// DroppedComponent: the component is built again from the source when it is needed.
	DroppedComponent Dropped = "component"
	// DroppedSource: only the digest and the decisions are left.
	DroppedSource Dropped = "source"
)

// DroppedError reports a version whose source was dropped to make room.
type DroppedError struct{ Digest string }

// Error implements error.
func (e *DroppedError) Error() string {
	return fmt.Sprintf("the source of version %s was dropped to make room; its digest and the decisions about it are in the history", e.Digest)
}

// StorageError reports that a version would exceed a limit of the policy on what versions take on disk, and that nothing more can
// be dropped.
type StorageError struct {
	// Author is whose versions reach the limit. It is empty if those of all authors together do.
	Author string
	// Limit is the limit in bytes, and Over how many bytes the version would exceed it by.
	Limit, Over int64
	// Field is the field of policy.json that sets the limit.
	Field string
}

// Error implements error.
func (e *StorageError) Error() string {
	whose, author := "versions of all authors", "AUTHOR"
	if e.Author != "" {
		whose, author = "versions by "+e.Author, e.Author
	}
	return fmt.Sprintf("the %s may take %s on disk, and with this one they would take %s more; it is %s in policy.json. "+
		"Remove extensions that nobody needs; a person can drop the source of old versions with: stile ext forget --author %s",
		whose, printable.Size(e.Limit), humanize.IBytes(uint64(max(0, e.Over))), e.Field, author)
}

// footprint is the most that an object or a record takes on disk, with its rows.
func footprint(size int) int64 { return int64(size + size/32 + min(size, 4<<10) + 512) }

// footprint returns the most that a version takes on disk: its component, and all the rest. A component that came without source is not
// dropped by itself, so it belongs to the rest.
func (v *Version) footprint(text []byte, objects []stored) (source, component int64) {
	source = footprint(len(text)) + int64(len(v.Tools))*512
	for _, o := range objects {
		if o.digest == v.Component && v.HasSource() {
			component = footprint(len(o.data))
		} else {
			source += footprint(len(o.data))
		}
	}
	return source, component
}

// checkStored returns a *[StorageError] if the versions of an author, or of all, take more than the policy allows.
func (m *Manager) checkStored(ctx context.Context, c *sqlite.Conn, author string) error {
	limits := m.policy.Load().Limits
	var all, own int64
	const query = `SELECT coalesce(sum(bytes), 0), coalesce(sum(iif(author = ?, bytes, 0)), 0) FROM
		(SELECT author, bytes FROM stored UNION ALL SELECT author, bytes FROM unfinished)`
	if err := c.Row(ctx, query, author).Scan(&all, &own); err != nil {
		return err
	}
	switch {
	case limits.StoredPerAuthor > 0 && own > limits.StoredPerAuthor:
		return &StorageError{Author: author, Limit: limits.StoredPerAuthor, Over: own - limits.StoredPerAuthor, Field: "limits.storedPerAuthor"}
	case limits.Stored > 0 && all > limits.Stored:
		return &StorageError{Limit: limits.Stored, Over: all - limits.Stored, Field: "limits.stored"}
	}
	return nil
}

// withRoom runs do, which stores something. As long as do reports a *[StorageError], it drops what may go and runs do again.
func (m *Manager) withRoom(ctx context.Context, do func() error) error {
	for {
		err := do()
		over, ok := errors.AsType[*StorageError](err)
		if !ok {
			return err
		}
		freed, failed := m.dropOldest(ctx, over)
		if failed != nil {
			return failed
		}
		if err := m.forgetUnfinished(ctx); err != nil {
			return err
		}
		if freed == 0 {
			return over
		}
	}
}

// ended is the condition that a version is neither active nor waits for a person.
const ended = "NOT EXISTS (SELECT 1 FROM release WHERE release.digest = content.version AND " + isLive + ")"

// dropOldest drops the oldest versions that were never active, then the oldest components of other versions, until so many bytes are
// free or nothing is left to drop. If the store as a whole is full, the author with the most goes first.
func (m *Manager) dropOldest(ctx context.Context, over *StorageError) (freed int64, err error) {
	authors := []string{over.Author}
	if over.Author == "" {
		if err := m.db.Read(ctx, func(c *sqlite.Conn) error {
			return c.Row(ctx, "SELECT json_group_array(author) FROM (SELECT author FROM stored ORDER BY bytes DESC)").Scan(asJSON{&authors})
		}); err != nil {
			return 0, err
		}
	}
	host := Decision{By: "host", Reason: "to make room, because it was never active"}
	for _, whole := range []bool{true, false} {
		query := "SELECT version FROM content WHERE author = ? AND component > 0 AND " + ended + " ORDER BY id LIMIT 1"
		if whole {
			query = "SELECT version FROM content WHERE author = ? AND ran = 0 AND source > 0 AND " + ended + " ORDER BY id LIMIT 1"
		}
		for _, author := range authors {
			for freed < over.Over {
				var digest string
				err := m.db.Read(ctx, func(c *sqlite.Conn) error { return c.Row(ctx, query, author).Scan(&digest) })
				if errors.Is(err, sql.ErrNoRows) {
					break
				} else if err != nil {
					return freed, err
				}
				n, err := m.drop(ctx, digest, whole, host)
				if err != nil {
					return freed, err
				}
				freed += n
			}
		}
	}
	return freed, nil
}

// asJSON scans a column of JSON.
type asJSON struct{ to any }

// Scan implements sql.Scanner.
func (j asJSON) Scan(from any) error {
	text, _ := from.(string)
	return json.Unmarshal([]byte(text), j.to)
}

// drop drops the component of an ended version, or the whole version, and returns how many bytes it took. It frees nothing if the
// version is not ended any more. What no other version has is deleted later.
func (m *Manager) drop(ctx context.Context, digest string, whole bool, d Decision) (freed int64, err error) {
	err = m.db.Update(ctx, func(c *sqlite.Conn) error {
		freed = 0
		var source, component int64
		var scope, name string
		const query = `SELECT content.source, content.component, coalesce(scope, ''), version.name FROM content JOIN version ON version.digest = content.version
			LEFT JOIN release ON release.id = (SELECT max(id) FROM release WHERE release.digest = content.version) WHERE version = ? AND ` + ended
		if err := c.Row(ctx, query, digest).Scan(&source, &component, &scope, &name); errors.Is(err, sql.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		if freed = component; !whole {
			if err := shed(ctx, c, digest, itsComponent, ""); err != nil {
				return err
			}
			_, err := c.Exec(ctx, "UPDATE version SET component = '' WHERE digest = ?", digest)
			if err == nil {
				_, err = c.Exec(ctx, "UPDATE content SET component = 0 WHERE version = ?", digest)
			}
			return err
		}
		freed += source
		if err := shed(ctx, c, digest, everything, ""); err != nil {
			return err
		}
		for _, query := range []string{
			"UPDATE version SET component = '', record = '' WHERE digest = ?",
			"UPDATE content SET source = 0, component = 0 WHERE version = ?",
			"DELETE FROM tool WHERE release IN (SELECT id FROM release WHERE digest = ? ORDER BY id DESC LIMIT 2)", // more only if persons decided often
		} {
			if _, err := c.Exec(ctx, query, digest); err != nil {
				return err
			}
		}
		e := Entry{Kind: "forget", By: d.By, Via: d.Via, Scope: scope, Extension: name, Digest: digest, Reason: d.Reason}
		return audit(ctx, c, m.options.Now(), e)
	})
	return freed, err
}

// addParts adds objects to those of a version.
func addParts(ctx context.Context, c *sqlite.Conn, version string, objects []stored) error {
	digests := make([]string, len(objects))
	for i, o := range objects {
		digests[i] = o.digest
	}
	text, err := json.Marshal(digests)
	if err != nil {
		return fmt.Errorf("encode digests: %w", err)
	}
	_, err = c.Exec(ctx, "INSERT OR IGNORE INTO part SELECT value, (SELECT id FROM content WHERE version = ?) FROM json_each(?)", version, string(text))
	return err
}

// Conditions of shed.
const (
	everything     = "?2 = ''"
	itsComponent   = "object = (SELECT component FROM version WHERE digest = ?1) AND ?2 = ''"
	otherComponent = "object = (SELECT component FROM version WHERE digest = ?1 AND component != ?2)"
)

// shed takes objects from a version: those that meet a condition. What no other version has is left to forgetUnfinished.
func shed(ctx context.Context, c *sqlite.Conn, version, condition, value string) error {
	for _, query := range []string{
		`INSERT INTO unfinished SELECT object, 0, author, length(data) + (SELECT coalesce(sum(length(piece.data)), 0) FROM piece WHERE piece.object = part.object)
			FROM content JOIN part ON part.content = content.id JOIN object ON object.digest = part.object
			WHERE content.version = ?1 AND ` + condition + ` AND NOT EXISTS (SELECT 1 FROM part AS other WHERE other.object = part.object AND other.content != part.content)
			ON CONFLICT DO NOTHING`,
		`DELETE FROM part WHERE content = (SELECT id FROM content WHERE version = ?1) AND ` + condition,
	} {
		if _, err := c.Exec(ctx, query, version, value); err != nil {
			return err
		}
	}
	return nil
}

// Stored returns how many bytes the versions of all authors take on disk, at most.
func (m *Manager) Stored(ctx context.Context) (bytes int64, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		return c.Row(ctx, "SELECT (SELECT coalesce(sum(bytes), 0) FROM stored) + (SELECT coalesce(sum(bytes), 0) FROM unfinished)").Scan(&bytes)
	})
	return bytes, err
}

// Ended is a stored version that is neither active nor waits for a person.
type Ended struct {
	Name, Digest, Author string
	// Decided is when its last release was decided.
	Decided time.Time
	// Bytes is what it takes on disk, at most.
	Bytes int64
}

// Ended lists the versions of an author, or of all authors if author is empty, whose source is stored although they are neither
// active nor wait for a person, if the last decision about them is older than before. The oldest come first.
func (m *Manager) Ended(ctx context.Context, author string, before time.Time) (all []Ended, err error) {
	const query = `SELECT version.name, version, content.author, content.source + content.component, max(coalesce(decided, asked)) AS last
		FROM content JOIN version ON version.digest = content.version JOIN release ON release.digest = content.version
		WHERE content.source > 0 AND (?1 = '' OR content.author = ?1) AND ` + ended + ` GROUP BY content.id HAVING last < ?2 ORDER BY content.id`
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		all = nil
		for row, err := range c.Rows(ctx, query, author, before.UnixMilli()) {
			if err != nil {
				return err
			}
			var e Ended
			var last int64
			if err := row.Scan(&e.Name, &e.Digest, &e.Author, &e.Bytes, &last); err != nil {
				return err
			}
			e.Decided = time.UnixMilli(last)
			all = append(all, e)
		}
		return nil
	})
	return all, err
}

// Forget drops the source and the component of a version that is neither active nor waits for a person, with an entry in the audit
// log. It returns how many bytes it freed: none if the version is active, waits or was forgotten before. Only a person may call it,
// because the source of what has run is evidence.
func (m *Manager) Forget(ctx context.Context, digest string, d Decision) (freed int64, err error) {
	if freed, err = m.drop(ctx, digest, true, d); err != nil {
		return 0, err
	}
	return freed, m.forgetUnfinished(ctx)
}
