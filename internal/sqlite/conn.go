package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"iter"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Conn is one connection to the database, for one goroutine at a time. It prepares each query once and keeps it, so queries must be
// constants. It opens on first use.
type Conn struct {
	db         *sql.DB
	maxRow     int // 0 means SQLite's own limit
	readOnly   bool
	conn       *sql.Conn // nil until first used
	statements map[string]*sql.Stmt
}

func (c *Conn) open(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return errors.Join(err, conn.Close())
	}
	if c.maxRow > 0 {
		if _, err := sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, c.maxRow); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	if c.readOnly {
		if _, err := conn.ExecContext(ctx, `PRAGMA query_only = 1`); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	c.conn, c.statements = conn, map[string]*sql.Stmt{}
	return nil
}

func (c *Conn) close() error {
	if c.conn == nil {
		return nil
	}
	var err error
	for _, s := range c.statements {
		err = errors.Join(err, s.Close())
	}
	err = errors.Join(err, c.conn.Close())
	c.conn, c.statements = nil, nil
	return err
}

// reading begins a transaction that only reads.
const reading = `BEGIN`

// transaction runs f between begin and COMMIT, or ROLLBACK after an error or a panic.
func (c *Conn) transaction(ctx context.Context, begin string, f func(*Conn) error) error {
	// The end of ctx must not decide whether a transaction is committed.
	whole := context.WithoutCancel(ctx)
	done := false
	defer func() {
		if done {
			return
		}
		// After some errors, SQLite has already rolled back, or never began. Then this fails, and opening a fresh connection is the
		// simplest way to a known state.
		if _, e := c.Exec(whole, `ROLLBACK`); e != nil {
			c.discard()
		}
	}()
	waits := ctx
	if begin == reading { // which waits for nothing, so nobody has to watch for the end of ctx
		waits = whole
	}
	if _, err := c.Exec(waits, begin); err != nil {
		return err
	}
	if err := f(c); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := c.Exec(whole, `COMMIT`); err != nil {
		return err
	}
	done = true
	return nil
}

// discard closes the connection for good, whatever state it is in.
func (c *Conn) discard() {
	for _, s := range c.statements {
		_ = s.Close() // SQLite closes the connection's files only after its statements
	}
	_ = c.conn.Raw(func(any) error { return driver.ErrBadConn }) // this error makes database/sql close it
	c.conn, c.statements = nil, nil
}

// Exec runs a statement that returns no rows.
func (c *Conn) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := c.prepare(ctx, query); err != nil {
		return nil, err
	}
	return c.statements[query].ExecContext(ctx, args...)
}

// Row runs a statement that returns at most one row.
func (c *Conn) Row(ctx context.Context, query string, args ...any) Row {
	if err := c.prepare(ctx, query); err != nil {
		return Row{err: err}
	}
	return Row{row: c.statements[query].QueryRowContext(ctx, args...)}
}

// Row is the result of [Conn.Row].
type Row struct {
	row *sql.Row
	err error
}

// Scan copies the row's columns to dest. It returns [sql.ErrNoRows] if there was no row.
func (r Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	return r.row.Scan(dest...)
}

// Rows runs a statement and yields its rows one by one. Scan each row at once and do not keep it. An error ends the sequence and
// comes with a nil row.
func (c *Conn) Rows(ctx context.Context, query string, args ...any) iter.Seq2[*sql.Rows, error] {
	return func(yield func(*sql.Rows, error) bool) {
		if err := c.prepare(ctx, query); err != nil {
			yield(nil, err)
			return
		}
		rows, err := c.statements[query].QueryContext(ctx, args...)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = rows.Close() }() // rows.Err reports the same error
		for rows.Next() {
			if !yield(rows, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// work counts what this connection has ever done.
func (c *Conn) work(ctx context.Context) (w Work, err error) {
	if err := c.Row(ctx, `SELECT total_changes()`).Scan(&w.Rows); err != nil {
		return Work{}, err
	}
	err = c.conn.Raw(func(driven any) error {
		status := driven.(sqlite.DBStatus)
		for _, counter := range []struct {
			op sqlite.DBStatusOp
			to *int64
		}{{sqlite.DBStatusCacheHit, &w.Pages}, {sqlite.DBStatusCacheMiss, &w.Pages}, {sqlite.DBStatusCacheWrite, &w.Written}} {
			n, _, err := status.Status(counter.op, false)
			if err != nil {
				return err
			}
			*counter.to += int64(n)
		}
		return nil
	})
	return w, err
}

// prepare makes sure that query is among the statements.
func (c *Conn) prepare(ctx context.Context, query string) error {
	if c.statements[query] != nil {
		return nil
	}
	s, err := c.conn.PrepareContext(ctx, query) //nolint:sqlclosecheck // kept until the connection closes
	if err != nil {
		return err
	}
	c.statements[query] = s
	return nil
}
