package lifecycle

import (
	"context"
	"fmt"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
)

// File is the name of the store in a folder of durable state.
const File = "extensions.db"

// MaxRow is the largest row of the store, in bytes. Only another program can have written a larger one.
const MaxRow = 80 << 20

// stampFile names the generation of the store, so that other processes notice a change without asking the store.
const stampFile = "extensions.stamp"

// A version is what an author wrote, and never changes. A release is a request to activate a version in a scope, with its outcome.
// Every change of the active releases also changes generation, 64 random bits by which other processes notice the change.
var schema = sqlite.Schema{Kind: "extension store", ID: 0x73746578 /* stex */, MaxRow: MaxRow, Migrations: []string{`
CREATE TABLE object (
	digest TEXT PRIMARY KEY,
	data   BLOB NOT NULL
) STRICT;

CREATE TABLE version (
	digest     TEXT PRIMARY KEY,
	name       TEXT NOT NULL,
	component  TEXT NOT NULL REFERENCES object,
	record     TEXT NOT NULL -- JSON, see the type record
) STRICT;

CREATE TABLE release (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	scope       TEXT NOT NULL,
	name        TEXT NOT NULL,
	digest      TEXT NOT NULL REFERENCES version,
	state       TEXT NOT NULL,
	author      TEXT NOT NULL,
	asked       INTEGER NOT NULL, -- Unix milliseconds, as all times
	decided     INTEGER,
	decider     TEXT NOT NULL DEFAULT '',
	line        TEXT NOT NULL DEFAULT '',
	reason      TEXT NOT NULL DEFAULT '',
	quarantine  TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX release_name ON release (scope, name);
CREATE INDEX release_digest ON release (digest);
CREATE UNIQUE INDEX release_active ON release (scope, name) WHERE state = 'active';
CREATE UNIQUE INDEX release_pending ON release (scope, name) WHERE state = 'pending';

CREATE TABLE tool (
	release     INTEGER NOT NULL REFERENCES release ON DELETE CASCADE,
	full_name   TEXT NOT NULL,
	name        TEXT NOT NULL,
	PRIMARY KEY (release, full_name)
) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE tool_text USING fts5 (full_name, tags, description, release UNINDEXED, tokenize = 'porter unicode61');

CREATE TABLE call (
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	scope     TEXT NOT NULL,
	extension TEXT NOT NULL,
	tool      TEXT NOT NULL,
	digest    TEXT NOT NULL,
	started   INTEGER NOT NULL,
	duration  INTEGER NOT NULL, -- microseconds
	outcome   TEXT NOT NULL,
	message   TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX call_tool ON call (scope, extension, tool, id);
CREATE TABLE usage (
	scope     TEXT NOT NULL,
	extension TEXT NOT NULL,
	tool      TEXT NOT NULL,
	calls     INTEGER NOT NULL,
	failures  INTEGER NOT NULL,
	last_used INTEGER NOT NULL,
	last_error TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (scope, extension, tool)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
	id     INTEGER PRIMARY KEY,
	at     INTEGER NOT NULL,
	entry  TEXT NOT NULL, -- JSON
	hash   BLOB NOT NULL
) STRICT;
CREATE TABLE head (
	one        INTEGER PRIMARY KEY CHECK (one = 1),
	generation INTEGER NOT NULL,
	entries    INTEGER NOT NULL,
	hash       BLOB NOT NULL
) STRICT;
INSERT INTO head VALUES (1, 0, 0, zeroblob(32));
`, `
CREATE INDEX tool_name ON tool (full_name);
CREATE INDEX audit_build ON audit (entry->>'scope', at) WHERE entry->>'kind' IN ('write', 'refuse');
`, `
-- What callers got wrong counted against the tools. Of calls that are not kept any more nothing is known.
UPDATE usage SET failures = failures - (SELECT count(*) FROM call WHERE call.scope = usage.scope AND call.extension = usage.extension
	AND call.tool = usage.tool AND outcome IN ('input', 'revoked', 'cancelled', 'fault'));
`, `
ALTER TABLE release ADD COLUMN signer TEXT NOT NULL DEFAULT '';
`, `
DROP INDEX release_pending;
CREATE UNIQUE INDEX release_pending ON release (scope, name, author) WHERE state = 'pending';
`, `
DROP INDEX audit_build;
CREATE INDEX audit_build ON audit (entry->>'scope', at) WHERE entry->>'kind' IN ('write', 'refuse', 'generate');
`, `
-- Up to which entry the log was moved to archives, and its hash.
ALTER TABLE head ADD COLUMN first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN first_hash BLOB NOT NULL DEFAULT x'0000000000000000000000000000000000000000000000000000000000000000';
`, `
-- It was a counter, which a store that is restored from a backup would reach again with other releases.
UPDATE head SET generation = random();
`, `
-- An object's data goes on in its pieces.
CREATE TABLE piece (
	object TEXT    NOT NULL,
	n      INTEGER NOT NULL, -- from 1
	data   BLOB    NOT NULL,
	PRIMARY KEY (object, n)
) STRICT;

-- Objects that no version has yet: their version is still being written, or was given up.
CREATE TABLE unfinished (
	object TEXT    PRIMARY KEY,
	since  INTEGER NOT NULL -- when it was last written to
) STRICT, WITHOUT ROWID;
CREATE INDEX unfinished_since ON unfinished (since);

-- The row of tool_text, which cannot be found by its release without reading all.
ALTER TABLE tool ADD COLUMN text INTEGER;
UPDATE tool SET text = t.id FROM (SELECT rowid AS id, release, full_name FROM tool_text) t WHERE t.release = tool.release AND t.full_name = tool.full_name;
`, `
-- Tools are looked for among those of releases that are active or wait, however many there were. Those of releases that another one took the place of say nothing.
DELETE FROM tool WHERE release IN (SELECT id FROM release WHERE state IN ('superseded', 'withdrawn'));
ALTER TABLE tool ADD COLUMN live INTEGER NOT NULL DEFAULT 1;
UPDATE tool SET live = 0 WHERE release NOT IN (SELECT id FROM release WHERE state IN ('active', 'pending'));
CREATE INDEX tool_live ON tool (full_name) WHERE live = 1;
CREATE TRIGGER release_replaced AFTER UPDATE OF state ON release WHEN new.state IN ('superseded', 'withdrawn') BEGIN
	DELETE FROM tool WHERE release = new.id;
END;
CREATE TRIGGER release_ended AFTER UPDATE OF state ON release WHEN new.state NOT IN ('active', 'pending', 'superseded', 'withdrawn') BEGIN
	UPDATE tool SET live = 0 WHERE release = new.id;
END;
CREATE INDEX release_live ON release (scope, name) WHERE state IN ('active', 'pending');
`}}

// DamagedError reports a part of the store that something else changed.
type DamagedError struct {
	// Digest names the part: its SHA-256 in hex, or "request" and the number of a release.
	Digest string
	Reason string
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the extension store is damaged: %s: %s", e.Digest, e.Reason)
}

// change tells all processes that the active releases have changed, once the transaction is committed.
func (m *Manager) change(ctx context.Context, c *sqlite.Conn) error {
	m.options.step("change")
	if err := m.stamp.Clear(); err != nil {
		return abi.Errorf(abi.CodeUnavailable, "%s: %v", schema.Kind, err)
	}
	m.options.step("cleared")
	_, err := c.Exec(ctx, "UPDATE head SET generation = random()")
	return err
}

func generation(ctx context.Context, c *sqlite.Conn) (n int64, err error) {
	err = c.Row(ctx, "SELECT generation FROM head").Scan(&n)
	return n, err
}
