package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

const (
	callKind = "call"
	// callStart is how the text of a call's entry starts, and callText the same for LIKE.
	callStart = `{"kind":"call"`
	callText  = callStart + "%"
	// droppedText is the text of a row that stands for a run of dropped calls. It has the number, the time and the hash of the last one.
	droppedText = "null"
	// rowBytes is what a row takes besides its text.
	rowBytes = 64
	// trimPart is the part of the limit that is dropped at once, so that there are few entries of kind "trim". trimAtOnce bounds the calls.
	trimPart   = 16
	trimAtOnce = 100_000
)

// callBytes is what a call takes in the audit log, by the length of its entry's text.
func callBytes(text int) int64 { return int64(text) + rowBytes }

// trimAudit takes the oldest calls out of the audit log if those in the log take more than the policy allows. An entry says how many, and
// sweepCalls deletes them.
func (m *Manager) trimAudit(ctx context.Context) error {
	limit := m.policy.Load().Limits.AuditedCalls
	var size, before, upTo, calls, bytes, until int64
	err := m.db.View(ctx, func(c *sqlite.Conn) error {
		var from int64
		if err := c.Row(ctx, "SELECT call_bytes, dropped, max(first, dropped) FROM head").Scan(&size, &before, &from); err != nil || size <= limit {
			return err
		}
		enough := size - limit + limit/trimPart
		for row, err := range c.Rows(ctx, "SELECT id, at, length(entry) FROM audit WHERE id > ? AND entry LIKE ? ORDER BY id", from, callText) {
			var length int
			if err == nil {
				err = row.Scan(&upTo, &until, &length)
			}
			if err != nil {
				return err
			}
			calls++
			if bytes += callBytes(length); bytes >= enough || calls == trimAtOnce {
				break
			}
		}
		return nil
	})
	if err != nil || calls == 0 {
		return err
	}
	return m.db.Update(ctx, func(c *sqlite.Conn) error {
		var first, is int64
		if err := c.Row(ctx, "SELECT first, dropped FROM head").Scan(&first, &is); err != nil || is != before || first >= upTo {
			return err // another process was faster
		}
		if _, err := c.Exec(ctx, "UPDATE head SET dropped = ?, call_bytes = call_bytes - ?", upTo, bytes); err != nil {
			return err
		}
		return audit(ctx, c, m.options.Now(), Entry{
			Kind: "trim", By: "host", Calls: calls, UpTo: upTo,
			Reason: fmt.Sprintf("%d calls until %s; limits.auditedCalls is %s", calls, time.UnixMilli(until).UTC().Format(time.RFC3339), printable.Size(limit)),
		})
	})
}

// sweepCalls deletes some calls that are no longer in the audit log, in one transaction. more reports whether others are left.
func (m *Manager) sweepCalls(ctx context.Context) (more bool, err error) {
	err = m.db.Read(ctx, func(c *sqlite.Conn) error {
		return c.Row(ctx, "SELECT max(first, swept) < dropped FROM head").Scan(&more)
	})
	if err != nil || !more {
		return false, err
	}
	err = m.db.Update(ctx, func(c *sqlite.Conn) error {
		var swept, upTo int64
		if err := c.Row(ctx, "SELECT max(first, swept), dropped FROM head").Scan(&swept, &upTo); err != nil {
			return err
		}
		type run struct{ from, to int64 }
		var runs []run
		last := swept
		const oldest = "SELECT id, entry LIKE ? FROM audit WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
		for row, err := range c.Rows(ctx, oldest, callText, swept, upTo, forgottenAtOnce) {
			var id int64
			var call bool
			if err == nil {
				err = row.Scan(&id, &call)
			}
			if err != nil {
				return err
			}
			switch n := len(runs); {
			case !call:
			case n > 0 && runs[n-1].to == id-1:
				runs[n-1].to = id
			default:
				runs = append(runs, run{id, id})
			}
			last = id
		}
		for _, r := range runs {
			if _, err := c.Exec(ctx, "DELETE FROM audit WHERE id >= ? AND id < ? OR id = ? AND entry = ?", r.from, r.to, r.from-1, droppedText); err != nil {
				return err
			}
			if _, err := c.Exec(ctx, "UPDATE audit SET entry = ? WHERE id = ?", droppedText, r.to); err != nil {
				return err
			}
		}
		if more = last > swept && last < upTo; !more {
			last = upTo
		}
		_, err := c.Exec(ctx, "UPDATE head SET swept = ?", last)
		return err
	})
	return more, err
}

// drops counts calls that are no longer in a log.
type drops struct {
	upTo int64 // the last one, as the store says
	gone int64 // how many are missing
	last int64 // the last one that is missing
	said int64 // how many are missing as the entries say
	end  int64 // the last one that is missing as the entries say
}

// see counts an entry that follows the one with this number.
func (d *drops) see(id int64, e auditEntry) (said Entry) {
	if e.text == droppedText {
		d.gone += e.id - id
		d.last = e.id
		return Entry{}
	}
	_ = json.Unmarshal([]byte(e.text), &said) // the hash is checked
	if said.Kind == "trim" {
		d.said += said.Calls
		d.end = max(d.end, said.UpTo)
	}
	return said
}

// check compares what is missing with what the entries say. Without all archives, other entries may say it.
func (d *drops) check(all bool) error {
	if d.gone > d.said || d.last > d.end || all && (d.gone != d.said || d.upTo != d.end) {
		return &TamperedError{max(d.last, d.upTo), fmt.Sprintf("up to there, %d entries are missing, and %d calls were dropped", d.gone, d.said)}
	}
	return nil
}
