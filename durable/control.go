package durable

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
)

// control is what the call of an active run can say about it: an [abi.Run].
type control struct{ *active }

// failed has an error end the call, which must not take it for an answer, unless the call has ended already.
func (a *active) failed(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return a.journal.fail(err)
}

// Listen implements [abi.Run].
func (a control) Listen(ctx context.Context) error {
	if a.listening.Load() {
		return nil
	}
	// If a loss of power undoes that, it undoes what the call did then. A run that is ended at once listens in vain, and so does one that was lost.
	if err := a.runs.db.UpdateSoon(ctx, func(c *sqlite.Conn) error {
		_, err := a.hold(ctx, c, `UPDATE run SET listens = 1 WHERE cancel = 0 AND id = ? AND owner = ? AND fence = ?`)
		return err
	}); err != nil {
		return a.failed(ctx, err)
	}
	a.listening.Store(true)
	return nil
}

// Stash implements [abi.Run]. It fails with a *[LostError] if the run belongs to another process.
func (a control) Stash(ctx context.Context, value []byte) error {
	once, named := abi.OnceOf(ctx)
	if !named {
		return errors.New("no operation of a run stashes this")
	}
	body := a.runs.sealer.seal(stashPlace(a.name, int64(once.Sequence)), value)
	return a.failed(ctx, a.runs.db.UpdateSoon(ctx, func(c *sqlite.Conn) error { // before an effect that comes later, it is on the disk
		held, err := a.hold(ctx, c, `INSERT INTO stash SELECT id, ?, ? FROM run WHERE id = ? AND owner = ? AND fence = ?
			ON CONFLICT DO UPDATE SET operation = excluded.operation, body = excluded.body WHERE operation <= excluded.operation`, int64(once.Sequence), body)
		if err == nil && !held {
			err = &LostError{a.name}
		}
		return err
	}))
}

// Stashed implements [abi.Run].
func (a control) Stashed(ctx context.Context) (value []byte, ok bool, err error) {
	err = a.runs.db.Read(ctx, func(c *sqlite.Conn) error {
		value, err = a.runs.stashed(ctx, c, a.id, a.name)
		return err
	})
	if errors.Is(err, errDamaged) {
		err = &parkError{err.Error()}
	}
	return value, value != nil, a.failed(ctx, err)
}

func stashPlace(run string, operation int64) place {
	return place{run: run, kind: "stash", n: operation}
}

// stashed reads what a run keeps. It is nil if the run keeps nothing.
func (r *Runs) stashed(ctx context.Context, c *sqlite.Conn, id int64, name string) (json.RawMessage, error) {
	var operation int64
	var body []byte
	switch err := c.Row(ctx, `SELECT operation, body FROM stash WHERE run = ?`, id).Scan(&operation, &body); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	text, err := r.sealer.open(stashPlace(name, operation), body)
	if err != nil {
		return nil, fmt.Errorf("read what run %s keeps: %w", name, err)
	}
	return text, nil
}

// Stashed returns what a run keeps for later attempts, or nil. It fails with an *[UnknownError] if there is no such run.
func (r *Runs) Stashed(ctx context.Context, run string) (value json.RawMessage, err error) {
	err = r.db.View(ctx, func(c *sqlite.Conn) error {
		w, err := findRun(ctx, c, run)
		if err == nil {
			value, err = r.stashed(ctx, c, w.id, w.name)
		}
		return err
	})
	return value, err
}

func forgetStash(ctx context.Context, c *sqlite.Conn, id int64) error {
	_, err := c.Exec(ctx, `DELETE FROM stash WHERE run = ?`, id)
	return err
}

// Stash keeps a value with the run of this ctx, as JSON of at most [abi.MaxStash] bytes, in place of what it kept before. [Recover] returns it, also in later
// attempts. It is a [Step]. Outside of a run, and in a step, it fails with [ErrNotDurable].
func Stash(ctx context.Context, value any) error {
	x, _ := ctx.Value(executionKey{}).(*execution)
	if x == nil {
		return ErrNotDurable
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("stash: %w", err)
	}
	if len(text) > abi.MaxStash {
		return fmt.Errorf("stash: the value has %d bytes of JSON; %d are allowed", len(text), abi.MaxStash)
	}
	once := abi.Once{Run: x.a.name, Sequence: firstOf(x.a.attempt) + uint64(x.next) + 1} // of the step that comes now
	_, err = Step(ctx, "stash", func(ctx context.Context) (bool, error) {
		return true, control{x.a}.Stash(abi.WithOnce(ctx, once), text)
	}, Repeatable)
	return err
}

// Recover returns what the run of this ctx keeps, also from an earlier attempt. It reports false if the run keeps nothing, or null. It is a [Step]. Outside of a run,
// and in a step, it fails with [ErrNotDurable].
func Recover[T any](ctx context.Context) (value T, ok bool, err error) {
	x, _ := ctx.Value(executionKey{}).(*execution)
	if x == nil {
		return value, false, ErrNotDurable
	}
	text, err := Step(ctx, "recover", func(ctx context.Context) (json.RawMessage, error) {
		text, _, err := control{x.a}.Stashed(ctx)
		return text, err
	}, Repeatable)
	if err != nil || string(text) == "null" {
		return value, false, err
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return value, true, fmt.Errorf("what the run keeps: %w", err)
	}
	return value, true, nil
}
