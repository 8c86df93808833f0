package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stilehost/stile/abi"
)

// OnceTable is a migration for stores whose changes are made with [Once]. It has the last change of each durable run.
const OnceTable = `
CREATE TABLE once (
	run      TEXT NOT NULL PRIMARY KEY,
	sequence INTEGER NOT NULL,
	at       INTEGER NOT NULL, -- seconds since 1970
	answer   BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX once_at ON once (at);
`

// onceKept is how long the last change of a run is kept. Runs end earlier.
const onceKept = 400 * 24 * time.Hour

// errLost says that the change comes from a process that has lost its run.
func errLost(run string) error {
	return fmt.Errorf("run %s has come further than this: it belongs to another process", run)
}

// Mark notes in a transaction that the operation of a durable call comes about in it, and its answer, for [Marked]. It fails if a later one has, or this one. Outside of a durable call it
// does nothing.
func Mark(ctx context.Context, c *Conn, answer []byte) error {
	once, durable := abi.OnceOf(ctx)
	if !durable {
		return nil
	}
	whole := context.WithoutCancel(ctx)
	_, came, err := answerOf(whole, c, once)
	if came {
		err = errLost(once.Run)
	}
	if err != nil {
		return err
	}
	return remember(whole, c, once, append([]byte{}, answer...)) // which is not NULL
}

// answerOf returns the answer of an operation that has come about. It fails if a later one has.
func answerOf(ctx context.Context, c *Conn, once abi.Once) (answer []byte, came bool, err error) {
	var last int64
	switch err := c.Row(ctx, `SELECT sequence, answer FROM once WHERE run = ?`, once.Run).Scan(&last, &answer); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, forget(ctx, c)
	case err != nil:
		return nil, false, err
	case last > int64(once.Sequence):
		return nil, false, errLost(once.Run)
	}
	return answer, last == int64(once.Sequence), nil
}

// Marked returns the answer of the operation of a durable call, if [Mark] has noted it.
func Marked(ctx context.Context, db *DB) (answer []byte, is bool, err error) {
	once, durable := abi.OnceOf(ctx)
	if !durable {
		return nil, false, nil
	}
	err = db.Read(ctx, func(c *Conn) error {
		return c.Row(ctx, `SELECT answer FROM once WHERE run = ? AND sequence = ?`, once.Run, int64(once.Sequence)).Scan(&answer)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err == nil { // whoever goes on from that must not lose it
		err = db.onDisk()
	}
	return answer, err == nil, err
}

// forget deletes what runs have left that ended long ago.
func forget(ctx context.Context, c *Conn) error {
	_, err := c.Exec(ctx, `DELETE FROM once WHERE at < ?`, time.Now().Add(-onceKept).Unix())
	return err
}

func remember(ctx context.Context, c *Conn, o abi.Once, answer []byte) error {
	_, err := c.Exec(ctx, `INSERT OR REPLACE INTO once VALUES (?, ?, ?, ?)`, o.Run, int64(o.Sequence), time.Now().Unix(), answer)
	return err
}

// Once is [DB.Update] for a change that an operation asks for. The operation of a durable call has a name, [abi.OnceOf], and its change comes about
// once: when the operation is repeated, because the process ended before anybody knew the answer, it gets the first answer. A process that has lost
// its run cannot make a change that comes after one of the new owner.
func Once[T any](ctx context.Context, db *DB, f func(*Conn) (T, error)) (answer T, err error) {
	once, durable := abi.OnceOf(ctx)
	err = db.Update(ctx, func(c *Conn) error {
		if !durable {
			answer, err = f(c)
			return err
		}
		text, came, err := answerOf(ctx, c, once)
		if err != nil {
			return err
		}
		if came {
			return json.Unmarshal(text, &answer)
		}
		if answer, err = f(c); err != nil {
			return err
		}
		if text, err = json.Marshal(answer); err != nil {
			return err
		}
		return remember(ctx, c, once, text)
	})
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}
