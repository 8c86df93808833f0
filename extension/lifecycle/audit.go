package lifecycle

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/stilehost/stile/internal/sqlite"
)

// Entry is one line of the audit log: who did what to which bytes, and why it was allowed.
type Entry struct {
	// ID counts from 1. Gaps are calls that an entry of kind "trim" counts.
	ID int64 `json:"id,omitzero"`
	// At has milliseconds.
	At time.Time `json:"at,omitzero"`
	// Kind is "write", "refuse", "generate", "approve", "deny", "withdraw", "rollback", "revoke", "remove", "quarantine", "archive",
	// "configure", "forget", "trim", "answer", "input", "ask", "override" or "call". With "ask", the host requests a version again, because what it calls
	// of others may do more.
	Kind string `json:"kind"`
	// By is who acted: "agent:NAME", "user:NAME", "policy" or "host".
	By string `json:"by"`
	// Via is how the request came: one of the constants below, or ViaElicitation and the name of a client.
	Via       string `json:"via,omitempty"`
	Scope     string `json:"scope,omitempty"`
	Extension string `json:"extension,omitempty"`
	// Release is the number of the request that was decided.
	Release int64 `json:"release,omitempty"`
	// Digest is the digest of the version.
	Digest string `json:"digest,omitempty"`
	// Line is the line of the policy that decided, e.g. "policy.json:12".
	Line string `json:"line,omitempty"`
	// Tool and Outcome belong to a call. An input, which a person gave for a call that lacked it, has the tool, and the names in Reason. The outcome of an answer is "yes" or "no". For a generation, Outcome is "built" or "nothing": builds have their own entries.
	Tool    string `json:"tool,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	// Calls is how many calls a "trim" dropped from the log, and UpTo the number of the last of them.
	Calls int64 `json:"calls,omitempty"`
	UpTo  int64 `json:"upTo,omitempty"`
	// Signer is the signer of an import, made printable.
	Signer string `json:"signer,omitempty"`
	// Reason is the stated reason, made printable.
	Reason string `json:"reason,omitempty"`
}

// How a request or a decision came.
const (
	ViaTerminal    = "terminal" // a person typed it, or answered a question there
	ViaCommand     = "command"  // a command line alone
	ViaWeb         = "web"
	ViaMCP         = "mcp"
	ViaTool        = "tool:"        // before the scope and the full name of the tool that made the call, as in tool:shared/notes_tidy
	ViaElicitation = "elicitation:" // before the name of the client that asked its person
)

// entryText is the stored and hashed part of an entry: everything but its number and its time, which have columns.
func entryText(e Entry) ([]byte, error) {
	e.ID, e.At = 0, time.Time{}
	return json.Marshal(e)
}

// chain returns the hash of an entry. It covers the hash before it, its number, its time and its text.
func chain(before []byte, id, at int64, text []byte) []byte {
	h := sha256.New()
	h.Write(before)
	_ = binary.Write(h, binary.BigEndian, []int64{id, at, int64(len(text))})
	h.Write(text)
	return h.Sum(nil)
}

// audit appends entries in the transaction that they describe.
func audit(ctx context.Context, c *sqlite.Conn, now time.Time, entries ...Entry) error {
	var id, bytes int64
	var hash []byte
	if err := c.Row(ctx, "SELECT entries, hash FROM head").Scan(&id, &hash); err != nil {
		return err
	}
	for _, e := range entries {
		e.By, e.Via, e.Signer, e.Reason = cut(e.By), cut(e.Via), cut(e.Signer), cut(e.Reason)
		text, err := entryText(e)
		if err != nil {
			return fmt.Errorf("encode an entry of the audit log: %w", err)
		}
		if e.Kind == callKind {
			bytes += callBytes(len(text))
		}
		id++
		at := now.UnixMilli()
		hash = chain(hash, id, at, text)
		if _, err := c.Exec(ctx, "INSERT INTO audit VALUES (?, ?, ?, ?)", id, at, string(text), hash); err != nil {
			return err
		}
	}
	_, err := c.Exec(ctx, "UPDATE head SET entries = ?, hash = ?, call_bytes = call_bytes + ?", id, hash, bytes)
	return err
}

// TamperedError reports an audit log that was tampered with.
type TamperedError struct {
	// ID is the number of the first entry that is changed, missing or superfluous.
	ID     int64
	Reason string
}

// Error implements error.
func (e *TamperedError) Error() string {
	return fmt.Sprintf("the audit log was tampered with at entry %d: %s", e.ID, e.Reason)
}

// auditEntry is a row of the log.
type auditEntry struct {
	id, at int64
	text   string
	hash   []byte
}

// follows checks that the entry comes after the entry with this number and the hash last.
func (e auditEntry) follows(id int64, last []byte) error {
	switch {
	case e.text == droppedText && e.id > id:
		return nil // it has the hash of the last dropped call; drops checks the number
	case e.id != id+1:
		return &TamperedError{id + 1, "it is missing"}
	case string(chain(last, e.id, e.at, []byte(e.text))) != string(e.hash):
		return &TamperedError{e.id, "it was changed"}
	}
	return nil
}

// auditEntries yields the entries after the one with this number and the hash last, each checked.
func auditEntries(ctx context.Context, c *sqlite.Conn, id int64, last []byte) iter.Seq2[auditEntry, error] {
	return func(yield func(auditEntry, error) bool) {
		for row, err := range c.Rows(ctx, "SELECT id, at, entry, hash FROM audit WHERE id > ? ORDER BY id", id) {
			var e auditEntry
			if err == nil {
				err = row.Scan(&e.id, &e.at, &e.text, &e.hash)
			}
			if err == nil {
				err = e.follows(id, last)
			}
			if !yield(e, err) || err != nil {
				return
			}
			id, last = e.id, e.hash
		}
	}
}

// VerifyAudit reads the whole log and returns how many entries it has and the hash of the last one, in bytes. If you keep that hash
// elsewhere, you also notice when the whole file is replaced. Archived entries are checked if all archives are given, in order. A
// *[TamperedError] names the first wrong entry.
func (m *Manager) VerifyAudit(ctx context.Context, archives ...io.Reader) (entries int64, last []byte, err error) {
	err = m.db.View(ctx, func(c *sqlite.Conn) error {
		var first, count int64
		var firstHash, hash []byte
		var d drops
		if err := c.Row(ctx, "SELECT first, first_hash, entries, hash, dropped FROM head").Scan(&first, &firstHash, &count, &hash, &d.upTo); err != nil {
			return err
		}
		entries, last = first, firstHash
		if len(archives) > 0 {
			entries, last = 0, zeroHash()
			for _, r := range archives {
				if entries, last, err = readArchive(r, entries, last, &d); err != nil {
					return err
				}
			}
			if entries != first || string(last) != string(firstHash) {
				return &TamperedError{min(entries, first) + 1, "the archives do not belong to this log, or some are missing"}
			}
		}
		moved := first == 0 // or an entry says so
		for e, err := range auditEntries(ctx, c, first, firstHash) {
			if err != nil {
				return err
			}
			said := d.see(entries, e)
			if said.Kind == "archive" && said.Digest == hex.EncodeToString(firstHash) {
				moved = true
			}
			if said.Kind == callKind && e.id <= d.upTo { // it will be deleted
				d.gone++
			}
			entries, last = e.id, e.hash
		}
		switch {
		case count > entries:
			return &TamperedError{entries + 1, "it is missing"}
		case count < entries:
			return &TamperedError{count + 1, "it was added"}
		case string(hash) != string(last):
			return &TamperedError{entries, "it is not the one that was written last"}
		case !moved:
			return &TamperedError{first, "it is missing, and no entry says that it was moved to an archive"}
		}
		return d.check(first == 0 || len(archives) > 0)
	})
	return entries, last, err
}

// Audit returns the newest entries, at most limit, the newest first. One that cannot be read has only its number.
func (m *Manager) Audit(ctx context.Context, limit int) (entries []Entry, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		for row, err := range c.Rows(ctx, `SELECT id, at, entry FROM audit, head WHERE id > first AND entry <> ? AND NOT (id <= dropped AND entry LIKE ?)
			ORDER BY id DESC LIMIT ?`, droppedText, callText, limit) {
			if err != nil {
				return err
			}
			var id, at int64
			var text string
			if err := row.Scan(&id, &at, &text); err != nil {
				return err
			}
			var e Entry
			_ = json.Unmarshal([]byte(text), &e) // VerifyAudit reports what was changed
			e.ID, e.At = id, time.UnixMilli(at)
			entries = append(entries, e)
		}
		return nil
	})
	return entries, err
}
