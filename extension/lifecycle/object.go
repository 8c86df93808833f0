package lifecycle

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
)

const (
	// pieceSize is how many bytes of an object are in one row.
	pieceSize = 256 << 10
	// writtenAtOnce is how many bytes of objects one transaction writes. Smaller objects are written in the transaction of their
	// version.
	writtenAtOnce = 2 << 20
	// unfinishedFor is how long objects without a version are kept without a sign of life.
	unfinishedFor = time.Hour
)

// stored is data with its digest, which is computed before the transaction.
type stored struct {
	digest string
	data   []byte
}

func pieces(size int) int { return max((size+pieceSize-1)/pieceSize, 1) }

// putPiece stores a piece of an object, and repairs a damaged one.
func putPiece(ctx context.Context, c *sqlite.Conn, o stored, n int) error {
	data := o.data[n*pieceSize : min((n+1)*pieceSize, len(o.data))]
	if n == 0 {
		if _, err := c.Exec(ctx, "DELETE FROM piece WHERE object = ? AND n >= ?", o.digest, pieces(len(o.data))); err != nil {
			return err
		}
		_, err := c.Exec(ctx, "INSERT INTO object VALUES (?1, coalesce(?2, x'')) ON CONFLICT DO UPDATE SET data = excluded.data WHERE data != excluded.data", o.digest, data)
		return err
	}
	_, err := c.Exec(ctx, "INSERT INTO piece VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET data = excluded.data WHERE data != excluded.data", o.digest, n, data)
	return err
}

// errLacking reports that objects that were written before the transaction of their version are gone.
var errLacking = errors.New("storing the version took too long, so it was discarded; write it again")

// putObjects stores the objects of a version. Those written before this transaction must exist.
func putObjects(ctx context.Context, c *sqlite.Conn, objects []stored, before bool) error {
	sizes := map[string]int{}
	for _, o := range objects {
		sizes[o.digest] = len(o.data)
		for n := 0; n < pieces(len(o.data)) && !before; n++ {
			if err := putPiece(ctx, c, o, n); err != nil {
				return err
			}
		}
	}
	text, err := json.Marshal(sizes)
	if err != nil {
		return fmt.Errorf("encode sizes: %w", err)
	}
	const lacking = `SELECT count(*) FROM json_each(?) LEFT JOIN object ON digest = key
		WHERE value IS NOT length(data) + (SELECT coalesce(sum(length(piece.data)), 0) FROM piece WHERE object = key)`
	var lack int
	if err := c.Row(ctx, lacking, string(text)).Scan(&lack); err != nil {
		return err
	}
	if lack > 0 {
		return errLacking
	}
	_, err = c.Exec(ctx, "DELETE FROM unfinished WHERE object IN (SELECT key FROM json_each(?))", string(text))
	return err
}

// writeObjects stores large objects before the transaction of their version, in separate transactions, and reports whether it did.
// Small ones are left to that transaction. Objects that no version uses are deleted later.
func (m *Manager) writeObjects(ctx context.Context, author string, objects []stored) (before bool, err error) {
	total := 0
	sizes := map[string]int64{}
	for _, o := range objects {
		total += len(o.data)
		sizes[o.digest] = footprint(len(o.data))
	}
	if total <= writtenAtOnce {
		return false, nil
	}
	text, err := json.Marshal(sizes)
	if err != nil {
		return false, fmt.Errorf("encode sizes: %w", err)
	}
	// From here on, nobody deletes an object that was about to go. A damaged object that a version has must not be deleted.
	const note = `INSERT INTO unfinished SELECT key, ?2, ?3, value FROM json_each(?1)
		WHERE NOT EXISTS (SELECT 1 FROM object WHERE digest = key) OR EXISTS (SELECT 1 FROM unfinished WHERE object = key)
		ON CONFLICT DO UPDATE SET since = excluded.since, author = excluded.author, bytes = excluded.bytes`
	if err := m.db.Update(ctx, func(c *sqlite.Conn) error {
		if _, err := c.Exec(ctx, note, string(text), m.options.Now().UnixMilli(), author); err != nil {
			return err
		}
		return m.checkStored(ctx, c, author)
	}); err != nil {
		return false, err
	}
	type part struct {
		stored
		n int
	}
	var parts []part
	for _, o := range objects {
		err := m.db.Read(ctx, func(c *sqlite.Conn) error { _, err := object(ctx, c, o.digest); return err })
		if damaged := (*DamagedError)(nil); errors.As(err, &damaged) {
			for n := range pieces(len(o.data)) {
				parts = append(parts, part{o, n})
			}
		} else if err != nil {
			return false, err
		}
	}
	for some := range slices.Chunk(parts, writtenAtOnce/pieceSize) {
		err := m.db.Update(ctx, func(c *sqlite.Conn) error {
			for _, p := range some {
				if _, err := c.Exec(ctx, "UPDATE unfinished SET since = ?2 WHERE object = ?1", p.digest, m.options.Now().UnixMilli()); err != nil {
					return err
				}
				if err := putPiece(ctx, c, p.stored, p.n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// giveUp deletes objects that were written before the transaction of a version that failed.
func (m *Manager) giveUp(ctx context.Context, objects []stored) {
	digests := make([]string, len(objects))
	for i, o := range objects {
		digests[i] = o.digest
	}
	ctx = context.WithoutCancel(ctx)
	text, err := json.Marshal(digests)
	if err == nil {
		err = m.db.Update(ctx, func(c *sqlite.Conn) error {
			_, err := c.Exec(ctx, "UPDATE unfinished SET since = 0 WHERE object IN (SELECT value FROM json_each(?))", string(text))
			return err
		})
	}
	if err == nil {
		err = m.forgetUnfinished(ctx)
	}
	if err != nil {
		m.options.Logger.Warn("delete what was written of a version", "error", err) // a later save deletes it
	}
}

// forgetUnfinished deletes objects that no version uses, in parts. It deletes an object's row last, just before the row that marks it
// for deletion.
func (m *Manager) forgetUnfinished(ctx context.Context) error {
	more := false
	if err := m.db.Read(ctx, func(c *sqlite.Conn) error {
		return c.Row(ctx, "SELECT EXISTS (SELECT 1 FROM unfinished WHERE since < ?)", m.options.Now().Add(-unfinishedFor).UnixMilli()).Scan(&more)
	}); err != nil {
		return err
	}
	for more {
		err := m.db.Update(ctx, func(c *sqlite.Conn) error {
			var digest string
			err := c.Row(ctx, "SELECT object FROM unfinished WHERE since < ? ORDER BY since LIMIT 1", m.options.Now().Add(-unfinishedFor).UnixMilli()).Scan(&digest)
			if errors.Is(err, sql.ErrNoRows) {
				more = false
				return nil
			}
			if err != nil {
				return err
			}
			if _, err := c.Exec(ctx, "DELETE FROM object WHERE digest = ?", digest); err != nil {
				return err
			}
			r, err := c.Exec(ctx, "DELETE FROM piece WHERE object = ?1 AND n IN (SELECT n FROM piece WHERE object = ?1 LIMIT ?2)", digest, writtenAtOnce/pieceSize)
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err != nil || n == writtenAtOnce/pieceSize {
				return err
			}
			_, err = c.Exec(ctx, "DELETE FROM unfinished WHERE object = ?", digest)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// object returns the object with this digest and checks it.
func object(ctx context.Context, c *sqlite.Conn, digest string) ([]byte, error) {
	var data []byte
	var size int
	const first = "SELECT data, length(data) + (SELECT coalesce(sum(length(data)), 0) FROM piece WHERE object = digest) FROM object WHERE digest = ?"
	switch err := c.Row(ctx, first, digest).Scan(&data, &size); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, &DamagedError{digest, "it is missing"}
	case err != nil:
		return nil, err
	}
	if size > len(data) {
		data = append(make([]byte, 0, size), data...)
		for row, err := range c.Rows(ctx, "SELECT data FROM piece WHERE object = ? ORDER BY n", digest) {
			var piece sql.RawBytes
			if err == nil {
				err = row.Scan(&piece)
			}
			if err != nil {
				return nil, err
			}
			data = append(data, piece...)
		}
	}
	if sha256hex.Of(data) != digest {
		return nil, &DamagedError{digest, "its content has another digest"}
	}
	return data, nil
}

// errUnread reports that a transaction needs a version that was not read before the transaction.
var errUnread = errors.New("the version is to be read outside of the transaction")

// update runs do in a writing transaction. Reading a large version takes long, and versions never change. So when do needs one, load
// makes do return, reads the version outside the transaction, and do begins again.
func (m *Manager) update(ctx context.Context, do func(c *sqlite.Conn, load func(digest string) (*Version, error)) error) error {
	type answer struct {
		version *Version
		err     error
	}
	known := map[string]answer{}
	for {
		var wanted string
		err := m.db.Update(ctx, func(c *sqlite.Conn) error {
			return do(c, func(digest string) (*Version, error) {
				if a, is := known[digest]; is {
					if a.err != nil {
						return nil, a.err
					}
					return a.version.still(ctx, c)
				}
				wanted = digest
				return nil, errUnread
			})
		})
		if !errors.Is(err, errUnread) {
			return err
		}
		var a answer
		if err := m.db.View(ctx, func(c *sqlite.Conn) error {
			a.version, a.err = loadVersion(ctx, c, m.options.Kinds, wanted)
			return nil
		}); err != nil {
			return err
		}
		known[wanted] = a
	}
}
