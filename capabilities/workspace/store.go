// Package workspace keeps durable directories of files: the capability stile:capability/workspace, in a SQLite file ([Store]) or in
// a directory of the machine ([Disk]). In a store, acknowledged writes survive kill -9 and power loss, every operation happens
// completely or not at all, replaced contents are kept for a while, and several processes may use one store at once. A handle names
// a directory. No path and no link leads out of that directory.
package workspace

import (
	"cmp"
	"context"
	"time"

	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/turns"
)

// DefaultBytes is how much the files of a workspace hold together unless options say otherwise.
const DefaultBytes = 1 << 30

// Options configures a store. The zero value of a field means its default.
type Options struct {
	// Bytes is how much the files of one workspace may hold together. Default 1 GiB.
	Bytes int64
	// Files is how many files and directories one workspace may have. Default 100,000. Bytes does not count their paths of up to 4
	// KiB. If that matters, as with small Bytes, Files bounds the disk space.
	Files int64
	// Revisions is how many earlier contents of one path are kept. Default 32.
	Revisions int64
	// HistoryBytes is how much the earlier contents in one workspace may hold together; the oldest are deleted first. Default 1 GiB.
	// There are never more than four for each file that Files allows.
	HistoryBytes int64
	// Snapshots is how many snapshots one workspace may have. Default 100. Together they have at most ten times the files and four
	// times the bytes that Files and Bytes allow.
	Snapshots int64
	// Room returns how much the workspaces of one owner, and all workspaces, may take together on disk: files, history, snapshots, and paths, each
	// counted as if nothing were shared. Default: no limit.
	Room func() capability.Room
	// BlobBytes is how much all open blobs read from the store may hold together. Default 1 GiB.
	BlobBytes int64
	// BlobDir is where blobs over 1 MiB are kept while they are open. Default os.TempDir.
	BlobDir string
	// Now is the clock for the times of files. Default time.Now.
	Now func() time.Time
}

// Store is a file of workspaces. It is safe for concurrent use. The caller of Open closes it.
type Store struct {
	db      *sqlite.DB
	options Options
	blobs   *blob.Quota
	batch   int // files in one transaction; tests lower it
	search  *turns.Places
	recent  recent

	listings listings
}

// Open opens the store in file, and makes the file if it is missing. Its folder must exist. ctx bounds only the opening.
func Open(ctx context.Context, file string, options Options) (*Store, error) {
	options.Bytes = cmp.Or(options.Bytes, DefaultBytes)
	options.Files = cmp.Or(options.Files, 100_000)
	options.Revisions = cmp.Or(options.Revisions, 32)
	options.HistoryBytes = cmp.Or(options.HistoryBytes, 1<<30)
	options.Snapshots = cmp.Or(options.Snapshots, 100)
	options.BlobBytes = cmp.Or(options.BlobBytes, 1<<30)
	if options.Now == nil {
		options.Now = time.Now
	}
	db, err := sqlite.Open(ctx, file, schema)
	if err != nil {
		return nil, err
	}
	return &Store{db: db, options: options, blobs: blob.NewQuota("workspace blobs", options.BlobBytes), batch: defaultBatch, search: turns.New(maxSearches)}, nil
}

// Close waits for running operations and closes the file. It is idempotent. Later operations return abi.ErrUnavailable. Blobs read
// before stay valid.
func (s *Store) Close() error { return s.db.Close() }

// Fault is the first fault of the database or its disk that an operation met. It is nil if there was none.
func (s *Store) Fault() error { return s.db.Fault() }

// Workspace returns the root directory of the workspace of this name, with the right to change it. An unknown workspace is empty.
// Any name is allowed.
func (s *Store) Workspace(name string) *Directory {
	return &Directory{volume: &stored{s, name}}
}

// Workspaces returns the names of the workspaces that are not empty, in byte order.
func (s *Store) Workspaces(ctx context.Context) ([]string, error) {
	var all []string
	err := s.db.View(ctx, func(c *sqlite.Conn) error {
		for row, err := range c.Rows(ctx, `SELECT workspace FROM usage WHERE files > 0 ORDER BY workspace`) {
			var name string
			if err == nil {
				err = row.Scan(&name)
			}
			if err != nil {
				return err
			}
			all = append(all, name)
		}
		return nil
	})
	return all, err
}

// Has reports whether a workspace contains anything or has a history.
func (s *Store) Has(ctx context.Context, workspace string) (has bool, err error) {
	err = s.db.View(ctx, func(c *sqlite.Conn) error {
		return c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM usage WHERE workspace = ? AND files + revisions > 0)`, workspace).Scan(&has)
	})
	return has, err
}

// Backup writes a copy of the whole store, at one moment, to a file that must not exist. Writers may continue.
func (s *Store) Backup(ctx context.Context, file string) error { return s.db.Backup(ctx, file) }

// stored is one workspace of a store.
type stored struct {
	store *Store
	name  string
}

func (v *stored) blobs() blob.Options {
	return blob.Options{Dir: v.store.options.BlobDir, Quota: v.store.blobs, Lasts: true}
}

// maxSearches leaves a connection to reads. A guest keeps its turn to execute during one, and others would wait for that.
const maxSearches = sqlite.Readers - 1

func (v *stored) searching() *turns.Places { return v.store.search }

func (v *stored) tree(ctx context.Context, c *sqlite.Conn, base string) *tree {
	return &tree{ctx: context.WithoutCancel(ctx), long: ctx, conn: c, options: &v.store.options, workspace: v.name, base: base, batch: v.store.batch, store: v.store}
}
