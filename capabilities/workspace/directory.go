package workspace

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/sqlite"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/workspace.wit.
const Interface = "stile:capability/workspace@0.1.0"

// Directory is the right to read a directory and everything below it, in a workspace of a
// [Store] or on a [Disk]. Unless it is read-only, it also allows changes. It is immutable,
// safe for concurrent use, and lives as long as its store or disk. The directory need not
// exist: until something is written, it is empty.
//
// Paths are relative to the directory, with "/" between names and optionally in front. They are compared by bytes, in a workspace
// after Unicode normalisation (NFC). Links on the way are followed.
//
// A path that leads out of the directory, by its text or by a link, gives [abi.ErrDenied]. [abi.ErrInvalid] is the error of a path
// that is not UTF-8, has a control character or a backslash, has a name over 255 bytes, with a space at its beginning or end or a
// dot at its end, has over 4,096 bytes in all, leads through links with over 500 names, or needs over 256 missing directories. Every
// method can also fail with [abi.ErrNotFound], [abi.ErrUnavailable] for a fault of the disk, and the error of ctx. A method that
// changes something returns [abi.ErrDenied] on a read-only handle and [abi.ErrExhausted] above a limit of the workspace.
type Directory struct {
	volume   volume
	base     string // a path from the root: "" or "/notes"
	readOnly bool
	exact    bool          // names are used as written
	slice    time.Duration // of one call of Find or Grep, for tests
}

// Interface implements [abi.Capability].
func (d *Directory) Interface() string { return Interface }

// Size implements [abi.Sized].
func (d *Directory) Size() int { return len(d.base) }

// Repeat implements [abi.Repeatable]. A change in a workspace comes about once. In a directory of the machine nobody can tell.
func (d *Directory) Repeat(function string, _ []abi.Value) abi.Repeat {
	switch name := strings.TrimPrefix(function, "directory."); {
	case name == "subdirectory" || name == "read-only":
		return abi.Derives
	case strings.HasPrefix(name, "read") || slices.Contains([]string{"list", "find", "grep", "diff", "diff-revision", "stat", "history", "snapshots"}, name):
		return abi.Reads
	}
	if _, stored := d.volume.(*stored); stored {
		return abi.Repeats
	}
	return abi.Interrupts
}

// Restorer returns what restores the blobs of a durable call that slept.
func (d *Directory) Restorer() abi.Restorer { return blobRestorer{d.volume} }

type blobRestorer struct{ volume volume }

// Restore implements [abi.Restorer].
func (r blobRestorer) Restore(_ context.Context, resource string, state []byte) (any, error) {
	return blob.Restore(resource, state, r.volume.blobs())
}

// Remembers implements [abi.Rememberer].
func (d *Directory) Remembers(ctx context.Context) (bool, error) {
	_, came, err := d.remembered(ctx)
	return came, err
}

// remembered returns what the workspace keeps of the answer of an operation of a durable call that is made again, if it has come about.
func (d *Directory) remembered(ctx context.Context) (answer []byte, came bool, err error) {
	v, stored := d.volume.(*stored)
	if !stored {
		return nil, false, nil
	}
	return sqlite.Marked(ctx, v.store.db)
}

// Quick implements [abi.Quick]. Methods that read are not among them: they wait until a change of a large directory is done.
func (*Directory) Quick() []string {
	return []string{"directory.subdirectory", "directory.read-only"}
}

// Lists implements [abi.Bounded].
func (*Directory) Lists() map[string]int {
	return map[string]int{
		"directory.read-bytes.result":          abi.MaxBytes,
		"directory.write-bytes.bytes":          abi.MaxBytes,
		"directory.append-bytes.bytes":         abi.MaxBytes,
		"directory.edit.replacements":          maxReplacements,
		"directory.list.result.entries":        maxEntries,
		"directory.find.result.paths":          maxEntries,
		"directory.grep.search.include":        maxGlobs,
		"directory.grep.search.exclude":        maxGlobs,
		"directory.grep.result.matches":        maxEntries,
		"directory.grep.result.matches.before": MaxContext,
		"directory.grep.result.matches.after":  MaxContext,
		"directory.history.result":             10_000,
		"directory.snapshots.result":           10_000,
	}
}

// Sub returns a handle on a directory below this one, whether it exists or not, with the same right to change it. No link
// on the way to it is followed, now or later.
func (d *Directory) Sub(path string) (*Directory, error) {
	normal, err := d.resolve("open", path)
	if err != nil {
		return nil, err
	}
	return d.sub(normal), nil
}

func (d *Directory) sub(place string) *Directory {
	sub := *d
	sub.base += place
	return &sub
}

// AsReadOnly returns a handle on the same directory without the right to change it. Handles derived from it cannot change it either.
func (d *Directory) AsReadOnly() *Directory {
	same := *d
	same.readOnly = true
	return &same
}

// Subdirectory returns a handle on an existing directory below this one, with the same right to change it. It resolves links now and
// not again later.
func (d *Directory) Subdirectory(ctx context.Context, path string) (*Directory, error) {
	normal, err := d.resolve("open", path)
	if err != nil {
		return nil, err
	}
	var sub *Directory
	err = d.view(ctx, "open", func(o *op) error {
		place, err := o.directory(normal)
		if err == nil {
			sub = d.sub(place)
		}
		return err
	})
	return sub, err
}

// ReadOnly is the method `read-only`: see [Directory.AsReadOnly]. It does not fail.
func (d *Directory) ReadOnly(context.Context) (*Directory, error) { return d.AsReadOnly(), nil }

// writable returns the denial of an operation, e.g. "write /a.md", on a read-only handle. The operation names paths as the guest
// sees them. Only the private grant in the denial contains the directory's own path.
func (d *Directory) writable(operation string) error {
	if !d.readOnly {
		return nil
	}
	denied := abi.Denial{Operation: operation, Reason: "this handle can only read"}
	if d.exact { // a directory on disk: only the person who bound it knows its path
		denied.Wants = capability.Wanted{Grant: DiskRights{Access: ReadWrite}}
	} else {
		denied.Wants = capability.Wanted{Grant: Rights{Path: cmp.Or(d.base, "/"), Access: ReadWrite}}
		denied.Private = d.base != ""
	}
	return abi.Deny(denied)
}
