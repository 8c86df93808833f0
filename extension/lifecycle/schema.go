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
`, `
-- A version whose component is '' is built again from its source. One whose record is '' has lost its source too.
INSERT OR IGNORE INTO object VALUES ('', x'');
CREATE INDEX version_component ON version (component);

-- What versions take on disk.
CREATE TABLE content (
	id        INTEGER PRIMARY KEY,
	version   TEXT    NOT NULL UNIQUE REFERENCES version,
	author    TEXT    NOT NULL,
	ran       INTEGER NOT NULL, -- whether it was ever active, 0 or 1
	source    INTEGER NOT NULL, -- bytes of everything but the component; 0 when it was dropped
	component INTEGER NOT NULL  -- bytes of the component; 0 when it was dropped
) STRICT;
CREATE INDEX content_source ON content (author, ran) WHERE source > 0;
CREATE INDEX content_component ON content (author) WHERE component > 0;
CREATE TABLE stored (
	author TEXT    PRIMARY KEY,
	bytes  INTEGER NOT NULL -- of its versions
) STRICT, WITHOUT ROWID;
CREATE TRIGGER content_added AFTER INSERT ON content BEGIN
	INSERT INTO stored VALUES (new.author, new.source + new.component) ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER content_changed AFTER UPDATE ON content BEGIN
	UPDATE stored SET bytes = bytes - old.source - old.component WHERE author = old.author;
	INSERT INTO stored VALUES (new.author, new.source + new.component) ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
ALTER TABLE unfinished ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE unfinished ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

-- The versions that an object belongs to. One that belongs to none can go.
CREATE TABLE part (
	object  TEXT    NOT NULL,
	content INTEGER NOT NULL,
	PRIMARY KEY (object, content)
) STRICT, WITHOUT ROWID;
CREATE INDEX part_content ON part (content);

INSERT INTO content (version, author, ran, source, component)
	SELECT digest, CASE WHEN json_valid(record) THEN coalesce(record->>'author', '') ELSE '' END,
		EXISTS (SELECT 1 FROM release WHERE release.digest = version.digest AND state NOT IN ('pending', 'denied', 'withdrawn')), 1, 1
	FROM version ORDER BY rowid;
INSERT INTO part WITH whole AS
		(SELECT content.id, version.component, CASE WHEN json_valid(record) THEN record ELSE '{}' END AS record FROM content JOIN version ON digest = version)
	SELECT object, id FROM (
		SELECT component AS object, id FROM whole UNION SELECT record->>'manifest', id FROM whole UNION SELECT record->>'lock', id FROM whole
		UNION SELECT value, whole.id FROM whole, json_each(record, '$.files')
	) WHERE object IN (SELECT digest FROM object);
UPDATE content SET source = rest, component = own FROM (
	WITH size AS MATERIALIZED (SELECT digest, 512 + length(data) + (SELECT coalesce(sum(length(piece.data)), 0) FROM piece WHERE piece.object = digest) AS size FROM object)
	SELECT content.id AS of, coalesce(sum(iif(size.digest = version.component, size, 0)), 0) AS own,
		coalesce(sum(iif(size.digest = version.component, 0, size)), 0) + octet_length(record) + 512 AS rest
	FROM content JOIN version ON version.digest = content.version LEFT JOIN part ON part.content = content.id LEFT JOIN size ON size.digest = part.object GROUP BY content.id
) WHERE id = of;
`, `
-- Builds of the last hour, each from before it began.
CREATE TABLE build (
	id    INTEGER PRIMARY KEY,
	scope TEXT    NOT NULL,
	at    INTEGER NOT NULL
) STRICT;
CREATE INDEX build_at ON build (at);
CREATE INDEX build_scope ON build (scope, at);
DROP INDEX audit_build;
`, `
-- Only durations of calls are ever read. They begin anew.
DROP TABLE call;
CREATE TABLE call (
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	scope     TEXT NOT NULL,
	extension TEXT NOT NULL,
	tool      TEXT NOT NULL,
	duration  INTEGER NOT NULL -- microseconds
) STRICT;
CREATE INDEX call_tool ON call (scope, extension, tool, id);
CREATE INDEX call_scope ON call (scope, id);
CREATE INDEX usage_last ON usage (scope, last_used);
`, `
-- How many drafts of a scope were refused before they were built, since when: those with an entry in the audit log, and the others.
CREATE TABLE refusal (
	scope   TEXT    PRIMARY KEY,
	since   INTEGER NOT NULL,
	entries INTEGER NOT NULL,
	more    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`, `
-- What the entries of calls in the audit log take. Those up to dropped are no longer in the log, and up to swept they are deleted.
ALTER TABLE head ADD COLUMN call_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN swept INTEGER NOT NULL DEFAULT 0;
UPDATE head SET call_bytes = (SELECT coalesce(sum(length(entry) + 64), 0) FROM audit WHERE id > first AND entry LIKE '{"kind":"call"%');
`, `
-- What transactions look for among the releases of an extension, however many there were.
CREATE INDEX release_refused ON release (scope, name) WHERE state IN ('denied', 'revoked');
CREATE INDEX release_removed ON release (scope, name, digest, author) WHERE state = 'removed';
CREATE INDEX release_accepted ON release (scope, name, decided) WHERE state IN ('active', 'superseded') AND decider != 'policy';
CREATE INDEX release_ended ON release (scope, name) WHERE state IN ('superseded', 'revoked');
CREATE INDEX release_ended_digest ON release (scope, name, digest) WHERE state IN ('superseded', 'revoked');
`, `
-- Words are looked up in memory, for all viewers of a release.
DROP TABLE tool_text;
ALTER TABLE tool DROP COLUMN text;
`, `
-- What persons configured of extensions: JSON values.
CREATE TABLE var (
	scope     TEXT NOT NULL,
	extension TEXT NOT NULL,
	name      TEXT NOT NULL,
	value     TEXT NOT NULL,
	PRIMARY KEY (scope, extension, name)
) STRICT, WITHOUT ROWID;
`, `
-- What a release may call of other extensions, as it was decided: JSON, see the type calleeRecord. What was withdrawn or removed never comes back.
CREATE TABLE callee (
	release INTEGER PRIMARY KEY REFERENCES release ON DELETE CASCADE,
	callees TEXT    NOT NULL
) STRICT;
CREATE TRIGGER release_without_callees AFTER UPDATE OF state ON release WHEN new.state IN ('withdrawn', 'removed') BEGIN
	DELETE FROM callee WHERE release = new.id;
END;
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
