package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/turns"
)

var counter = Schema{Kind: "counter", ID: 42, Migrations: []string{
	`CREATE TABLE n (id INTEGER PRIMARY KEY, v INTEGER NOT NULL) STRICT; INSERT INTO n VALUES (1, 0)`,
	`ALTER TABLE n ADD COLUMN note TEXT`,
}}

// TestMain also serves as the second process of TestTwoProcesses.
func TestMain(m *testing.M) {
	file := os.Getenv("STILE_TEST_COUNTER")
	if file == "" {
		os.Exit(m.Run())
	}
	db, err := Open(context.Background(), file, counter)
	for range 200 {
		if err == nil {
			err = add(context.Background(), db, 1)
		}
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		panic(err)
	}
}

func add(ctx context.Context, db *DB, n int) error {
	return db.Update(ctx, func(c *Conn) error {
		var v int
		if err := c.Row(ctx, `SELECT v FROM n`).Scan(&v); err != nil {
			return err
		}
		_, err := c.Exec(ctx, `UPDATE n SET v = ?`, v+n)
		return err
	})
}

func total(t *testing.T, db *DB) int {
	t.Helper()
	var v int
	if err := db.Read(t.Context(), func(c *Conn) error { return c.Row(t.Context(), `SELECT v FROM n`).Scan(&v) }); err != nil {
		t.Fatal(err)
	}
	return v
}

func opened(t *testing.T, file string, s Schema) *DB {
	t.Helper()
	db, err := Open(t.Context(), file, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a ?#%41.db")
	db := opened(t, file, counter)
	want := map[string]string{"journal_mode": "wal", "synchronous": "1", "foreign_keys": "1", "busy_timeout": "10000", "trusted_schema": "0"}
	for name, pool := range map[string]*pool{"writer": db.writer, "reader": db.readers} {
		for pragma, w := range want {
			var got string
			err := db.with(t.Context(), pool, func(c *Conn) error { return c.Row(t.Context(), "PRAGMA "+pragma).Scan(&got) })
			if err != nil || got != w {
				t.Errorf("%s: %s = %q (%v), want %q", name, pragma, got, err, w)
			}
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(file + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, want 0600", suffix, info.Mode())
		}
	}
}

// A newer program that changes the schema of an open file ends the use of the older one, which could damage what the newer one keeps.
func TestNewerSchemaUnderWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n.db")
	db := opened(t, file, counter)
	if err := add(t.Context(), db, 1); err != nil || !db.Migrated() {
		t.Fatal(err, db.Migrated())
	}
	if again := opened(t, file, counter); again.Migrated() {
		t.Error("opening the file again changed its schema")
	}
	newer := counter
	newer.Migrations = append(append([]string{}, counter.Migrations...), `CREATE TABLE later (x)`)
	later := opened(t, file, newer)
	if err := add(t.Context(), later, 1); err != nil || !later.Migrated() {
		t.Fatal(err, later.Migrated())
	}
	ran := func(*Conn) error { return errors.New("it ran") }
	for name, err := range map[string]error{"Update": db.Update(t.Context(), ran), "View": db.View(t.Context(), ran)} {
		if !errors.Is(err, abi.ErrUnavailable) || !strings.Contains(err.Error(), "from version 2 to 3; restart this process") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := total(t, later); n != 2 {
		t.Errorf("the newer program reads %d", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	newer := counter
	newer.Migrations = append(append([]string{}, counter.Migrations...), `CREATE TABLE later (x)`)
	other := counter
	other.ID = 43
	broken := counter
	broken.Migrations = append(append([]string{}, counter.Migrations...), `CREATE TABLE half (x); CREATE TABLE half (x)`)

	for name, s := range map[string]Schema{"newer": newer, "other": other, "current": counter, "beside": counter} {
		if err := opened(t, path(name), s).Close(); err != nil {
			t.Fatal(err)
		}
	}
	foreign := Schema{Kind: "foreign", Migrations: []string{`CREATE TABLE x (y); PRAGMA user_version = 0`}}
	if err := opened(t, path("foreign"), foreign).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("text"), bytes.Repeat([]byte("not a database. "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Mkfifo(path("pipe"), 0o600), unix.Mkfifo(path("beside-journal"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file string
		schema     Schema
		want       string
	}{
		{"newer schema", path("newer"), counter, "its schema has version 3; this program knows versions up to 2"},
		{"another kind", path("other"), counter, "not a counter"},
		{"another program's", path("foreign"), counter, "not a counter"},
		{"text", path("text"), counter, "not a database"},
		{"missing folder", path("no/such.db"), counter, "no such file"},
		{"folder", dir, counter, "not a regular file"},
		{"pipe", path("pipe"), counter, "not a regular file"},
		{"pipe beside it", path("beside"), counter, "beside-journal is not a regular file"},
		{"device", "/dev/zero", counter, "not a regular file"},
		{"NUL in the name", path("a\x00b"), counter, "invalid argument"},
		{"failing migration", path("current"), broken, "migrate to version 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, err := Open(t.Context(), tt.file, tt.schema)
			if err == nil {
				_ = db.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %q in it", err, tt.want)
			}
		})
	}
	// The same is found without opening, which would change the file.
	if err := counter.Check(t.Context(), path("newer")); !errors.As(err, new(*VersionError)) {
		t.Errorf("got %v", err)
	}
	if err := counter.Check(t.Context(), path("other")); err == nil || !strings.Contains(err.Error(), "not a counter") {
		t.Errorf("got %v", err)
	}
	if err := broken.Check(t.Context(), path("current")); err != nil { // older
		t.Error(err)
	}
	// The failed migration left nothing behind.
	db := opened(t, path("current"), counter)
	var half int
	err := db.Read(t.Context(), func(c *Conn) error {
		return c.Row(t.Context(), `SELECT count(*) FROM sqlite_schema WHERE name = 'half'`).Scan(&half)
	})
	if err != nil || half != 0 {
		t.Errorf("half a migration stayed: %d tables, %v", half, err)
	}
}

func TestMigrateOldFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	old := counter
	old.Migrations = counter.Migrations[:1]
	db := opened(t, file, old)
	if err := errors.Join(add(t.Context(), db, 7), db.Close()); err != nil {
		t.Fatal(err)
	}
	db = opened(t, file, counter)
	if got := total(t, db); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
	err := db.Update(t.Context(), func(c *Conn) error {
		_, err := c.Exec(t.Context(), `UPDATE n SET note = 'new column'`)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReserveReplaces puts a link or a pipe where a reserve belongs. The link's target stays, and no process waits for the pipe.
func TestReserveReplaces(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(path string) error{
		"link": func(path string) error { return os.Symlink(target, path) },
		"pipe": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"half": func(path string) error { return os.WriteFile(path, []byte("half"), 0o600) },
		"none": func(string) error { return nil },
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(put(path), Reserve(path).Fill()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() != reserveSize || !Reserve(path).Spend() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "kept" {
		t.Errorf("the link's target has %d bytes, %v", len(text), err)
	}
}

// TestOtherSchema has files of this schema in which another program put code that SQLite would run.
func TestOtherSchema(t *testing.T) {
	indexed := Schema{Kind: "words", ID: 44, Migrations: []string{
		`CREATE TABLE t (a, b); CREATE INDEX t_a ON t (a); CREATE VIRTUAL TABLE word USING fts5 (a); CREATE TRIGGER t_insert AFTER INSERT ON t BEGIN INSERT INTO word VALUES (new.a); END`,
		`ALTER TABLE t ADD COLUMN c TEXT NOT NULL DEFAULT ''; ALTER TABLE t ADD COLUMN d`,
	}}
	const endless = `WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c`
	for name, tt := range map[string]struct{ change, want string }{
		"nothing":                        {`SELECT 1`, ""},
		"a table and a view of somebody": {`CREATE TABLE mine (x); CREATE TRIGGER mine_insert AFTER INSERT ON mine BEGIN DELETE FROM mine; END; CREATE VIEW seen AS SELECT a FROM t`, ""},
		"statistics":                     {`INSERT INTO t VALUES (1, 2, 3, 4); ANALYZE`, ""},
		"a view in place of a table":     {`DROP TABLE t; CREATE VIEW t AS ` + endless, `the view "t" is not part of the words`},
		"the same in other case":         {`DROP TABLE t; CREATE VIEW "T" AS ` + endless, `the view "t" is not`},
		"a view with the table's text":   {`DROP TABLE t; CREATE VIEW t (x) AS ` + endless + ` -- CREATE TABLE t (a, b)`, `the view "t" is not`},
		"a trigger":                      {`CREATE TRIGGER more AFTER INSERT ON t BEGIN DELETE FROM t WHERE a IN (` + endless + `); END`, `the trigger "more" is not`},
		"a trigger in place of ours":     {`DROP TRIGGER t_insert; CREATE TRIGGER t_insert AFTER INSERT ON t BEGIN DELETE FROM t WHERE a IN (` + endless + `); END`, `the trigger "t_insert" is not`},
		"an index":                       {`CREATE INDEX more ON t (length(printf('%.*c', 90000000, a)))`, `the index "more" is not`},
		"a column":                       {`ALTER TABLE t ADD COLUMN more AS (length(printf('%.*c', 90000000, a)))`, `the table "t" is not`},
		"a virtual table":                {`DROP TABLE t; CREATE VIRTUAL TABLE t USING fts5 (a, b, c, d)`, `the table "t" is not`},
		"a trigger in the index of texts": {`CREATE TABLE other (x); CREATE TRIGGER more AFTER INSERT ON other BEGIN DELETE FROM other; END; PRAGMA writable_schema = 1;
			UPDATE sqlite_schema SET tbl_name = 'word_data', sql = 'CREATE TRIGGER more AFTER INSERT ON word_data BEGIN DELETE FROM t; END' WHERE name = 'more'`, "cannot create triggers on shadow tables"},
		"a view in the index of texts": {`CREATE VIEW more AS ` + endless + `; PRAGMA writable_schema = 1;
			DELETE FROM sqlite_schema WHERE name = 'word_content'; UPDATE sqlite_schema SET name = 'word_content', tbl_name = 'word_content', sql = 'CREATE VIEW word_content AS ` + endless + `' WHERE name = 'more'`, `the view "word_content" is not`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "db")
			for version := range indexed.Migrations { // a file that was migrated
				s := indexed
				s.Migrations = s.Migrations[:version+1]
				if err := opened(t, file, s).Close(); err != nil {
					t.Fatal(err)
				}
			}
			other, err := sql.Open("sqlite", file)
			if err == nil {
				_, err = other.ExecContext(t.Context(), tt.change)
				err = errors.Join(err, other.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			db, err := Open(t.Context(), file, indexed)
			if err == nil {
				err = db.Close()
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestMaxRow has a file with a row that another program put there.
func TestMaxRow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n.db")
	db := opened(t, file, counter)
	note := func(db *DB, size int) error {
		return db.Update(t.Context(), func(c *Conn) error {
			_, err := c.Exec(t.Context(), `UPDATE n SET note = ?`, strings.Repeat("x", size))
			return err
		})
	}
	if err := errors.Join(note(db, 1<<20), db.Close()); err != nil {
		t.Fatal(err)
	}
	bounded := counter
	bounded.MaxRow = 100 << 10
	db = opened(t, file, bounded)
	var text string
	read := func(c *Conn) error { return c.Row(t.Context(), `SELECT note FROM n`).Scan(&text) }
	if err := db.Read(t.Context(), read); !errors.Is(err, abi.ErrUnavailable) || !strings.Contains(err.Error(), "too big") {
		t.Errorf("got %v, %d bytes", err, len(text))
	}
	if err := note(db, 200<<10); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if err := note(db, 50<<10); err != nil || db.Read(t.Context(), read) != nil || len(text) != 50<<10 {
		t.Errorf("got %v, %d bytes", err, len(text))
	}
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "db"), counter)
	mine := errors.New("mine")
	half := func(end func() error) func(*Conn) error {
		return func(c *Conn) error {
			if _, err := c.Exec(t.Context(), `UPDATE n SET v = v + 1`); err != nil {
				return err
			}
			return end()
		}
	}
	if err := db.Update(t.Context(), half(func() error { return mine })); !errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = db.Update(t.Context(), half(func() error { panic("in f") }))
		t.Error("no panic")
	}()
	ctx, cancel := context.WithCancel(t.Context())
	if err := db.Update(ctx, half(func() error { cancel(); return nil })); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	err := db.Update(t.Context(), func(c *Conn) error {
		_, err := c.Exec(t.Context(), `UPDATE n SET v = 'text in a strict column'`)
		return err
	})
	if !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if got := total(t, db); got != 0 {
		t.Errorf("%d half transactions stayed", got)
	}
	if err := add(t.Context(), db, 1); err != nil || total(t, db) != 1 {
		t.Errorf("the writer is no longer usable: %v", err)
	}
}

func TestReadersCannotWrite(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "db"), counter)
	write := func(c *Conn) error {
		_, err := c.Exec(t.Context(), `UPDATE n SET v = 1`)
		return err
	}
	for name, run := range map[string]func(context.Context, func(*Conn) error) error{"read": db.Read, "view": db.View} {
		if err := run(t.Context(), write); !errors.Is(err, abi.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	db := opened(t, file, counter)
	forever := func(ctx context.Context) func(*Conn) error {
		return func(c *Conn) error {
			var n int
			return c.Row(ctx, `WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r`).Scan(&n)
		}
	}
	for name, run := range map[string]func(context.Context, func(*Conn) error) error{
		"read": db.Read, "view": db.View, "update": db.Update,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := run(ctx, forever(ctx)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	// Another process (here: a second DB) holds the file, and the wait for it can be cancelled.
	second := opened(t, file, counter)
	err := db.Update(t.Context(), func(*Conn) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := add(ctx, second, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for the file: %v", err)
		}
		// So can the wait for this process's own writer.
		if err := add(ctx, db, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for the writer: %v", err)
		}
		if late := time.Since(start); late > time.Minute {
			t.Errorf("cancelled %v late", late)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(add(t.Context(), db, 1), add(t.Context(), second, 1)); err != nil || total(t, db) != 2 {
		t.Errorf("not usable afterwards: %v", err)
	}
}

func TestClose(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "db"), counter)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for add(t.Context(), db, 1) == nil {
			}
		})
	}
	if err := errors.Join(add(t.Context(), db, 1), db.Close(), db.Close()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	for name, err := range map[string]error{
		"read":   db.Read(t.Context(), func(*Conn) error { return nil }),
		"update": db.Update(t.Context(), func(*Conn) error { return nil }),
		"backup": db.Backup(t.Context(), filepath.Join(t.TempDir(), "backup")),
	} {
		if !errors.Is(err, abi.ErrUnavailable) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

func TestTwoProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db") // does not exist yet: the processes also race to make it
	var children []*exec.Cmd
	for range 3 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), "STILE_TEST_COUNTER="+file)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, child)
	}
	db := opened(t, file, counter)
	for range 200 {
		if err := add(t.Context(), db, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, child := range children {
		if err := child.Wait(); err != nil {
			t.Error(err)
		}
	}
	if got := total(t, db); got != 800 {
		t.Errorf("got %d, want 800", got)
	}
}

func TestOpenDoesNotReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	db := opened(t, file, counter)
	if err := errors.Join(add(t.Context(), db, 5), db.Close()); err != nil {
		t.Fatal(err)
	}
	if got := total(t, opened(t, file, counter)); got != 5 {
		t.Errorf("got %d, want 5", got)
	}
	if _, err := os.Stat(file + "-journal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a rollback journal exists: %v", err)
	}
}

func TestObserve(t *testing.T) {
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "db"), Schema{Kind: "test", ID: 1, Migrations: []string{`CREATE TABLE t (n INTEGER) STRICT`}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var seen []Work
	begun := 0
	ctx := Observe(t.Context(), func() func(Work) {
		begun++
		return func(w Work) { seen = append(seen, w) }
	})
	fault := errors.New("fault")
	for i, want := range []error{nil, fault, nil, nil} {
		if err := db.Update(ctx, func(c *Conn) error {
			if i == 3 { // it reads all, and changes nothing
				var sum int
				return c.Row(ctx, `SELECT sum(n) FROM t`).Scan(&sum)
			}
			_, err := c.Exec(ctx, `INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n`)
			return errors.Join(err, want)
		}); !errors.Is(err, want) {
			t.Fatal(err)
		}
	}
	if begun != 4 || len(seen) != 4 {
		t.Fatalf("%d begun, %d ended", begun, len(seen))
	}
	for i, w := range seen {
		if changes := i < 3; changes && w.Rows != 20_000 || !changes && w.Rows != 0 || w.Pages < 30 {
			t.Errorf("transaction %d: %+v", i, w)
		}
		if writes := i == 0 || i == 2; writes != (w.Written >= 30) {
			t.Errorf("transaction %d: %+v", i, w)
		}
	}
}

// TestUsersTakeTurns has another user's transaction come while many of one user wait.
func TestUsersTakeTurns(t *testing.T) {
	for name, work := range map[string]func(*DB, context.Context, func(*Conn) error) error{"write": (*DB).Update, "read": (*DB).Read} {
		t.Run(name, func(t *testing.T) {
			db := opened(t, filepath.Join(t.TempDir(), "n.db"), counter)
			pool := map[string]*pool{"write": db.writer, "read": db.readers}[name]
			n := int64(cap(pool.free))
			if err := pool.turns.TakeFor(t.Context(), "greedy", n); err != nil {
				t.Fatal(err)
			}
			const many = 40
			var users sync.WaitGroup
			var before atomic.Int64 // transactions that came before the other user's
			greedy := turns.For(t.Context(), "greedy")
			for range many {
				users.Go(func() {
					if err := work(db, greedy, func(*Conn) error { before.Add(1); return nil }); err != nil {
						t.Error(err)
					}
				})
			}
			for pool.turns.Waiting() < many {
				runtime.Gosched()
			}
			users.Go(func() {
				err := work(db, turns.For(t.Context(), "other"), func(*Conn) error {
					if n := before.Load(); n > 1 {
						t.Errorf("%d transactions of another user came before", n)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
			for pool.turns.Waiting() < many+1 {
				runtime.Gosched()
			}
			pool.turns.GiveBack(1) // one at a time
			users.Wait()
			pool.turns.GiveBack(n - 1)
		})
	}
}

// TestOneConnectionAtATime has readers that come one after the other share a connection.
func TestOneConnectionAtATime(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "n.db"), counter)
	for range 2 * Readers {
		if err := db.Read(t.Context(), func(*Conn) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	open := 0
	for _, c := range db.readers.idle {
		if c.conn != nil {
			open++
		}
	}
	if open != 1 || len(db.readers.idle) != Readers {
		t.Errorf("%d of %d connections are open", open, len(db.readers.idle))
	}
}
