// Package sqlite keeps durable state in a SQLite file. Committed transactions survive kill -9 and power loss. Several processes may
// use one file at once. It refuses a file of another kind or from a newer program, and touches only the file and its -wal and -shm
// companions.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/atomicfile"
	"github.com/stilehost/stile/internal/turns"
)

const (
	// Readers is how many reading connections a DB opens at most. Each opens on first use.
	Readers = 4
	// busyTimeout is how long a statement waits for another process to release the file.
	busyTimeout = 10 * time.Second
)

// Schema describes the content of a database file.
type Schema struct {
	// Kind names the content in errors, e.g. "kv store".
	Kind string
	// ID is the file's application_id, which distinguishes this kind of file from every other.
	ID int32
	// Migrations are SQL scripts; the n-th brings version n-1 to version n. A released one never changes.
	Migrations []string
	// Shrinks has the file keep what [DB.Shrink] needs. It is for files that are made from now on.
	Shrinks bool
	// MaxRow is the largest row, value or statement in bytes. It bounds the memory that a row written by another program can take.
	// Default: SQLite's own, 1 GB.
	MaxRow int
}

// DB is an open database file. It is safe for concurrent use. The caller of Open closes it.
type DB struct {
	kind    string
	file    string
	sql     *sql.DB
	writer  *pool
	readers *pool
	closed  chan struct{}
	close   sync.Once
	fault   atomic.Pointer[error]
	flusher flusher
	log     *os.File // the write-ahead log, to flush it; of flusher
	// flushing is held by those who wait for the disk, or will: Close waits for them.
	flushing sync.RWMutex
	leave    int64 // a log of this size was not emptied; only for the holder of writer

	version  int  // of the schema, once it is up to date
	migrated bool // Open changed the schema
}

// Migrated reports whether Open made the file or brought its schema up to date.
func (db *DB) Migrated() bool { return db.migrated }

// Open opens the file and brings its schema up to date in one transaction. If the file is missing, Open makes it, readable by its
// owner only; the folder must exist. ctx bounds only the opening.
func Open(ctx context.Context, file string, s Schema) (*DB, error) {
	db, err := open(ctx, file, s)
	if err != nil {
		return nil, fmt.Errorf("open %s %s: %w", s.Kind, file, err)
	}
	return db, nil
}

// noRoom reports whether an error of [Open] can come from a full disk: to open a file that no process has open takes some room.
func noRoom(err error) bool {
	fault, ok := errors.AsType[*sqlite.Error](err)
	return ok && (fault.Code()&0xff == sqlite3.SQLITE_IOERR || fault.Code()&0xff == sqlite3.SQLITE_FULL)
}

func open(ctx context.Context, file string, s Schema) (*DB, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	// SQLite would make a file that others can read. An existing file is not opened here, because closing it again would drop the
	// locks that this process may hold on it.
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case err == nil:
		if err := f.Close(); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	default:
		if err := Regular(file); err != nil {
			return nil, err
		}
	}
	connector, err := sqlite.NewConnector(source(file))
	if err != nil {
		return nil, err
	}
	db := &DB{
		kind:    s.Kind,
		file:    file,
		sql:     sql.OpenDB(connector),
		writer:  newPool(1),
		readers: newPool(Readers),
		closed:  make(chan struct{}),
	}
	db.flusher.flush = db.flushLog
	db.writer.put(&Conn{db: db.sql, maxRow: s.MaxRow})
	for range Readers {
		db.readers.put(&Conn{db: db.sql, maxRow: s.MaxRow, readOnly: true})
	}
	if err := db.migrate(ctx, s); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.version = len(s.Migrations)
	if err := db.openLog(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// pool are connections of a DB. Users of [turns.For] take turns, so that one whose transactions queue delays another by one of them.
// The next one gets the connection that was used last: its memory is in the processor's caches, and those that are never needed at once never
// open.
type pool struct {
	turns *turns.Places
	free  chan struct{} // has an element for each connection in idle

	mu   sync.Mutex
	idle []*Conn
}

func newPool(n int) *pool { return &pool{turns: turns.New(n), free: make(chan struct{}, n)} }

func (p *pool) put(c *Conn) {
	p.mu.Lock()
	p.idle = append(p.idle, c)
	p.mu.Unlock()
	p.free <- struct{}{}
}

// take returns a connection to one that has received from free.
func (p *pool) take() *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	c := p.idle[last]
	p.idle = p.idle[:last]
	return c
}

// Regular returns an error if a database or one of its companions is there but is not a regular file. SQLite would block on a pipe,
// for example.
func Regular(file string) error {
	for _, companion := range []string{"", "-journal", "-wal", "-shm"} {
		if info, err := os.Stat(file + companion); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", filepath.Base(file)+companion)
		}
	}
	return nil
}

// begin is what a connection runs first. A commit does not wait for the disk: [DB.Update] does so after it, together with others. It reads the schema. In a damaged
// file, the schema can be endless, and the driver ends its reading with a context only in a second statement. The first needs no schema.
const begin = `PRAGMA trusted_schema = 0; PRAGMA synchronous = NORMAL`

// source returns the driver's name for a file.
func source(file string) string {
	pragmas := url.Values{
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_foreign_keys": {"1"},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
		"_pragma": {
			"fullfsync=1",            // macOS: flush the drive's own cache
			"checkpoint_fullfsync=1", // likewise
			fmt.Sprintf("journal_size_limit=%d", maxLog),
			"trusted_schema=0",
			"cell_size_check=1",
		},
	}
	// An absolute slash path on any system: "/a/b" stays, "C:/a" becomes "/C:/a".
	path := "/" + strings.TrimPrefix(filepath.ToSlash(file), "/")
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: pragmas.Encode()}).String()
}

// migrate brings the file's schema up to date.
func (db *DB) migrate(ctx context.Context, s Schema) error {
	if err := db.useWAL(ctx, s.Shrinks); err != nil {
		return err
	}
	var version int
	look := func(c *Conn) (err error) {
		version, err = s.version(ctx, c)
		return err
	}
	// Most files are up to date, and this check needs no writing transaction.
	if err := db.View(ctx, look); err != nil || version == len(s.Migrations) {
		return err
	}
	return db.Update(ctx, func(c *Conn) error {
		if err := look(c); err != nil { // again, because another process may have been faster
			return err
		}
		for ; version < len(s.Migrations); version++ {
			if _, err := c.conn.ExecContext(ctx, s.Migrations[version]); err != nil {
				return fmt.Errorf("migrate to version %d: %w", version+1, err)
			}
		}
		_, err := c.conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, s.ID, version))
		db.migrated = err == nil
		return err
	})
}

// currently returns f with a check before it: it fails if the schema is not the one that Open left. Then a process of a newer program has
// changed it, and the statements of this one could damage what that one keeps. Read does without the check, which takes 10 us.
func (db *DB) currently(ctx context.Context, f func(*Conn) error) func(*Conn) error {
	if db.version == 0 {
		return f
	}
	return func(c *Conn) error {
		var version int
		if err := c.Row(context.WithoutCancel(ctx), `PRAGMA user_version`).Scan(&version); err != nil {
			return err
		}
		if version != db.version {
			return abi.Errorf(abi.CodeUnavailable, "%s: another version of this program changed its schema from version %d to %d; restart this process", db.kind, db.version, version)
		}
		return f(c)
	}
}

// VersionError reports a file of a newer program.
type VersionError struct{ Version, Known int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("its schema has version %d; this program knows versions up to %d", e.Version, e.Known)
}

// version returns the schema version of the database, or 0 for an empty one. It fails if this program cannot use that version.
func (s Schema) version(ctx context.Context, c *Conn) (int, error) {
	var id int32
	var version, tables int
	err := errors.Join(
		c.Row(ctx, `PRAGMA application_id`).Scan(&id),
		c.Row(ctx, `PRAGMA user_version`).Scan(&version),
		c.Row(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables),
	)
	switch {
	case err != nil:
		return 0, err
	case id != s.ID && (id != 0 || version != 0 || tables != 0):
		return 0, fmt.Errorf("the file is a database, but not a %s", s.Kind)
	case version < 0 || version > len(s.Migrations):
		return 0, &VersionError{version, len(s.Migrations)}
	default:
		return version, s.own(ctx, c)
	}
}

var (
	declared = regexp.MustCompile(`CREATE (VIRTUAL )?TABLE (\w+)`)
	added    = regexp.MustCompile(`ADD COLUMN ([^;]*);`)
)

// own returns an error if a table of the schema has a trigger or an index that no migration made, or if something else is in its
// place, such as a view. SQLite would run their code when a query reads or changes the table, and that code need not end. What
// concerns no table of the schema does nothing.
func (s Schema) own(ctx context.Context, c *Conn) error {
	all := strings.Join(s.Migrations, ";\n") + ";"
	ours := map[string]bool{}
	var virtual []string
	for _, m := range declared.FindAllStringSubmatch(all, -1) {
		ours[m[2]] = true
		if m[1] != "" {
			virtual = append(virtual, m[2]+"_")
		}
	}
	columns := added.FindAllStringSubmatch(all, -1)
	for rows, err := range c.Rows(ctx, `SELECT type, lower(name), lower(tbl_name), sql FROM sqlite_schema WHERE sql IS NOT NULL`) {
		var kind, name, table, text string
		if err == nil {
			err = rows.Scan(&kind, &name, &table, &text)
		}
		if err != nil {
			return err
		}
		inside := slices.ContainsFunc(virtual, func(v string) bool { return strings.HasPrefix(table, v) }) // SQLite makes these tables
		if !inside && !ours[table] || inside && kind == "table" && !strings.HasPrefix(text, "CREATE VIRTUAL") {
			continue
		}
		for _, column := range columns { // SQLite adds them to the text of their table
			text = strings.Replace(text, ", "+column[1], "", 1)
		}
		if !strings.Contains(all, text) {
			return fmt.Errorf("another program changed its schema: the %s %.100q is not part of the %s; restore the file from a backup", kind, name, s.Kind)
		}
	}
	return nil
}

// useWAL switches the file to write-ahead logging, which it then keeps. If two processes do so at once, SQLite answers "busy"
// without waiting, so useWAL waits itself.
func (db *DB) useWAL(ctx context.Context, shrinks bool) error {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var mode string
		_, err := db.sql.ExecContext(ctx, begin)
		if err == nil && shrinks { // which does nothing once a file has content
			_, err = db.sql.ExecContext(ctx, `PRAGMA auto_vacuum = INCREMENTAL`)
		}
		if err == nil {
			err = db.sql.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode)
		}
		var fault *sqlite.Error
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("the file system does not support write-ahead logging (journal mode %q)", mode)
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("its schema could not be read in time: another process holds the file, or the file is damaged, so restore it from a backup: %w", err)
		case !errors.As(err, &fault) || fault.Code()&0xff != sqlite3.SQLITE_BUSY:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// Backup writes the newest committed state to a file that must not exist yet, readable by its owner only. When Backup returns nil,
// the file is durable. After an error, the file is removed. Transactions continue meanwhile.
func (db *DB) Backup(ctx context.Context, file string) (err error) {
	defer func() { err = db.failure(ctx, err) }()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = os.Remove(file) // the first error says more
		}
	}()
	// It takes the place of a reader, so that Close waits. A reader itself must not write.
	if err := db.Read(ctx, func(*Conn) error {
		_, err := db.sql.ExecContext(ctx, `VACUUM INTO ?`, file)
		return err
	}); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return atomicfile.SyncFolder(atomicfile.Machine{}, file)
}

// Close waits for the running transactions, then closes the file. It is idempotent. Later operations fail.
func (db *DB) Close() error {
	var err error
	db.close.Do(func() {
		close(db.closed)
		err = db.closeLog()
		for range Readers {
			<-db.readers.free
			err = errors.Join(err, db.readers.take().close())
		}
		<-db.writer.free
		err = errors.Join(err, db.writer.take().close(), db.sql.Close())
	})
	return err
}

// Read runs f with a connection that must only read. Each statement of f sees the newest committed state.
func (db *DB) Read(ctx context.Context, f func(*Conn) error) error {
	return db.with(ctx, db.readers, f)
}

// View runs f in a transaction that must only read: all of f sees one state of the database.
func (db *DB) View(ctx context.Context, f func(*Conn) error) error {
	return db.with(ctx, db.readers, func(c *Conn) error { return c.transaction(ctx, reading, db.currently(ctx, f)) })
}

// Update runs f in the writing transaction. If f returns nil, the transaction is committed and durable. After an error, nothing of
// it remains, unless the disk itself failed. Only one runs at a time, across all processes, so f must be short: do long work before it, or in parts. They
// wait for the disk together, so others can see what is committed a moment before a loss of power cannot undo it.
func (db *DB) Update(ctx context.Context, f func(*Conn) error) error {
	db.flushing.RLock()
	defer db.flushing.RUnlock()
	if err := db.UpdateSoon(ctx, f); err != nil {
		return err
	}
	return db.flusher.wait()
}

// UpdateSoon is [DB.Update] for a change that may be lost in a loss of power. It survives kill -9, and the next Update has it on the disk. All
// earlier changes are there if it is.
func (db *DB) UpdateSoon(ctx context.Context, f func(*Conn) error) error {
	return db.with(ctx, db.writer, func(c *Conn) error { return db.update(ctx, c, f) })
}

func (db *DB) update(ctx context.Context, c *Conn, f func(*Conn) error) (err error) {
	observe, _ := ctx.Value(observerKey{}).(func() func(Work))
	defer func() {
		if err == nil {
			db.emptyLog(ctx, c)
		}
	}()
	if observe == nil {
		return c.transaction(ctx, `BEGIN IMMEDIATE`, db.currently(ctx, f))
	}
	end := func(Work) {}
	var before, after Work
	defer func() {
		end(Work{after.Rows - before.Rows, after.Pages - before.Pages, after.Written - before.Written})
	}()
	err = c.transaction(ctx, `BEGIN IMMEDIATE`, func(c *Conn) (err error) {
		end = observe()
		if before, err = c.work(ctx); err != nil {
			return err
		}
		after = before
		return db.currently(ctx, f)(c)
	})
	if c.conn != nil { // or it was discarded
		if work, err := c.work(context.WithoutCancel(ctx)); err == nil {
			after = work
		}
	}
	return err
}

// Shrink gives up to this many free pages back to the file system, if the file's schema has Shrinks.
func (db *DB) Shrink(ctx context.Context, pages int) error {
	err := db.UpdateSoon(ctx, func(c *Conn) error {
		for _, err := range c.Rows(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, pages)) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return db.with(ctx, db.writer, func(c *Conn) error { // the file gets shorter, and the next transaction needs no more room in the log
		var busy, frames, copied int // a reader or another process may have it come later
		return c.Row(ctx, `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &frames, &copied)
	})
}

// Work is how much a transaction did, in counts that are the same on every machine. A transaction that is rolled back has also worked.
type Work struct {
	// Rows are those that it changed.
	Rows int64
	// Pages is how often it looked up a page of the database, to read or to change it.
	Pages int64
	// Written are the pages that it wrote.
	Written int64
}

type observerKey struct{}

// Observe returns a context for tests that bound operations. Each Update calls begin when it has the writers' lock, and calls the
// returned function, with what the transaction did, when it has released the lock.
func Observe(ctx context.Context, begin func() (end func(Work))) context.Context {
	return context.WithValue(ctx, observerKey{}, begin)
}

// with lends a connection of the pool to f.
func (db *DB) with(ctx context.Context, p *pool, f func(*Conn) error) error {
	if p.turns.TakeFor(ctx, turns.User(ctx), 1) != nil {
		return ctx.Err()
	}
	defer p.turns.GiveBack(1)
	select {
	case <-db.closed:
		return abi.Errorf(abi.CodeUnavailable, "%s: closed", db.kind)
	default:
	}
	select { // Close takes them without a turn
	case <-p.free:
	case <-db.closed:
		return abi.Errorf(abi.CodeUnavailable, "%s: closed", db.kind)
	case <-ctx.Done():
		return ctx.Err()
	}
	c := p.take()
	defer p.put(c)
	if err := c.open(ctx); err != nil {
		return db.failure(ctx, err)
	}
	return db.failure(ctx, f(c))
}

// failure converts an error of SQLite into one that a capability reports: the end of ctx unchanged, any other fault of the database
// as [abi.ErrUnavailable]. Errors of f pass unchanged.
func (db *DB) failure(ctx context.Context, err error) error {
	var fault *sqlite.Error
	switch {
	case !errors.As(err, &fault):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		first := error(fault)
		db.fault.CompareAndSwap(nil, &first)
		return abi.Errorf(abi.CodeUnavailable, "%s: %v", db.kind, err)
	}
}

// Fault is the first fault of the database or its disk that an operation met. A guest may have seen it as [abi.ErrUnavailable]. It
// is nil if there was none.
func (db *DB) Fault() error {
	if fault := db.fault.Load(); fault != nil {
		return fmt.Errorf("%s: %w", db.kind, *fault)
	}
	return nil
}
