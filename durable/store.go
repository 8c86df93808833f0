package durable

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stilehost/stile/internal/sqlite"
)

// The file. What somebody could learn something from, or forge, is sealed. The rest says when a run goes on and whose it is: who alters that
// can delay a run.
var schema = sqlite.Schema{Shrinks: true, Kind: "store of runs", ID: 0x73747275 /* stru */, MaxRow: 256 << 20, Migrations: []string{`
CREATE TABLE run (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	name     TEXT NOT NULL UNIQUE,    -- what people and programs call it
	key      TEXT UNIQUE,             -- of whoever started it
	state    TEXT NOT NULL,
	wake     INTEGER,                 -- when it goes on, in milliseconds since 1970; null if no time does that
	created  INTEGER NOT NULL,
	changed  INTEGER NOT NULL,
	deadline INTEGER NOT NULL,
	owner    TEXT,                    -- the process it belongs to
	fence    INTEGER NOT NULL DEFAULT 0, -- how many owners it had
	crashes  INTEGER NOT NULL DEFAULT 0, -- owners that were gone, since the run last came on
	cancel   INTEGER NOT NULL DEFAULT 0, -- somebody asked for its end
	code     TEXT NOT NULL,           -- the component's digest
	spec     BLOB NOT NULL,           -- sealed
	batches  INTEGER NOT NULL DEFAULT 0, -- of its log
	head     BLOB NOT NULL,           -- sealed: which batch of the log is the last
	reason   TEXT NOT NULL DEFAULT '' -- why it is parked
) STRICT;
CREATE INDEX run_due ON run (state, wake);
CREATE INDEX run_owner ON run (owner) WHERE owner IS NOT NULL;
CREATE INDEX run_code ON run (code);

-- Where a run goes on before its log does.
CREATE TABLE snapshot (run INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

-- Entries of the log that were written together.
CREATE TABLE log (run INTEGER NOT NULL, n INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run, n)) STRICT, WITHOUT ROWID;

-- How runs ended.
CREATE TABLE outcome (run INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

-- The components of runs, and the modules that those import: a run goes on under the code that it began with.
CREATE TABLE code (digest TEXT NOT NULL PRIMARY KEY, body BLOB NOT NULL) STRICT;

-- The processes that work on runs: until when they are alive by the clock since the start of the machine.
CREATE TABLE owner (name TEXT NOT NULL PRIMARY KEY, boot TEXT NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`, `
-- What was delivered to runs, in order. A message that a run has taken stays until the run's log has it. Its key stays longer.
CREATE TABLE message (
	n       INTEGER PRIMARY KEY AUTOINCREMENT,
	run     INTEGER NOT NULL,
	mailbox TEXT NOT NULL,
	key     TEXT,             -- digest of the sender's, which delivers it once
	bytes   INTEGER NOT NULL, -- of its data
	body    BLOB NOT NULL,    -- sealed
	taken   INTEGER           -- the run's operation that took it
) STRICT;
CREATE INDEX message_waits ON message (run, taken, mailbox);
CREATE UNIQUE INDEX message_key ON message (run, mailbox, key) WHERE key IS NOT NULL;

-- The mailboxes that sleeping runs wait for.
CREATE TABLE waiting (run INTEGER NOT NULL, mailbox TEXT NOT NULL, PRIMARY KEY (run, mailbox)) STRICT, WITHOUT ROWID;
`, `
ALTER TABLE run ADD COLUMN function TEXT; -- the name of its Go code; null for a component
`, `
-- How earlier attempts of runs ended.
CREATE TABLE attempt (run INTEGER NOT NULL, n INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run, n)) STRICT, WITHOUT ROWID;
`, `
-- Which modules a component imports. Without runs of the component, both are removed.
CREATE TABLE import (code TEXT NOT NULL, module TEXT NOT NULL, PRIMARY KEY (code, module)) STRICT, WITHOUT ROWID;
CREATE INDEX import_module ON import (module);
INSERT INTO import SELECT DISTINCT run.code, code.digest FROM run, code WHERE run.code <> '' AND code.digest NOT IN (SELECT code FROM run);
CREATE INDEX run_ended ON run (changed) WHERE state IN ('done', 'failed', 'cancelled');
`, `
-- Whose the run is, of those who may have so many at a time: a digest.
ALTER TABLE run ADD COLUMN whose TEXT NOT NULL DEFAULT '';
CREATE INDEX run_whose ON run (whose, id) WHERE whose <> '';
`, `
-- Addresses to which strangers can post messages, by digests of their tokens. A token follows from the key, so nobody else can add one.
CREATE TABLE address (token TEXT NOT NULL PRIMARY KEY, run INTEGER NOT NULL, mailbox TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX address_run ON address (run, mailbox);
`, `
CREATE TABLE schedule (
	name   TEXT NOT NULL PRIMARY KEY,
	next   INTEGER,              -- when it starts a run; null if it starts none
	last   INTEGER,              -- the last time that it came to
	looked INTEGER NOT NULL,     -- when next was computed
	paused INTEGER NOT NULL DEFAULT 0,
	run    TEXT,                 -- the last that it started
	code   TEXT NOT NULL,        -- the component's digest
	reason TEXT NOT NULL DEFAULT '',
	body   BLOB NOT NULL         -- sealed
) STRICT, WITHOUT ROWID;
ALTER TABLE run ADD COLUMN schedule TEXT; -- that started it
CREATE INDEX run_schedule ON run (schedule, state, id) WHERE schedule IS NOT NULL;
`, `
-- The last operations of a run before its log was cut, as text for people.
CREATE TABLE history (run INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
`, `
-- A run that listens is not ended at once when somebody asks for its end. grace is how many milliseconds it then has, from when a process tells it, and ends is when these are
-- over: null if no process has told it yet.
ALTER TABLE run ADD COLUMN listens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN grace INTEGER;
ALTER TABLE run ADD COLUMN ends INTEGER;

-- What runs keep for later attempts, and the operation that wrote it.
CREATE TABLE stash (run INTEGER PRIMARY KEY, operation INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
`, `
-- The run that started this one to take its result, and the first above that. taken is the operation that has taken it; 0 if none will.
ALTER TABLE run ADD COLUMN parent INTEGER;
ALTER TABLE run ADD COLUMN root INTEGER;
ALTER TABLE run ADD COLUMN taken INTEGER;
CREATE INDEX run_parent ON run (parent, taken) WHERE parent IS NOT NULL;
CREATE INDEX run_root ON run (root) WHERE root IS NOT NULL;
`, `
-- How posts to an address must be signed: sealed, and null if they need not be. Those that were not signed, and when the last was.
ALTER TABLE address ADD COLUMN verify BLOB;
ALTER TABLE run ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN refusal INTEGER;
`, `
-- The runs for whose end other runs wait. What a run has called is in the table of runs.
CREATE TABLE awaited (run INTEGER NOT NULL, waiter INTEGER NOT NULL, PRIMARY KEY (run, waiter)) STRICT, WITHOUT ROWID;
CREATE INDEX awaited_waiter ON awaited (waiter);
-- The last operation of a run that did something to a run which it has started, and what it answered.
CREATE TABLE reached (run INTEGER PRIMARY KEY, operation INTEGER NOT NULL, answer INTEGER NOT NULL) STRICT;
`, `
ALTER TABLE reached ADD COLUMN started TEXT; -- the name of the run that the operation started
`, `
-- How many bytes of snapshots each of those has who may have so many runs, with those of the children. A snapshot from before counts once its run has slept again.
ALTER TABLE snapshot ADD COLUMN whose TEXT NOT NULL DEFAULT '';
CREATE TABLE held (whose TEXT NOT NULL PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TRIGGER snapshot_added AFTER INSERT ON snapshot WHEN NEW.whose <> '' BEGIN
	INSERT INTO held VALUES (NEW.whose, length(NEW.body)) ON CONFLICT (whose) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER snapshot_removed AFTER DELETE ON snapshot WHEN OLD.whose <> '' BEGIN
	UPDATE held SET bytes = bytes - length(OLD.body) WHERE whose = OLD.whose;
	DELETE FROM held WHERE whose = OLD.whose AND bytes <= 0;
END;
`}}

// State says where a run is.
type State string

// The states of a run. The last four are final, until somebody retries the run.
const (
	Ready     State = "ready"     // it can go on as soon as a process takes it
	Running   State = "running"   // it belongs to a process
	Asleep    State = "asleep"    // it waits without memory
	Done      State = "done"      // it has a result
	Failed    State = "failed"    // it ended with an error
	Cancelled State = "cancelled" // somebody ended it
	Parked    State = "parked"    // it cannot go on: see Info.Reason
)

// Final reports whether a run in this state goes on by itself.
func (s State) Final() bool { return s == Done || s == Failed || s == Cancelled || s == Parked }

// Info is what is known of a run without opening it.
type Info struct {
	Name  string `json:"run"`
	Key   string `json:"key,omitempty"`
	State State  `json:"state"`
	Tool  string `json:"tool,omitempty"`
	// Function is the name of the run's Go code, if it has no component.
	Function string    `json:"function,omitempty"`
	Target   string    `json:"target,omitempty"`
	Pinned   string    `json:"-"`
	Created  time.Time `json:"created"`
	Changed  time.Time `json:"changed"`
	// Deadline is when the run is ended, however far it is.
	Deadline time.Time `json:"deadline"`
	// Wake is when a sleeping run goes on. It is zero if no time makes it.
	Wake time.Time `json:"wake,omitzero"`
	// Ends is when a run that was cancelled, and cleans up, is ended. It is zero if no process has told it yet.
	Ends time.Time `json:"ends,omitzero"`
	// Cancelled says that somebody has asked for its end, and that it has not ended yet.
	Cancelled bool `json:"cancelled,omitempty"`
	// Reason says why a run is parked.
	Reason string `json:"reason,omitempty"`
	// Retry says whether it begins again when it fails.
	Retry Retry `json:"retry,omitzero"`
	// Component is the digest of its code.
	Component string `json:"component,omitempty"`
	// Parent is the run that started it and takes its result.
	Parent string `json:"parent,omitempty"`
	// Blocked is a parked run that this one has called, or has started and waits for, directly or through others. It is nil if there is none.
	Blocked *Blocked `json:"blocked,omitempty"`
	// Input is JSON.
	Input json.RawMessage `json:"input,omitempty"`
	// Unreadable says why it is not known what was called, or how that ended: the file was altered, or the key is another. It is empty otherwise.
	Unreadable string `json:"unreadable,omitempty"`
}

// Blocked is a parked run whose result another run has not taken. Once a person retries it, both go on.
type Blocked struct {
	Run string `json:"run"`
	// Reason says why it is parked.
	Reason string `json:"reason"`
}

// spec is what a run was started with.
type spec struct {
	Tool string `json:"tool,omitempty"`
	// Function is the name of Go code.
	Function string          `json:"function,omitempty"`
	Target   string          `json:"target,omitempty"`
	Pinned   string          `json:"pinned,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Retry    Retry           `json:"retry,omitzero"`
	// Lasts is how long the run may take. Default: [DefaultDeadline].
	Lasts time.Duration `json:"lasts,omitempty"`
	// Parent and Sequence are the operation that started it, if it is a child.
	Parent   string `json:"parent,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
	// Modules are the digests of the modules that the component imports.
	Modules map[string]string `json:"modules,omitempty"`
}

// row is a run in the file.
type row struct {
	id                         int64
	name                       string
	key                        sql.NullString
	state                      State
	wake                       sql.NullInt64
	created, changed, deadline int64
	owner                      sql.NullString
	fence, crashes             int64
	cancel, listens            bool
	ends                       sql.NullInt64
	code                       string
	function                   sql.NullString
	spec                       []byte
	batches                    int64
	head                       []byte
	reason                     string
	parent, root, taken        sql.NullInt64

	parts   *parts   // of a run that was taken, if they were read with it
	blocked *Blocked // once block has looked
}

const rowColumns = `id, name, key, state, wake, created, changed, deadline, owner, fence, crashes, cancel, listens, ends, code, function, spec, batches, head, reason, parent, root, taken`

func (r *row) fields() []any {
	return []any{&r.id, &r.name, &r.key, &r.state, &r.wake, &r.created, &r.changed, &r.deadline, &r.owner, &r.fence, &r.crashes, &r.cancel, &r.listens, &r.ends, &r.code, &r.function, &r.spec, &r.batches, &r.head, &r.reason, &r.parent, &r.root, &r.taken}
}

func findRun(ctx context.Context, c *sqlite.Conn, name string) (r row, err error) {
	err = c.Row(ctx, `SELECT `+rowColumns+` FROM run WHERE name = ?`, name).Scan(r.fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		return r, &UnknownError{name}
	}
	return r, err
}

// runsWhere reads runs.
func runsWhere(ctx context.Context, c *sqlite.Conn, where string, args ...any) (runs []row, err error) {
	for one, err := range c.Rows(ctx, `SELECT `+rowColumns+` FROM run `+where, args...) {
		if err != nil {
			return nil, err
		}
		var w row
		if err := one.Scan(w.fields()...); err != nil {
			return nil, err
		}
		runs = append(runs, w)
	}
	return runs, nil
}

// idsOf reads the ids that a query selects.
func idsOf(ctx context.Context, c *sqlite.Conn, query string, args ...any) (ids []int64, err error) {
	for one, err := range c.Rows(ctx, query, args...) {
		if err != nil {
			return nil, err
		}
		var id int64
		if err := one.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// UnknownError reports a run that is not in the store.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no run %q; stile runs list shows those that there are", e.Name)
}

func timeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
