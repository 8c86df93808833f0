package durable

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

// A child is a run that an operation of another run, its parent, has started and whose result the parent takes. Its key has the operation, so that a
// repetition finds it. When it ends, the same transaction writes a message for its parent. What the message announces is in the child.

// The limits of children.
const (
	// MaxChildren is how many children of a run may be under way, or have a result that the run has not taken.
	MaxChildren = 100
	// MaxDescendants is how many there may be of a run, its children's children included, and so on.
	MaxDescendants = 1000
	// MaxDescendantBytes is how many bytes the inputs and results of these may have.
	MaxDescendantBytes = 16 << 20
	// keptChildren is how many more children of a run are kept, whose results it has taken.
	keptChildren = 20
)

const childPrefix = "child:"

func childKey(parent string, sequence uint64) string {
	return fmt.Sprintf("%s%s:%d", childPrefix, parent, sequence)
}

// parentOf returns what runs of which operations are children of.
func parentOf(key string) (parent, mailbox string, ok bool) {
	rest, ok := strings.CutPrefix(key, childPrefix)
	if !ok {
		return "", "", false
	}
	parent, sequence, ok := strings.Cut(rest, ":")
	return parent, childPrefix + sequence, ok
}

// ChildError reports that a child cannot be removed: it goes with its parent.
type ChildError struct{ Run, Parent string }

func (e *ChildError) Error() string {
	return fmt.Sprintf("run %s is a call that run %s made; it is removed with that one", e.Run, e.Parent)
}

// RefusedError, as an error of [Options.Request], ends a run that another one called or started. Without it, the run would be parked, and the other would wait for it. Its
// text is how the run ended.
type RefusedError struct {
	// Caller is what the other one gets.
	Caller *abi.Error
	Reason string
}

func (e *RefusedError) Error() string { return e.Reason }

// callerOf returns the active run of whose operation ctx is.
func (r *Runs) callerOf(ctx context.Context) (*active, abi.Once, error) {
	m, ok := abi.MailboxesOf(ctx).(mailboxes)
	once, named := abi.OnceOf(ctx)
	if !ok || !named || m.runs != r {
		return nil, once, errors.New("a run of another store, or none, starts or takes a child")
	}
	return m.active, once, nil
}

// held reads a run that belongs to this process. The error is a *[LostError] if it does not any more.
func (a *active) held(ctx context.Context, c *sqlite.Conn) (w row, err error) {
	err = c.Row(ctx, `SELECT `+rowColumns+` FROM run WHERE id = ? AND owner = ? AND fence = ?`, a.id, a.runs.owner, a.fence).Scan(w.fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		err = &LostError{a.name}
	}
	return w, err
}

// StartChild has the run of whose operation ctx is start a child, unless the operation has started one before. Otherwise spec says what it is. The child has no key, deadline, policy
// of retries or owner of its own. The error is an [abi.ErrExhausted] if there are too many, and a *[LostError] if the run belongs to another process.
func (r *Runs) StartChild(ctx context.Context, spec func() (Spec, error)) error {
	a, once, err := r.callerOf(ctx)
	if err != nil {
		return err
	}
	key := childKey(once.Run, once.Sequence)
	var there bool
	if err := r.db.Read(ctx, func(c *sqlite.Conn) error {
		return c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM run WHERE key = ?)`, key).Scan(&there)
	}); err != nil || there {
		return err
	}
	s, err := spec()
	if err != nil {
		return err
	}
	w, err := r.written(s)
	if err != nil {
		return err
	}
	w.key, w.spec.Parent, w.spec.Sequence, w.whose = key, once.Run, once.Sequence, ""
	mine := r.reserve()
	defer mine.free()
	var child row
	if err := r.updateWith(ctx, w, func(c *sqlite.Conn) error {
		parent, err := a.held(ctx, c)
		if err != nil {
			return err
		}
		if err := forgetTaken(ctx, c, parent.id, once.Sequence); err != nil {
			return err
		}
		if err := roomForChild(ctx, c, parent, w); err != nil {
			return err
		}
		w.parent = &parent
		child, there, err = r.insert(ctx, c, w, mine)
		return err
	}); err != nil {
		return err
	}
	if mine != nil && !there {
		child.parts = &parts{}
		r.adopt(child) //nolint:contextcheck // it ends with the store
	} else {
		r.wake()
	}
	return nil
}

// forgetTaken deletes children whose results the run has taken in earlier operations. The log has these: the next operation with an effect begins after that.
func forgetTaken(ctx context.Context, c *sqlite.Conn, parent int64, sequence uint64) error {
	old, err := idsOf(ctx, c, `SELECT id FROM run WHERE parent = ? AND taken < ? AND state IN ('done', 'failed', 'cancelled') ORDER BY taken DESC LIMIT -1 OFFSET ?`, parent, int64(sequence), keptChildren)
	if err != nil || len(old) == 0 {
		return err
	}
	for _, id := range old {
		if err := forget(ctx, c, id); err != nil {
			return err
		}
	}
	return dropCode(ctx, c)
}

// roomForChild fails with an [abi.ErrExhausted] if a run cannot have another child.
func roomForChild(ctx context.Context, c *sqlite.Conn, parent row, w writtenRun) error {
	const above = `WITH RECURSIVE above (id) AS (VALUES (?) UNION ALL SELECT parent FROM run JOIN above USING (id) WHERE parent IS NOT NULL LIMIT ?) SELECT count(*) FROM above`
	var depth, children, all, bytes int64
	if err := c.Row(ctx, above, parent.id, host.MaxNesting+1).Scan(&depth); err != nil {
		return err
	}
	if err := c.Row(ctx, `SELECT count(*) FROM run WHERE parent = ? AND taken IS NULL`, parent.id).Scan(&children); err != nil {
		return err
	}
	if err := c.Row(ctx, descendants, parent.top()).Scan(&all, &bytes); err != nil {
		return err
	}
	switch {
	case depth > host.MaxNesting:
		return abi.Errorf(abi.CodeExhausted, "limit reached: %d calls of tools in one another", host.MaxNesting)
	case children >= MaxChildren:
		return abi.Errorf(abi.CodeExhausted, "limit reached: %d calls of tools whose results the run has not taken", MaxChildren)
	case all >= MaxDescendants:
		return abi.Errorf(abi.CodeExhausted, "limit reached: %d calls of tools of one run, through others included", MaxDescendants)
	case bytes+int64(len(w.spec.Input)) > MaxDescendantBytes:
		return errHeld()
	}
	return nil
}

// descendants counts the descendants of a run that are under way or have a result that nobody has taken, and the bytes of these.
const descendants = `SELECT count(*), ifnull(sum(length(spec) + ifnull((SELECT length(body) FROM outcome WHERE run = id), 0)), 0) FROM run
	WHERE root = ? AND (taken IS NULL OR state NOT IN ('done', 'failed', 'cancelled'))`

// errHeld is what a caller gets of a child for whose input or result there is no room.
func errHeld() *abi.Error {
	return abi.Errorf(abi.CodeExhausted, "limit reached: %s of inputs and results of the tools that one run calls at a time", printable.Size(MaxDescendantBytes))
}

// top is the id of the run that is no child, among this one and those that it is a child of.
func (w row) top() int64 {
	if w.root.Valid {
		return w.root.Int64
	}
	return w.id
}

// TakeChild returns how the child ended that an operation of a run has started. ctx is of another operation of this run, which takes the result. It reports false as
// long as the child has not ended. It may be done again.
func (r *Runs) TakeChild(ctx context.Context, sequence uint64) (result Result, ok bool, err error) {
	a, once, err := r.callerOf(ctx)
	if err != nil {
		return result, false, err
	}
	var w row
	if err := r.db.Update(ctx, func(c *sqlite.Conn) error {
		if _, err := a.held(ctx, c); err != nil {
			return err
		}
		err := c.Row(ctx, `SELECT `+rowColumns+` FROM run WHERE key = ?`, childKey(once.Run, sequence)).Scan(w.fields()...)
		if ok = err == nil && w.state.Final() && w.state != Parked; !ok {
			return err
		}
		_, err = c.Exec(ctx, `UPDATE run SET taken = ? WHERE id = ? AND taken IS NULL`, int64(once.Sequence), w.id)
		return err
	}); err != nil || !ok {
		if errors.Is(err, sql.ErrNoRows) {
			err = abi.Errorf(abi.CodeRevoked, "the result of the call was taken, and is not kept any more")
		}
		return result, false, err
	}
	if result, err = r.Result(ctx, w.name); err != nil {
		return result, false, err
	}
	if s, err := r.spec(w); err != nil || s.Parent != once.Run || s.Sequence != sequence {
		return result, false, fmt.Errorf("run %s: what it called %w", once.Run, errDamaged)
	}
	return result, true, nil
}

// Failure returns what a parent is told of a child that it called by this name: nil if it has a result, and otherwise an *[abi.Error], as [Authority.Caller] made it.
func (r Result) Failure(name string) error {
	told := r.ended.Caller
	switch err := r.Err(); {
	case err == nil:
		return nil
	case told != nil, r.State != Cancelled && errors.As(host.ForCaller(name, err), &told):
		return told
	case r.State == Cancelled:
		return abi.Errorf(abi.CodeUnavailable, "%s: its run was cancelled", name)
	default:
		return abi.Errorf(abi.CodeUnavailable, "%s: %v", name, err)
	}
}

// maxTold is the most bytes of what a parent is told of a failure.
const maxTold = 16 << 10

// told is what is kept of an error for a parent.
func told(e *abi.Error) *abi.Error { return toldWithin(e, maxTold) }

func toldWithin(e *abi.Error, most int) *abi.Error {
	if e == nil {
		return nil
	}
	t := *e
	t.Detail = printable.Short(e.Detail, most)
	if e.Denial != nil {
		d := *e.Denial
		d.Wants = nil
		if len(d.Remedy) > most { // part of a remedy is useless
			d.Remedy = ""
		}
		d.Operation, d.Reason = printable.Short(d.Operation, most), printable.Short(d.Reason, most)
		t.Denial = &d
	}
	return &t
}

// bounded returns how a child ended: without its result, and with a short error, if there is no room for these bytes.
func bounded(ctx context.Context, c *sqlite.Conn, w row, s State, e ended, size int) (State, ended, error) {
	var all, bytes int64
	if err := c.Row(ctx, descendants, w.top()).Scan(&all, &bytes); err != nil || size <= shortError || bytes+int64(size) <= MaxDescendantBytes {
		return s, e, err
	}
	short := ended{Outcome: host.Outcome{Kind: e.Outcome.Kind, Limit: e.Outcome.Limit, Value: e.Outcome.Value, Message: printable.Short(e.Outcome.Message, shortError)}, Usage: host.Usage{CPU: e.Usage.CPU}}
	if s == Done {
		why := errHeld()
		short.Outcome, short.Caller = host.Outcome{Kind: "limit", Limit: "bytes held for tools", Value: printable.Size(MaxDescendantBytes), Message: why.Detail}, why
		return Failed, short, nil
	}
	short.Caller = toldWithin(e.Caller, shortError)
	return s, short, nil
}

// shortError is how many bytes of an error there is always room for.
const shortError = 256

// tellParent writes down for the parent of a run that it has ended. If nobody will ask, the run is deleted.
func (r *Runs) tellParent(ctx context.Context, c *sqlite.Conn, w row) error {
	if !w.parent.Valid {
		return nil
	}
	var parent row
	var taken bool // by now
	err := c.Row(ctx, `SELECT `+rowColumns+`, EXISTS (SELECT 1 FROM run WHERE id = ? AND taken IS NOT NULL) FROM run WHERE id = ?`, w.id, w.parent.Int64).Scan(append(parent.fields(), &taken)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // it is being removed, and its children after it
	}
	if err != nil {
		return err
	}
	over := parent.state.Final() && parent.state != Parked
	switch _, mailbox, ok := parentOf(w.key.String); {
	case over && !parent.parent.Valid: // it is kept with its children
		return nil
	case over || taken:
		return forget(ctx, c, w.id)
	case !ok:
		return fmt.Errorf("the key of run %s %w", w.name, errDamaged)
	default:
		return r.post(ctx, c, parent, mailbox, sql.NullString{}, letter{Data: json.RawMessage("null"), From: "the end of run " + w.name, Received: r.now().UnixMilli()})
	}
}

// endChildren cancels the children of a run, or of its attempt, that has ended. With drop, they are deleted.
func (r *Runs) endChildren(ctx context.Context, c *sqlite.Conn, id int64, drop bool, k cuts) error {
	children, err := runsWhere(ctx, c, `WHERE parent = ?`, id)
	if err != nil {
		return err
	}
	for _, w := range children {
		switch {
		case w.state == Running: // its process ends it
			_, err = c.Exec(ctx, `UPDATE run SET cancel = 1, listens = 0, taken = ifnull(taken, 0) WHERE id = ?`, w.id)
		case drop:
			err = forget(ctx, c, w.id)
		case !w.state.Final() || w.state == Parked:
			err = r.finish(ctx, c, w.name, Cancelled, ended{Outcome: host.Outcome{Kind: "cancelled", Message: errParentEnded}}, k)
		}
		if err != nil {
			return err
		}
	}
	if !drop {
		return nil
	}
	_, err = c.Exec(ctx, `DELETE FROM message WHERE run = ? AND mailbox GLOB ?`, id, childPrefix+"*")
	return err
}

// errParentEnded is why a child was cancelled.
const errParentEnded = "the run that called it has ended"

// Children returns the children of a run that are kept, the newest first: those under way, those whose results it has not taken, and the last of the others. It fails with an
// *[UnknownError] if there is no such run.
func (r *Runs) Children(ctx context.Context, name string) ([]Info, error) {
	return r.listed(ctx, func(c *sqlite.Conn) (string, []any, error) {
		w, err := findRun(ctx, c, name)
		return `WHERE parent = ? ORDER BY id DESC`, []any{w.id}, err
	})
}

// block looks for a parked run without which a run does not go on: a descendant, of whose ways to it each run has yet to take the result of the next, or a started run that it waits for, or one of these does.
func (w *row) block(ctx context.Context, c *sqlite.Conn) error {
	if w.state.Final() {
		return nil
	}
	// With UNION, a file in which runs are their own ancestors does not go on for ever.
	const below = `WITH RECURSIVE below (id) AS (VALUES (?) UNION SELECT run.id FROM run JOIN below ON run.parent = below.id WHERE taken IS NULL UNION SELECT awaited.run FROM awaited JOIN below ON awaited.waiter = below.id)
		SELECT name, reason FROM run JOIN below USING (id) WHERE state = 'parked' ORDER BY id LIMIT 1`
	var b Blocked
	err := c.Row(ctx, below, w.id).Scan(&b.Run, &b.Reason)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil:
		w.blocked = &b
	}
	return err
}
