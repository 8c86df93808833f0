package workspace

import "github.com/stilehost/stile/internal/sqlite"

// MaxRow is the largest row of the store, in bytes. Only another program can have written a larger one.
const MaxRow = 4 << 20

// A node is a file, a directory or a link. The root of a workspace has no node. A node's parent is a whole path, "" at the top, so
// that the nodes below a directory are one range of the index. A content never changes. Nodes, their copies, revisions and snapshots
// share it. A content of at most chunkSize bytes is one row. A larger one consists of pieces of chunkSize bytes, the last one
// shorter; equal pieces are stored once, and the first pieces may belong to another content. Whatever statement runs, triggers keep
// usage exact, make a revision of every content that a path loses, and delete contents and pieces that nothing uses any more.
var schema = sqlite.Schema{Kind: "workspace store", ID: 0x73747773 /* stws */, MaxRow: MaxRow, Migrations: []string{`
CREATE TABLE node (
	id        INTEGER PRIMARY KEY,
	workspace TEXT    NOT NULL,
	parent    TEXT    NOT NULL,
	name      TEXT    NOT NULL,
	kind      INTEGER NOT NULL,
	size      INTEGER NOT NULL,
	modified  INTEGER NOT NULL,
	UNIQUE (workspace, parent, name)
) STRICT;

CREATE TABLE chunk (
	node  INTEGER NOT NULL REFERENCES node ON DELETE CASCADE,
	n     INTEGER NOT NULL,
	bytes BLOB    NOT NULL,
	PRIMARY KEY (node, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
	workspace TEXT    NOT NULL PRIMARY KEY,
	files     INTEGER NOT NULL,
	bytes     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER node_insert AFTER INSERT ON node BEGIN
	INSERT INTO usage VALUES (new.workspace, 1, new.size)
	ON CONFLICT DO UPDATE SET files = files + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER node_update AFTER UPDATE OF size ON node BEGIN
	UPDATE usage SET bytes = bytes + new.size - old.size WHERE workspace = new.workspace;
END;

CREATE TRIGGER node_delete AFTER DELETE ON node BEGIN
	UPDATE usage SET files = files - 1, bytes = bytes - old.size WHERE workspace = old.workspace;
END;
`, `
CREATE TABLE content (
	id    INTEGER PRIMARY KEY,
	size  INTEGER NOT NULL,
	bytes BLOB
) STRICT;

CREATE TABLE piece (
	id     INTEGER PRIMARY KEY,
	digest BLOB UNIQUE,
	bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE part (
	content INTEGER NOT NULL REFERENCES content,
	n       INTEGER NOT NULL,
	piece   INTEGER NOT NULL REFERENCES piece,
	PRIMARY KEY (content, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX part_piece ON part (piece);

INSERT INTO content SELECT id, size, CASE WHEN size <= 65536 THEN coalesce((SELECT bytes FROM chunk WHERE node = node.id), x'') END
	FROM node WHERE kind = 0;
INSERT INTO piece SELECT row_number() OVER (ORDER BY node, n), NULL, chunk.bytes
	FROM chunk JOIN node ON node.id = node WHERE size > 65536 ORDER BY node, n;
INSERT INTO part SELECT node, n, row_number() OVER (ORDER BY node, n)
	FROM chunk JOIN node ON node.id = node WHERE size > 65536 ORDER BY node, n;
DROP TABLE chunk;

ALTER TABLE node ADD COLUMN mode INTEGER NOT NULL DEFAULT 420;
ALTER TABLE node ADD COLUMN content INTEGER REFERENCES content;
ALTER TABLE node ADD COLUMN target TEXT NOT NULL DEFAULT '';
UPDATE node SET content = id WHERE kind = 0;
UPDATE node SET mode = 493 WHERE kind = 1;
CREATE INDEX node_content ON node (content) WHERE content IS NOT NULL;

CREATE TABLE revision (
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	workspace TEXT    NOT NULL,
	parent    TEXT    NOT NULL,
	name      TEXT    NOT NULL,
	n         INTEGER NOT NULL,
	size      INTEGER NOT NULL,
	modified  INTEGER NOT NULL,
	mode      INTEGER NOT NULL,
	content   INTEGER NOT NULL REFERENCES content,
	UNIQUE (workspace, parent, name, n)
) STRICT;
CREATE INDEX revision_age ON revision (workspace, id);
CREATE INDEX revision_content ON revision (content);

CREATE TABLE snapshot (
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	workspace TEXT    NOT NULL,
	base      TEXT    NOT NULL,
	taken     INTEGER NOT NULL,
	files     INTEGER NOT NULL,
	bytes     INTEGER NOT NULL
) STRICT;
CREATE INDEX snapshot_base ON snapshot (workspace, base);

CREATE TABLE kept (
	snapshot INTEGER NOT NULL REFERENCES snapshot,
	parent   TEXT    NOT NULL,
	name     TEXT    NOT NULL,
	kind     INTEGER NOT NULL,
	size     INTEGER NOT NULL,
	modified INTEGER NOT NULL,
	mode     INTEGER NOT NULL,
	content  INTEGER REFERENCES content,
	target   TEXT    NOT NULL,
	PRIMARY KEY (snapshot, parent, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX kept_content ON kept (content) WHERE content IS NOT NULL;

ALTER TABLE usage ADD COLUMN revisions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN history INTEGER NOT NULL DEFAULT 0;

DROP TRIGGER node_insert;
CREATE TRIGGER node_insert AFTER INSERT ON node BEGIN
	INSERT INTO usage (workspace, files, bytes) VALUES (new.workspace, 1, new.size)
	ON CONFLICT DO UPDATE SET files = files + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER node_lose AFTER UPDATE OF parent, name, content ON node
	WHEN old.kind = 0 AND (old.parent, old.name, old.content) IS NOT (new.parent, new.name, new.content) BEGIN
	INSERT INTO revision (workspace, parent, name, n, size, modified, mode, content)
	SELECT old.workspace, old.parent, old.name, 1 + coalesce(max(n), 0), old.size, old.modified, old.mode, old.content
	FROM revision WHERE workspace = old.workspace AND parent = old.parent AND name = old.name;
END;

CREATE TRIGGER node_gone AFTER DELETE ON node WHEN old.kind = 0 BEGIN
	INSERT INTO revision (workspace, parent, name, n, size, modified, mode, content)
	SELECT old.workspace, old.parent, old.name, 1 + coalesce(max(n), 0), old.size, old.modified, old.mode, old.content
	FROM revision WHERE workspace = old.workspace AND parent = old.parent AND name = old.name;
END;

CREATE TRIGGER revision_insert AFTER INSERT ON revision BEGIN
	UPDATE usage SET revisions = revisions + 1, history = history + new.size WHERE workspace = new.workspace;
END;

CREATE TRIGGER revision_delete AFTER DELETE ON revision BEGIN
	UPDATE usage SET revisions = revisions - 1, history = history - old.size WHERE workspace = old.workspace;
	DELETE FROM content WHERE id = old.content AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content);
END;

CREATE TRIGGER snapshot_delete BEFORE DELETE ON snapshot BEGIN
	DELETE FROM kept WHERE snapshot = old.id;
END;

CREATE TRIGGER kept_delete AFTER DELETE ON kept WHEN old.content IS NOT NULL BEGIN
	DELETE FROM content WHERE id = old.content AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content);
END;

CREATE TRIGGER content_delete BEFORE DELETE ON content BEGIN
	DELETE FROM part WHERE content = old.id;
END;

CREATE TRIGGER part_delete AFTER DELETE ON part BEGIN
	DELETE FROM piece WHERE id = old.piece AND NOT EXISTS (SELECT 1 FROM part WHERE piece = old.piece);
END;
`, `
-- The rest of an operation that is committed and too large for one transaction. Whatever is done with the workspace is done after it.
CREATE TABLE task (
	workspace TEXT    NOT NULL PRIMARY KEY,
	kind      INTEGER NOT NULL,
	source    TEXT    NOT NULL,
	target    TEXT    NOT NULL,
	snapshot  INTEGER NOT NULL,
	at        INTEGER NOT NULL,
	parent    TEXT    NOT NULL, -- with name: how far it has come
	name      TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Contents in pieces that nothing has: those that are still written, and from a time on (Unix milliseconds) those to be deleted.
CREATE TABLE garbage (
	content INTEGER PRIMARY KEY REFERENCES content,
	since   INTEGER NOT NULL
) STRICT;
CREATE INDEX garbage_since ON garbage (since);

-- No content has the number of an earlier one.
CREATE TABLE serial (last INTEGER NOT NULL) STRICT;
INSERT INTO serial SELECT coalesce(max(id), 0) FROM content;

ALTER TABLE usage ADD COLUMN version INTEGER NOT NULL DEFAULT 0;

DROP TRIGGER revision_delete;
CREATE TRIGGER revision_delete AFTER DELETE ON revision BEGIN
	UPDATE usage SET revisions = revisions - 1, history = history - old.size WHERE workspace = old.workspace;
	INSERT OR IGNORE INTO garbage SELECT id, 0 FROM content WHERE id = old.content AND bytes IS NULL
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content);
	DELETE FROM content WHERE id = old.content AND bytes IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content);
END;

DROP TRIGGER kept_delete;
CREATE TRIGGER kept_delete AFTER DELETE ON kept WHEN old.content IS NOT NULL BEGIN
	INSERT OR IGNORE INTO garbage SELECT id, 0 FROM content WHERE id = old.content AND bytes IS NULL
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content);
	DELETE FROM content WHERE id = old.content AND bytes IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content);
END;
`, `
-- A large content may begin with the first pieces of another one, its base: then parts are only those that follow. So what is appended
-- to a large file takes no row for each piece that was there.
CREATE TABLE prefix (
	content INTEGER PRIMARY KEY REFERENCES content,
	base    INTEGER NOT NULL REFERENCES content,
	pieces  INTEGER NOT NULL
) STRICT;
CREATE INDEX prefix_base ON prefix (base);

DROP TRIGGER revision_delete;
CREATE TRIGGER revision_delete AFTER DELETE ON revision BEGIN
	UPDATE usage SET revisions = revisions - 1, history = history - old.size WHERE workspace = old.workspace;
	INSERT OR IGNORE INTO garbage SELECT id, 0 FROM content WHERE id = old.content AND bytes IS NULL
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM prefix WHERE base = old.content);
	DELETE FROM content WHERE id = old.content AND bytes IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content);
END;

DROP TRIGGER kept_delete;
CREATE TRIGGER kept_delete AFTER DELETE ON kept WHEN old.content IS NOT NULL BEGIN
	INSERT OR IGNORE INTO garbage SELECT id, 0 FROM content WHERE id = old.content AND bytes IS NULL
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM prefix WHERE base = old.content);
	DELETE FROM content WHERE id = old.content AND bytes IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content);
END;

DROP TRIGGER content_delete;
CREATE TRIGGER content_delete BEFORE DELETE ON content BEGIN
	DELETE FROM part WHERE content = old.id;
	DELETE FROM prefix WHERE content = old.id;
END;

CREATE TRIGGER prefix_delete AFTER DELETE ON prefix BEGIN
	INSERT OR IGNORE INTO garbage SELECT old.base, 0 WHERE NOT EXISTS (SELECT 1 FROM prefix WHERE base = old.base)
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.base)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.base)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.base);
END;
`, `
-- What nodes and revisions take besides their contents, at least half: a row and its place in an index. Both have the path, and the parts of an
-- index that are longer than 1,002 bytes take pages of their own.
ALTER TABLE node ADD COLUMN long INTEGER AS (octet_length(workspace) + octet_length(parent) + octet_length(name)) VIRTUAL;
ALTER TABLE node ADD COLUMN room INTEGER AS (192 + long + octet_length(target) + iif(long + octet_length(target) > 4000, 4096, 0)
	+ iif(long <= 970, (long + 24) * 3 / 2, 512 + (long - 970 + 4091) / 4092 * 4096)) VIRTUAL;
ALTER TABLE revision ADD COLUMN long INTEGER AS (octet_length(workspace) + octet_length(parent) + octet_length(name)) VIRTUAL;
ALTER TABLE revision ADD COLUMN room INTEGER AS (192 + long + iif(long > 4000, 4096, 0) -- that of its file
	+ iif(long <= 970, (long + 24) * 3 / 2, 512 + (long - 970 + 4091) / 4092 * 4096)) VIRTUAL;
ALTER TABLE snapshot ADD COLUMN paths INTEGER NOT NULL DEFAULT 0; -- room of its nodes, when it was taken

-- paths is the room of nodes and revisions, planned what a task may add, and room the sum of all that the workspace takes.
ALTER TABLE usage ADD COLUMN paths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN planned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN room INTEGER NOT NULL DEFAULT 0;

-- The room of the workspaces of an owner: those whose names are the same up to the last dot.
CREATE TABLE owned (
	owner TEXT    NOT NULL PRIMARY KEY,
	bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

UPDATE snapshot SET paths = 1024 + (SELECT coalesce(sum(192 + 5 * (octet_length(parent) + octet_length(name) + octet_length(target))), 0) FROM kept WHERE snapshot = snapshot.id);
UPDATE usage SET paths = (SELECT coalesce(sum(room), 0) FROM node WHERE node.workspace = usage.workspace)
	+ (SELECT coalesce(sum(room), 0) FROM revision WHERE revision.workspace = usage.workspace);
UPDATE usage SET room = 512 + bytes + history + paths + (SELECT coalesce(sum(bytes + paths), 0) FROM snapshot WHERE snapshot.workspace = usage.workspace);
INSERT INTO owned SELECT rtrim(workspace, replace(workspace, '.', '')) AS owner, sum(room) FROM usage GROUP BY owner;

DROP TRIGGER node_insert;
CREATE TRIGGER node_insert AFTER INSERT ON node BEGIN
	INSERT INTO usage (workspace, files, bytes, paths) VALUES (new.workspace, 1, new.size, new.room)
	ON CONFLICT DO UPDATE SET files = files + 1, bytes = bytes + excluded.bytes, paths = paths + excluded.paths;
END;

DROP TRIGGER node_update;
CREATE TRIGGER node_update AFTER UPDATE OF size, parent, name, target ON node WHEN (old.size, old.room) != (new.size, new.room) BEGIN
	UPDATE usage SET bytes = bytes + new.size - old.size, paths = paths + new.room - old.room WHERE workspace = new.workspace;
END;

DROP TRIGGER node_delete;
CREATE TRIGGER node_delete AFTER DELETE ON node BEGIN
	UPDATE usage SET files = files - 1, bytes = bytes - old.size, paths = paths - old.room WHERE workspace = old.workspace;
END;

DROP TRIGGER revision_insert;
CREATE TRIGGER revision_insert AFTER INSERT ON revision BEGIN
	UPDATE usage SET revisions = revisions + 1, history = history + new.size, paths = paths + new.room WHERE workspace = new.workspace;
END;

DROP TRIGGER revision_delete;
CREATE TRIGGER revision_delete AFTER DELETE ON revision BEGIN
	UPDATE usage SET revisions = revisions - 1, history = history - old.size, paths = paths - old.room WHERE workspace = old.workspace;
	INSERT OR IGNORE INTO garbage SELECT id, 0 FROM content WHERE id = old.content AND bytes IS NULL
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM prefix WHERE base = old.content);
	DELETE FROM content WHERE id = old.content AND bytes IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM node WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM revision WHERE content = old.content)
		AND NOT EXISTS (SELECT 1 FROM kept WHERE content = old.content);
END;
`, sqlite.OnceTable}}
