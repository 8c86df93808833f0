package sqlite

import (
	"context"
	"os"
	"time"
)

const (
	// maxLog is how large the write-ahead log may be after a transaction. SQLite starts the log anew only when no reader needs it, which
	// never happens while readers overlap.
	maxLog = 32 << 20
	// readersTime is how long a transaction waits for readers to empty a log that is too large. Readers that begin meanwhile do not count.
	readersTime = time.Second
)

// emptyLog empties the log if it is too large. Other writers wait meanwhile, readers do not. If a reader takes longer than readersTime,
// the next attempt follows when the log has grown by maxLog again. A failure loses nothing, because the log stays as it is.
func (db *DB) emptyLog(ctx context.Context, c *Conn) {
	info, err := os.Stat(db.file + "-wal")
	switch {
	case err != nil || info.Size() <= maxLog:
		db.leave = 0
		return
	case info.Size() <= db.leave:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readersTime)
	defer cancel()
	var busy, frames, copied int
	err = c.Row(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &copied)
	if err != nil || busy != 0 {
		db.leave = info.Size() + maxLog
	}
}
