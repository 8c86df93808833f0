package lifecycle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stilehost/stile/internal/sqlite"
)

// Archive is a file for old entries of the audit log.
type Archive interface {
	io.Writer
	// Sync returns once everything written is durable.
	Sync() error
}

// archived is an entry in an archive: a line of JSON.
type archived struct {
	ID    int64           `json:"id"`
	At    int64           `json:"at"` // Unix milliseconds
	Entry json.RawMessage `json:"entry"`
	Hash  string          `json:"hash"` // in hex
}

// MinArchiveAge is the minimum age of an archived entry. Budgets count younger ones.
const MinArchiveAge = 24 * time.Hour

// ArchiveAudit moves the entries from before a time to an archive, as lines of JSON in order, and returns how many. When the archive
// is durable, they leave the log in one transaction, with an entry that says who moved them and up to which hash. Others can write
// to the store meanwhile. The chain continues across the archive: [Manager.VerifyAudit] checks both. Entries younger than [MinArchiveAge] stay.
// After an error, nothing has left the store.
func (m *Manager) ArchiveAudit(ctx context.Context, before time.Time, d Decision, to Archive) (moved int64, err error) {
	if limit := m.options.Now().Add(-MinArchiveAge); before.After(limit) {
		before = limit
	}
	for more := true; more; { // so that no archive has calls that were dropped
		if more, err = m.sweepCalls(ctx); err != nil {
			return 0, err
		}
	}
	var first, end, upTo, bytes int64 // before and after the moved entries, the last dropped call, and what the calls among the entries take
	var last []byte
	err = m.db.View(ctx, func(c *sqlite.Conn) error {
		w := bufio.NewWriter(to)
		if err := c.Row(ctx, "SELECT first, first_hash, dropped FROM head").Scan(&first, &last, &upTo); err != nil {
			return err
		}
		end = first
		for e, err := range auditEntries(ctx, c, first, last) {
			if err != nil {
				return err
			}
			if e.at >= before.UnixMilli() {
				break
			}
			line, err := json.Marshal(archived{e.id, e.at, json.RawMessage(e.text), hex.EncodeToString(e.hash)})
			if err != nil {
				return err
			}
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
			if strings.HasPrefix(e.text, callStart) {
				bytes += callBytes(len(e.text))
			}
			end, last = e.id, e.hash
		}
		return w.Flush()
	})
	if err == nil && end == first {
		m.forgetArchived(ctx) // left over from the last time
	}
	if err != nil || end == first {
		return 0, err
	}
	if err := to.Sync(); err != nil {
		return 0, err
	}
	err = m.db.Update(ctx, func(c *sqlite.Conn) error {
		var is, dropped int64
		if err := c.Row(ctx, "SELECT first, dropped FROM head").Scan(&is, &dropped); err != nil {
			return err
		}
		if is != first || dropped != upTo {
			return errMoved
		}
		if _, err := c.Exec(ctx, "UPDATE head SET first = ?, first_hash = ?, call_bytes = call_bytes - ?", end, last, bytes); err != nil {
			return err
		}
		return audit(ctx, c, m.options.Now(), Entry{
			Kind: "archive", By: d.By, Via: d.Via, Digest: hex.EncodeToString(last), Reason: fmt.Sprintf("entries %d to %d", first+1, end),
		})
	})
	if err != nil {
		return 0, err
	}
	m.forgetArchived(ctx)
	return end - first, nil
}

// forgottenAtOnce is how many entries one transaction deletes.
const forgottenAtOnce = 1000

// forgetArchived deletes entries that are in an archive. They are no longer part of the log, so entries that remain after an error
// do no harm.
func (m *Manager) forgetArchived(ctx context.Context) {
	for more := true; more; {
		err := m.db.Update(ctx, func(c *sqlite.Conn) error {
			r, err := c.Exec(ctx, "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id <= (SELECT first FROM head) ORDER BY id LIMIT ?)", forgottenAtOnce)
			if err != nil {
				return err
			}
			n, err := r.RowsAffected()
			more = n == forgottenAtOnce
			return err
		})
		if err != nil {
			m.options.Logger.Warn("delete what was moved to an archive", "error", err)
			return
		}
	}
}

// errMoved reports that entries left the log while they were archived.
var errMoved = errors.New("the entries were moved to another archive or dropped meanwhile: archive again what is left")

// Archived returns how many entries are in archives, and the hash of the last of them.
func (m *Manager) Archived(ctx context.Context) (entries int64, last []byte, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		return c.Row(ctx, "SELECT first, first_hash FROM head").Scan(&entries, &last)
	})
	return entries, last, err
}

// readArchive checks entries that follow those up to first, whose hash is last, and returns the last one of them.
func readArchive(r io.Reader, first int64, last []byte, d *drops) (int64, []byte, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a archived
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return first, last, &TamperedError{first + 1, "its line in the archive is not an entry"}
		}
		if line, err := json.Marshal(a); err != nil || !bytes.Equal(line, lines.Bytes()) { // or other readers may read it differently
			return first, last, &TamperedError{first + 1, "its line in the archive is not the one that was written"}
		}
		hash, err := hex.DecodeString(a.Hash)
		e := auditEntry{a.ID, a.At, string(a.Entry), hash}
		if err := errors.Join(err, e.follows(first, last)); err != nil {
			return first, last, err
		}
		d.see(first, e)
		first, last = e.id, e.hash
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return first, last, &TamperedError{first + 1, "its line in the archive is not an entry"}
	}
	return first, last, lines.Err()
}

// zeroHash is the hash before the first entry.
func zeroHash() []byte { return make([]byte, sha256.Size) }
