// Package kv keeps small durable values under names: the capability stile:capability/kv, on SQLite. Acknowledged writes
// survive kill -9 and power loss. Several processes may use one store at once.
package kv

import (
	"cmp"
	"context"

	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/sqlite"
)

// Options are the limits of each bucket of a store. The zero value of a field means its default.
type Options struct {
	// KeyBytes is the longest key. Default 1 KiB.
	KeyBytes int
	// ValueBytes is the longest value. Default 1 MiB.
	ValueBytes int
	// BucketBytes is how much the entries of a bucket may take together. An entry of up to 128 bytes counts as many, a larger one up to
	// 1.5 times as many, and one above 1,000 bytes the pages of 4 KiB that it takes. Default 64 MiB.
	BucketBytes int64
	// Keys is how many keys a bucket may have. Default 100,000.
	Keys int64
	// Room returns how much the buckets of one owner, and all buckets, may take together; they count as for BucketBytes, and 64
	// bytes for each key and 256 for each bucket.
	// Default: no limit.
	Room func() capability.Room
}

// A key is a BLOB because blobs sort by their bytes. Triggers keep usage exact, whatever statement changes entry.
//
// The size of an entry is at least half of what it can take on disk. SQLite keeps up to 1,002 bytes of a row together, and the rest in
// pages of 4,092 bytes, not shared with others. After deletions, pages of small rows can stay a third full. The first 64 bytes of each
// row count once only, because the number of keys bounds them.
var schema = sqlite.Schema{Kind: "kv store", ID: 0x73746b76 /* stkv */, Migrations: []string{`
CREATE TABLE entry (
	bucket TEXT NOT NULL,
	key    BLOB NOT NULL,
	value  TEXT NOT NULL,
	PRIMARY KEY (bucket, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
	bucket TEXT NOT NULL PRIMARY KEY,
	keys   INTEGER NOT NULL,
	bytes  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER entry_insert AFTER INSERT ON entry BEGIN
	INSERT INTO usage VALUES (new.bucket, 1, length(new.key) + octet_length(new.value))
	ON CONFLICT DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER entry_update AFTER UPDATE ON entry BEGIN
	UPDATE usage SET bytes = bytes + octet_length(new.value) - octet_length(old.value) WHERE bucket = new.bucket;
END;

CREATE TRIGGER entry_delete AFTER DELETE ON entry BEGIN
	UPDATE usage SET keys = keys - 1, bytes = bytes - length(old.key) - octet_length(old.value) WHERE bucket = old.bucket;
END;
`, `
ALTER TABLE entry ADD COLUMN bytes INTEGER AS (length(key) + octet_length(value)) VIRTUAL;
ALTER TABLE entry ADD COLUMN row INTEGER AS (octet_length(bucket) + bytes + 8) VIRTUAL;
ALTER TABLE entry ADD COLUMN size INTEGER AS (
	CASE WHEN row <= 1002 THEN max(bytes, (row - 64) * 3 / 2) ELSE 512 + (row - 1002 + 4091) / 4092 * 4096 END
) VIRTUAL;

DROP TRIGGER entry_insert;
DROP TRIGGER entry_update;
DROP TRIGGER entry_delete;

CREATE TRIGGER entry_insert AFTER INSERT ON entry BEGIN
	INSERT INTO usage VALUES (new.bucket, 1, new.size)
	ON CONFLICT DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER entry_update AFTER UPDATE ON entry BEGIN
	UPDATE usage SET bytes = bytes + new.size - old.size WHERE bucket = new.bucket;
END;

CREATE TRIGGER entry_delete AFTER DELETE ON entry BEGIN
	UPDATE usage SET keys = keys - 1, bytes = bytes - old.size WHERE bucket = old.bucket;
END;

UPDATE usage SET bytes = (SELECT ifnull(sum(size), 0) FROM entry WHERE entry.bucket = usage.bucket);
`, `
-- What the buckets of an owner take: those whose names are the same up to the last dot. Here each row counts its first 64 bytes too, because
-- nothing bounds the number of buckets. An empty bucket leaves nothing.
CREATE TABLE owned (
	owner TEXT    NOT NULL PRIMARY KEY,
	bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

DELETE FROM usage WHERE keys = 0;
INSERT INTO owned SELECT rtrim(bucket, replace(bucket, '.', '')) AS owner, sum(bytes + 64 * keys + 256) FROM usage GROUP BY owner;

CREATE TRIGGER usage_insert AFTER INSERT ON usage BEGIN
	INSERT INTO owned VALUES (rtrim(new.bucket, replace(new.bucket, '.', '')), new.bytes + 64 * new.keys + 256)
	ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER usage_update AFTER UPDATE ON usage BEGIN
	UPDATE owned SET bytes = bytes + new.bytes - old.bytes + 64 * (new.keys - old.keys) WHERE owner = rtrim(new.bucket, replace(new.bucket, '.', ''));
	DELETE FROM usage WHERE bucket = new.bucket AND keys = 0;
END;

CREATE TRIGGER usage_delete AFTER DELETE ON usage BEGIN
	UPDATE owned SET bytes = bytes - old.bytes - 64 * old.keys - 256 WHERE owner = rtrim(old.bucket, replace(old.bucket, '.', ''));
	DELETE FROM owned WHERE owner = rtrim(old.bucket, replace(old.bucket, '.', '')) AND bytes = 0;
END;
`, sqlite.OnceTable}}

// Store is a file of buckets. It is safe for concurrent use. The caller of Open closes it.
type Store struct {
	db      *sqlite.DB
	options Options
}

// maxRow is the largest row in bytes, unless the options allow larger ones. Only another program, or one with other options, can have
// written a larger row.
const maxRow = 16 << 20

// Open opens the store in file, and makes the file if it is missing. Its folder must exist. ctx bounds only the opening.
func Open(ctx context.Context, file string, options Options) (*Store, error) {
	options.KeyBytes = cmp.Or(options.KeyBytes, 1<<10)
	options.ValueBytes = cmp.Or(options.ValueBytes, 1<<20)
	options.BucketBytes = cmp.Or(options.BucketBytes, 64<<20)
	options.Keys = cmp.Or(options.Keys, 100_000)
	limited := schema
	limited.MaxRow = max(maxRow, 2*(options.KeyBytes+options.ValueBytes))
	db, err := sqlite.Open(ctx, file, limited)
	if err != nil {
		return nil, err
	}
	return &Store{db: db, options: options}, nil
}

// Close waits for running operations and closes the file. It is idempotent. Later operations return [abi.ErrUnavailable].
func (s *Store) Close() error { return s.db.Close() }

// Fault is the first fault of the database or its disk that an operation met. It is nil if there was none.
func (s *Store) Fault() error { return s.db.Fault() }

// Bucket returns the bucket of this name. An unknown one is empty. Any name is allowed.
func (s *Store) Bucket(name string) *Bucket { return &Bucket{store: s, name: name} }
