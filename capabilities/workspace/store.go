// Package workspace keeps durable directories of files: the capability stile:capability/workspace, on SQLite. What was
// acknowledged survives kill -9 and power loss, every operation happens wholly or not at all, and several processes may
// use one store at once. A handle names a directory, and no path given to it leads out of that directory.
package workspace

import (
	"cmp"
	"context"
	"time"

	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/sqlite"
)

// Options configures a store. The zero value of a field means its default.
type Options struct {
	// Bytes is the most that the files of one workspace may hold together. Default 1 GiB.
	Bytes int64
	// Files is the most files and directories in one workspace. Default 100,000.
	Files int64
	// BlobBytes is the most that all open blobs read from the store may hold together. Default 1 GiB.
	BlobBytes int64
	// BlobDir is where blobs over 1 MiB are kept while they are open. Default os.TempDir.
	BlobDir string
	// Now is the clock for the times of files. Default time.Now.
	Now func() time.Time
}

// A node is a file or a directory; the root of a workspace is none. Its parent is a whole path, "" at the top, so that
// the nodes below a directory are one range of the index. The content of a file is its chunks, each but the last of
// chunkSize bytes. Triggers keep usage exact, whatever statement changes node.
var schema = sqlite.Schema{Kind: "workspace store", ID: 0x73747773 /* stws */, Migrations: []string{`
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
`}}

// Store is a file of workspaces. It is safe for concurrent use; whoever opened it closes it.
type Store struct {
	db      *sqlite.DB
	options Options
	blobs   *blob.Quota
}

// Open opens the store in file and makes it if it is missing; its folder must exist. ctx bounds the opening only.
func Open(ctx context.Context, file string, options Options) (*Store, error) {
	options.Bytes = cmp.Or(options.Bytes, 1<<30)
	options.Files = cmp.Or(options.Files, 100_000)
	options.BlobBytes = cmp.Or(options.BlobBytes, 1<<30)
	if options.Now == nil {
		options.Now = time.Now
	}
	db, err := sqlite.Open(ctx, file, schema)
	if err != nil {
		return nil, err
	}
	return &Store{db: db, options: options, blobs: blob.NewQuota("workspace blobs", options.BlobBytes)}, nil
}

// Close waits for operations under way and closes the file. It is idempotent; later operations answer
// abi.ErrUnavailable. Blobs read before stay good.
func (s *Store) Close() error { return s.db.Close() }

// Workspace returns the root directory of the workspace of this name, with the right to change it; an unknown workspace
// is empty. Any name will do.
func (s *Store) Workspace(name string) *Directory { return &Directory{store: s, workspace: name} }
