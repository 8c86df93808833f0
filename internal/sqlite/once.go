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
		var last int64
		var text []byte
		switch err := c.Row(ctx, `SELECT sequence, answer FROM once WHERE run = ?`, once.Run).Scan(&last, &text); {
		case errors.Is(err, sql.ErrNoRows):
			if _, err := c.Exec(ctx, `DELETE FROM once WHERE at < ?`, time.Now().Add(-onceKept).Unix()); err != nil {
				return err
			}
		case err != nil:
			return err
		case last == int64(once.Sequence):
			return json.Unmarshal(text, &answer)
		case last > int64(once.Sequence):
			return fmt.Errorf("run %s has come further than this: it belongs to another process", once.Run)
		}
		if answer, err = f(c); err != nil {
			return err
		}
		if text, err = json.Marshal(answer); err != nil {
			return err
		}
		_, err = c.Exec(ctx, `INSERT OR REPLACE INTO once VALUES (?, ?, ?, ?)`, once.Run, int64(once.Sequence), time.Now().Unix(), text)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}
