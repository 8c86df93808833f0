package durable

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/stilehost/stile/internal/sqlite"
)

// history is what is kept of a log that was cut.
type history struct {
	// Attempt had so many operations before the log was cut.
	Attempt    uint64      `json:"attempt"`
	Count      uint64      `json:"count"`
	Operations []Operation `json:"operations"`
}

func historyPlace(run string, n int64) place { return place{run: run, kind: "history", n: n} }

// openHistory reads the history of a run whose log was cut at a batch.
func (r *Runs) openHistory(run string, n int64, body []byte) (h history, err error) {
	if body == nil {
		return h, nil
	}
	text, err := r.sealer.open(historyPlace(run, n), body)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	for i := range h.Operations { // which an earlier version may have kept with addresses of mailboxes
		o := &h.Operations[i]
		o.Arguments, o.Answer = r.hideIn(o.Arguments), r.hideIn(o.Answer)
	}
	return h, err
}

// ending is the end of a log as it is in the file, and what is kept of what was before it.
type ending struct {
	id       int64
	name     string
	function bool     // of Go code
	sealed   []byte   // the head in the file: a part of it is random, so no other log has it
	head     head     // with the operations of rest
	n        int64    // the last batch
	rest     [][]byte // entries that come after it

	at      int64 // the batch at which the log was cut last
	history []byte
	batches []sealedBatch
	after   []byte // the tag of what is before these
}

// ending reads the end of a run's log. rest are entries that are not in it yet.
func (r *Runs) ending(ctx context.Context, c *sqlite.Conn, w row, rest [][]byte) (e ending, err error) {
	e = ending{id: w.id, name: w.name, function: w.function.Valid, sealed: w.head, n: w.batches, at: w.batches, rest: rest}
	if e.head, _, err = r.headIn(ctx, c, w); err != nil {
		return e, err
	}
	e.head.operations += begins(e.function, rest)
	var from sql.NullInt64
	if err := c.Row(ctx, `SELECT (SELECT min(n) FROM log WHERE run = ?1), (SELECT body FROM history WHERE run = ?1)`, w.id).Scan(&from, &e.history); err != nil {
		return e, err
	}
	if from.Valid {
		e.at = from.Int64 - 1
	}
	e.batches, e.after, err = r.tail(ctx, c, w.id)
	return e, err
}

// cut is what is kept of a log, up to a head.
type cut struct {
	sealed []byte // the head in the file
	head   head   // with the operations that are not in the file
	body   []byte // of the history; nil if there is nothing to keep
}

// cuts are what is kept of logs that are about to be cut, by their runs.
type cuts map[int64]cut

// errGoneOn says that a log is not the one any more of which something was kept.
var errGoneOn = errors.New("the log has gone on")

// updateCut is a transaction that cuts the log of a run, and of its children. What is kept of them takes a while to read, and nobody else can write during a transaction. So
// it is read before, and again if a log has gone on meanwhile. rest are entries that are not in the run's log yet.
func (r *Runs) updateCut(ctx context.Context, update func(context.Context, func(*sqlite.Conn) error) error, id int64, rest []byte, write func(*sqlite.Conn, cuts) error) error {
	entries, err := readBatch(rest)
	if err != nil {
		return err
	}
	for err = errGoneOn; errors.Is(err, errGoneOn); {
		var k cuts
		if k, err = r.cuts(ctx, id, entries); err == nil {
			err = update(ctx, func(c *sqlite.Conn) error { return write(c, k) })
		}
	}
	return err
}

// cuts reads what is kept of the log of a run, and of those of its children that nobody works on. A run that is not in the file has none.
func (r *Runs) cuts(ctx context.Context, id int64, rest [][]byte) (cuts, error) {
	k := cuts{}
	for ids := []int64{id}; len(ids) > 0; ids = ids[1:] {
		var e ending
		var children []int64
		if err := r.db.View(ctx, func(c *sqlite.Conn) error {
			list, err := runsWhere(ctx, c, `WHERE id = ?`, ids[0])
			if err != nil || len(list) == 0 {
				return err
			}
			if ids[0] != id {
				e, err = r.ending(ctx, c, list[0], nil)
				return err
			}
			const query = `SELECT id FROM run WHERE parent = ? AND state NOT IN ('running', 'done', 'failed', 'cancelled') AND EXISTS (SELECT 1 FROM log WHERE log.run = run.id)`
			if children, err = idsOf(ctx, c, query, id); err == nil {
				e, err = r.ending(ctx, c, list[0], rest)
			}
			return err
		}); err != nil {
			return nil, err
		}
		if e.name == "" {
			continue
		}
		kept, err := r.cut(e)
		if err != nil {
			return nil, err
		}
		k[ids[0]] = kept
		ids = append(ids, children...)
	}
	return k, nil
}

// cut makes what is kept of a log.
func (r *Runs) cut(e ending) (cut, error) {
	k := cut{sealed: e.sealed, head: e.head}
	_, h, damage := r.latest(e)
	if damage != nil {
		r.log.Warn("not all operations of a run are kept", "run", e.name, "error", damage)
	}
	for len(h.Operations) > 0 {
		text, err := json.Marshal(h)
		if err != nil {
			return k, fmt.Errorf("keep the operations of run %s: %w", e.name, err)
		}
		if len(text) <= keptText {
			k.body = r.sealer.seal(historyPlace(e.name, e.n), text)
			break
		}
		h.Operations = h.Operations[len(h.Operations)/4+1:]
	}
	return k, nil
}

// keepHistory writes down what is kept of a log that is about to be cut. It fails with errGoneOn if there is more by now.
func (r *Runs) keepHistory(ctx context.Context, c *sqlite.Conn, id int64, k cuts) error {
	var now []byte
	var more bool
	if err := c.Row(ctx, `SELECT head, EXISTS (SELECT 1 FROM log WHERE log.run = run.id) FROM run WHERE id = ?`, id).Scan(&now, &more); err != nil {
		return err
	}
	one, ok := k[id]
	switch {
	case ok && bytes.Equal(one.sealed, now):
	case more || ok:
		return errGoneOn
	}
	if one.body == nil { // what was kept when the log was cut last still is
		return nil
	}
	_, err := c.Exec(ctx, `INSERT OR REPLACE INTO history VALUES (?, ?)`, id, one.body)
	return err
}

// latest reads the last operations of a run: from what is kept of its log so far, and from the end of the log. It unpacks at most tailBytes of that, and reads at most
// KeptOperations. With damage, it returns what can be read.
func (r *Runs) latest(e ending) (took cost, h history, damage error) {
	if h, damage = r.openHistory(e.name, e.at, e.history); damage != nil {
		h = history{}
	}
	s := &scan{runs: r, function: e.function, short: true}
	s.attempt = cmp.Or(e.head.attempt, h.Attempt, 1) // it is 0 if it cannot be read
	whole := len(e.batches) == 0 || e.batches[0].n == e.at+1
	var wrong error
	after := e.after
	packed := make([][]byte, 0, len(e.batches))
	for _, b := range e.batches {
		text, err := r.sealer.decrypt(place{run: e.name, kind: "log", n: b.n, after: after}, b.body)
		if wrong = err; err != nil {
			break
		}
		packed, after = append(packed, text), tag(b.body)
	}
	var parts []part // the last first
	left, last := tailBytes, e.head.operations
	if wrong == nil && len(e.rest) > 0 {
		size := 0
		for _, entry := range e.rest {
			size += len(entry)
		}
		if size <= left {
			left -= size
			parts = append(parts, part{r.now(), e.rest})
		} else {
			last -= begins(e.function, e.rest)
		}
	}
	for _, p := range slices.Backward(packed) {
		if left -= unpackedSize(p); left < 0 {
			whole = false
			break
		}
		one, err := s.unpack(p)
		if err != nil { // what comes after it is not read
			wrong, parts = err, nil
			continue
		}
		parts = append(parts, one)
	}
	for _, p := range parts {
		s.skip += begins(s.function, p.entries)
	}
	s.skip -= min(s.skip, KeptOperations)
	if whole && h.Attempt == s.attempt {
		s.number = h.Count
	}
	for _, p := range slices.Backward(parts) {
		if err := s.part(p); err != nil {
			wrong = err
			break
		}
	}
	switch {
	case whole || s.function:
	case wrong != nil: // nobody knows which these are
		s.list = nil
	default: // counted from the end
		for i := range s.list {
			s.list[i].Number = last - min(last, uint64(len(s.list)-1-i))
		}
	}
	h.Operations = append(h.Operations, s.list...)
	h.Operations = h.Operations[max(0, len(h.Operations)-KeptOperations):]
	h.Attempt, h.Count = s.attempt, e.head.operations
	return s.cost, h, cmp.Or(damage, wrong)
}

type sealedBatch struct {
	n    int64
	body []byte
}

// tail reads the last batches of a log, and the tag of what is before them.
func (r *Runs) tail(ctx context.Context, c *sqlite.Conn, id int64) (batches []sealedBatch, after []byte, err error) {
	size := 0
	for one, err := range c.Rows(ctx, `SELECT n, length(body), iif(length(body) <= ?, body, substr(body, -?)) FROM log WHERE run = ? ORDER BY n DESC LIMIT ?`, tailBytes, tagSize, id, KeptOperations+1) {
		if err != nil {
			return nil, nil, err
		}
		var b sealedBatch
		var length int
		if err := one.Scan(&b.n, &length, &b.body); err != nil {
			return nil, nil, err
		}
		if size += length; size > tailBytes || len(batches) == KeptOperations {
			after = tag(b.body)
			break
		}
		batches = append([]sealedBatch{b}, batches...)
	}
	if after != nil {
		return batches, after, nil
	}
	const before = `SELECT ifnull((SELECT substr(body, -?1) FROM snapshot WHERE run = ?2), (SELECT substr(spec, -?1) FROM run WHERE id = ?2))`
	err = c.Row(ctx, before, tagSize, id).Scan(&after)
	return batches, after, err
}
