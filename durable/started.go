package durable

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
)

// A started run is one that code started for itself. It is independent of the code, which may wait for its end: then the transaction that ends it writes a message for the
// run of that code, as for a child.

// The limits of started runs.
const (
	// MaxStarted is how many runs may be under way or parked that the same code has started.
	MaxStarted = 100
	// MaxStartedBytes is how many bytes the inputs of these may have.
	MaxStartedBytes = 16 << 20
	// maxAwaited is how many started runs a run may wait for, or not have taken the result of.
	maxAwaited = 1000
	// maxAwaiting is how many runs may wait for a started run: the transaction that ends it tells all of them.
	maxAwaiting = 1000
)

const startedPrefix = "started:"

// startedKey is the key of a run in the file: others with the same name for it have another.
func startedKey(whose, name string) string {
	text, _ := json.Marshal([]string{whose, name}) // it never fails
	return startedPrefix + sha256hex.Of(text)
}

// reach is how somebody reaches a run. The zero value reaches all.
type reach struct {
	whose string   // if not empty, only runs that this code started
	of    *active  // if not nil, the run of whose operation this is
	named abi.Once // that operation
}

// reachOf is how code reaches the runs that it started.
func (r *Runs) reachOf(ctx context.Context, whose string) reach {
	by := reach{whose: whose}
	if a, once, err := r.callerOf(ctx); err == nil {
		by.of, by.named = a, once
	}
	return by
}

// find reads a run.
func (by reach) find(ctx context.Context, c *sqlite.Conn, run string) (row, error) {
	if by.whose == "" {
		return findRun(ctx, c, run)
	}
	return findStarted(ctx, c, by.whose, run)
}

// reached is what an operation did to a run.
type reached struct {
	answer  bool
	started string // the run, if it started one
}

// before returns what the operation did before, if it is made again, and reports false otherwise. The error is a *[LostError] if a later one was made.
func (by reach) before(ctx context.Context, c *sqlite.Conn) (did reached, ok bool, err error) {
	if by.of == nil {
		return did, false, nil
	}
	var operation int64
	switch err := c.Row(ctx, `SELECT operation, answer, ifnull(started, '') FROM reached WHERE run = ?`, by.of.id).Scan(&operation, &did.answer, &did.started); {
	case errors.Is(err, sql.ErrNoRows):
		return reached{}, false, nil
	case err != nil:
		return reached{}, false, err
	case operation > int64(by.named.Sequence):
		return reached{}, false, &LostError{by.of.name}
	}
	if operation < int64(by.named.Sequence) {
		return reached{}, false, nil
	}
	return did, true, nil
}

// once does something, unless the operation has done so before: then it returns the same. The error is a *[LostError] if the run of the operation belongs to another process.
func (by reach) once(ctx context.Context, c *sqlite.Conn, do func() (reached, error)) (reached, error) {
	if by.of == nil {
		return do()
	}
	if _, err := by.of.held(ctx, c); err != nil {
		return reached{}, err
	}
	did, again, err := by.before(ctx, c)
	if err != nil || again {
		return did, err
	}
	if did, err = do(); err != nil {
		return reached{}, err
	}
	_, err = c.Exec(ctx, `INSERT OR REPLACE INTO reached (run, operation, answer, started) VALUES (?, ?, ?, ?)`, by.of.id, int64(by.named.Sequence), did.answer, nullable(did.started))
	return did, err
}

// forCode makes an error what code is told that did something to a run which it started. What the code must not take for an answer ends its run.
func (by reach) forCode(ctx context.Context, err error) error {
	var full *FullError
	var wrong *MessageError
	var over *EndedError
	var crowded *CrowdedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*UnknownError)):
		return abi.Errorf(abi.CodeNotFound, "no such run, or it is not kept any more")
	case errors.As(err, &over):
		return abi.Errorf(abi.CodeUnavailable, "%v", over)
	case errors.As(err, &full):
		return abi.Errorf(abi.CodeExhausted, "%v", full)
	case errors.As(err, &crowded):
		return abi.Errorf(abi.CodeExhausted, "%v", crowded)
	case errors.As(err, &wrong):
		return abi.Errorf(abi.CodeInvalid, "%v", wrong)
	case by.of == nil, errors.As(err, new(*abi.Error)):
		return err
	default:
		return by.of.failed(ctx, err)
	}
}

// roomStarted fails if the code has started as many runs as it may.
func (w writtenRun) roomStarted(ctx context.Context, c *sqlite.Conn) error {
	var n, bytes int64
	const live = `SELECT count(*), ifnull(sum(length(spec)), 0) FROM run WHERE whose = ? AND state IN ('ready', 'running', 'asleep', 'parked')`
	switch err := c.Row(ctx, live, w.whose).Scan(&n, &bytes); {
	case err != nil:
		return err
	case n >= MaxStarted:
		return &CrowdedError{MaxStarted}
	case bytes+int64(len(w.spec.Input)) > MaxStartedBytes:
		return abi.Errorf(abi.CodeExhausted, "limit reached: %s of inputs of started runs that have not ended", printable.Size(MaxStartedBytes))
	}
	return nil
}

// StartFor is Start for code, which gets an *[abi.Error] of what is wrong with it. whose names the code, and name, if not empty, is the key among its runs: with another input, the error is an
// [abi.ErrInvalid]. spec is called if neither the name nor the operation of ctx finds a run; it sets neither Key nor Whose nor Input. The error is an [abi.ErrExhausted] beyond [MaxStarted]
// and [MaxStartedBytes]. If ctx is of an operation of a run of this store, that starts one run, however often it is repeated, and the error is a *[LostError] if that belongs to another process.
func (r *Runs) StartFor(ctx context.Context, whose, name string, input []byte, spec func() (Spec, error)) (run string, err error) {
	by := r.reachOf(ctx, whose)
	var refused error // is the caller's
	run, err = r.startFor(ctx, by, name, input, func() (s Spec, err error) {
		s, refused = spec()
		return s, refused
	})
	if refused != nil {
		return "", refused
	}
	return run, by.forCode(ctx, err)
}

func (r *Runs) startFor(ctx context.Context, by reach, name string, input []byte, spec func() (Spec, error)) (run string, err error) {
	var compact bytes.Buffer
	if json.Compact(&compact, input) != nil {
		return "", abi.Errorf(abi.CodeInvalid, "the input of a run is not JSON")
	}
	same := func(found row) (string, error) {
		i, err := r.info(found)
		if err == nil && string(i.Input) != compact.String() {
			err = abi.Errorf(abi.CodeInvalid, "the key belongs to run %s, which has another input; use another key", i.Name)
		}
		return i.Name, err
	}
	key := ""
	if name != "" {
		key = startedKey(by.whose, name)
	}
	var found row
	if err := r.db.Read(ctx, func(c *sqlite.Conn) error {
		did, _, err := by.before(ctx, c)
		if run = did.started; err != nil || run != "" || key == "" {
			return err
		}
		err = c.Row(ctx, `SELECT `+rowColumns+` FROM run WHERE key = ?`, key).Scan(found.fields()...)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}); err != nil || run != "" {
		return run, err
	}
	if found.id != 0 {
		return same(found)
	}
	s, err := spec()
	if err != nil {
		return "", err
	}
	s.Key, s.Whose, s.Input = "", by.whose, input
	w, err := r.written(s)
	if err != nil {
		return "", abi.Errorf(abi.CodeInvalid, "%v", err)
	}
	w.key, w.started = key, true
	mine := r.reserve()
	defer mine.free()
	var did reached
	began := false
	if err := r.updateWith(ctx, w, func(c *sqlite.Conn) (err error) {
		began = false
		did, err = by.once(ctx, c, func() (reached, error) {
			var existed bool
			if found, existed, err = r.insert(ctx, c, w, mine); err != nil {
				return reached{}, err
			}
			if existed {
				_, err = same(found)
			}
			began = !existed
			return reached{started: found.name}, err
		})
		return err
	}); err != nil {
		return "", err
	}
	switch {
	case !began:
	case mine != nil:
		found.parts = &parts{}
		r.adopt(found) //nolint:contextcheck // it ends with the store
	default:
		r.wake()
	}
	return did.started, nil
}

// findStarted reads a run that this code started.
func findStarted(ctx context.Context, c *sqlite.Conn, whose, run string) (w row, err error) {
	err = c.Row(ctx, `SELECT `+rowColumns+` FROM run WHERE name = ? AND whose = ? AND whose <> ''`, run, digestOf(whose)).Scan(w.fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		err = &UnknownError{run}
	}
	return w, err
}

// AwaitFor has the run of whose operation ctx is get a message in [abi.RunMailbox] once a run has ended that this code started. It reports true, and writes none, if that has ended, or
// if there is no such run. The error is an [abi.ErrExhausted] if the run waits for too many, or too many wait for that one.
func (r *Runs) AwaitFor(ctx context.Context, whose, run string) (over bool, err error) {
	m, ok := abi.MailboxesOf(ctx).(mailboxes) // a pollable that is made again belongs to no operation
	if !ok || m.runs != r {
		return false, errors.New("a run of another store, or none, waits for a run")
	}
	a := m.active
	err = r.db.Update(ctx, func(c *sqlite.Conn) error {
		over = false
		if _, err := a.held(ctx, c); err != nil {
			return err
		}
		w, err := findStarted(ctx, c, whose, run)
		switch {
		case errors.As(err, new(*UnknownError)), err == nil && w.state.Final() && w.state != Parked:
			over = true
			return nil
		case err != nil:
			return err
		}
		var n, others int
		const all = `SELECT (SELECT count(*) FROM awaited WHERE waiter = ?1 AND run <> ?2) + (SELECT count(*) FROM message WHERE run = ?1 AND taken IS NULL AND mailbox GLOB 'run:*'),
			(SELECT count(*) FROM awaited WHERE run = ?2 AND waiter <> ?1)`
		if err := c.Row(ctx, all, a.id, w.id).Scan(&n, &others); err != nil {
			return err
		}
		switch {
		case n >= maxAwaited:
			return abi.Errorf(abi.CodeExhausted, "limit reached: %d runs that one run waits for, or has not taken the result of", maxAwaited)
		case others >= maxAwaiting:
			return abi.Errorf(abi.CodeExhausted, "limit reached: %d runs that wait for one run", maxAwaiting)
		}
		// A message of before somebody had the run begin again says nothing any more. It would wake the waiting one for ever.
		if _, err := c.Exec(ctx, `DELETE FROM message WHERE run = ? AND mailbox = ? AND taken IS NULL`, a.id, abi.RunMailbox(w.name)); err != nil {
			return err
		}
		_, err = c.Exec(ctx, `INSERT OR IGNORE INTO awaited VALUES (?, ?)`, w.id, a.id)
		return err
	})
	if err == nil && !over {
		r.wake() // this process may work only on what its runs wait for
	}
	return over, reach{of: a}.forCode(ctx, err)
}

// WaitFor waits until a run has ended, or is parked, that this code started. The error is an [abi.ErrNotFound] if there is no such run.
func (r *Runs) WaitFor(ctx context.Context, whose, run string) error {
	by := r.reachOf(ctx, whose)
	err := r.db.Read(ctx, func(c *sqlite.Conn) error {
		_, err := by.find(ctx, c, run)
		return err
	})
	if err == nil {
		_, err = r.Wait(ctx, run)
	}
	return by.forCode(ctx, err)
}

// StatusFor returns where a run is that this code started. The error is an [abi.ErrNotFound] if there is no such run.
func (r *Runs) StatusFor(ctx context.Context, whose, run string) (result Result, err error) {
	by := r.reachOf(ctx, whose)
	if err = r.db.Read(ctx, func(c *sqlite.Conn) error {
		_, err := by.find(ctx, c, run)
		return err
	}); err == nil {
		result, err = r.Result(ctx, run)
	}
	return result, by.forCode(ctx, err)
}

// ResultFor returns how a run ended that this code started. It reports false if the run has not ended. The error is an [abi.ErrNotFound] if there is no such run, and an
// [abi.ErrUnavailable] if the run is parked and ctx is of no run, which could wait until somebody retries it.
func (r *Runs) ResultFor(ctx context.Context, whose, run string) (result Result, ok bool, err error) {
	result, err = r.StatusFor(ctx, whose, run)
	by := r.reachOf(ctx, whose)
	switch {
	case err != nil:
		return Result{}, false, err
	case result.State == Parked && by.of == nil:
		return Result{}, false, abi.Errorf(abi.CodeUnavailable, "run %s is parked, and waits for a person: stile runs show %[1]s", run)
	case !result.State.Final(), result.State == Parked:
		return Result{}, false, nil
	case by.of != nil: // what the message said is known
		err = r.db.UpdateSoon(ctx, func(c *sqlite.Conn) error {
			if _, err := by.of.held(ctx, c); err != nil {
				return err
			}
			_, err := c.Exec(ctx, `DELETE FROM message WHERE run = ? AND mailbox = ?`, by.of.id, abi.RunMailbox(run))
			return err
		})
	}
	return result, err == nil, by.forCode(ctx, err)
}

// SignalFor is [Runs.Signal] for a run that this code started. If ctx is of an operation of a run, the operation delivers one message, however often it is repeated. The error is an
// [abi.ErrNotFound] if there is no such run, an [abi.ErrUnavailable] if it has ended, an [abi.ErrExhausted] if it has no room, and an [abi.ErrInvalid] for a message that no run can receive.
func (r *Runs) SignalFor(ctx context.Context, whose, run, mailbox string, m Message) (delivered bool, err error) {
	by := r.reachOf(ctx, whose)
	delivered, err = r.signal(ctx, by, run, mailbox, m)
	return delivered, by.forCode(ctx, err)
}

// CancelFor is [Runs.Cancel] for a run that this code started. If ctx is of an operation of a run, the operation does so once. The error is an [abi.ErrNotFound] if there is no such run.
func (r *Runs) CancelFor(ctx context.Context, whose, run string) error {
	by := r.reachOf(ctx, whose)
	_, err := r.cancelAs(ctx, by, run, Grace)
	return by.forCode(ctx, err)
}

// tellWaiting writes down for the runs that wait for the end of a run that it has ended.
func (r *Runs) tellWaiting(ctx context.Context, c *sqlite.Conn, w row) error {
	var waiting []row // of which only this is read: their inputs can be large
	for one, err := range c.Rows(ctx, `SELECT id, name FROM run WHERE id IN (SELECT waiter FROM awaited WHERE run = ?) AND state NOT IN ('done', 'failed', 'cancelled')`, w.id) {
		if err != nil {
			return err
		}
		var waiter row
		if err := one.Scan(&waiter.id, &waiter.name); err != nil {
			return err
		}
		waiting = append(waiting, waiter)
	}
	for _, waiter := range waiting {
		if err := r.post(ctx, c, waiter, abi.RunMailbox(w.name), sql.NullString{}, letter{Data: json.RawMessage("null"), From: "the end of run " + w.name, Received: r.now().UnixMilli()}); err != nil {
			return err
		}
	}
	_, err := c.Exec(ctx, `DELETE FROM awaited WHERE run = ?`, w.id)
	return err
}
