package workspace

import (
	"context"
	"encoding/binary"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
)

// Revision is an earlier content of a path: one that was replaced, removed, or moved away.
type Revision struct {
	// ID grows with time and is never reused.
	ID uint64
	// Size is in bytes.
	Size uint64
	// Modified is when the content was written: milliseconds since 1970-01-01T00:00:00Z.
	Modified uint64
}

// Snapshot is a directory with everything in it at one moment.
type Snapshot struct {
	ID uint64
	// Taken is when, in milliseconds since 1970-01-01T00:00:00Z.
	Taken uint64
	// Files also counts directories and links. Bytes are those of the files.
	Files uint64
	Bytes uint64
}

// archive is implemented by files that keep earlier states.
type archive interface {
	files
	revisions(path string) ([]Revision, error)
	// revision returns an earlier content of a path as a node. It is nil if there is none of this id.
	revision(path string, id uint64) (*node, error)
	// restore gives a file the content and the mode of past. n is the current node, or nil.
	restore(path string, n, past *node) error

	snapshot() (uint64, error)
	snapshots() ([]Snapshot, error)
	// restoreSnapshot and removeSnapshot report whether there is one of this id.
	restoreSnapshot(id uint64) (bool, error)
	removeSnapshot(id uint64) (bool, error)
}

func (o *op) archive() (archive, error) {
	if a, ok := o.files.(archive); ok {
		return a, nil
	}
	return nil, abi.Errorf(abi.CodeUnavailable, "%s: a directory on disk keeps no history and no snapshots; a workspace does", o.name)
}

// History returns the stored earlier contents of a path, the newest first. The file need not exist now. A handle that can read a
// file can read its history. A file that is moved leaves its history behind. The error is [abi.ErrUnavailable] on disk.
func (d *Directory) History(ctx context.Context, path string) ([]Revision, error) {
	var all []Revision
	err := d.inspectPast(ctx, "history", path, func(a archive, _, place string) (err error) {
		all, err = a.revisions(place)
		return err
	})
	return all, err
}

// inspectPast looks at the earlier contents of a path.
func (d *Directory) inspectPast(ctx context.Context, operation, path string, look func(a archive, path, place string) error) error {
	return d.inspect(ctx, d.resolveFile, operation, path, func(o *op, path string) error {
		a, err := o.archive()
		if err != nil {
			return err
		}
		place, n, err := o.locate(path, true)
		if place == "" && err == nil { // a link to the directory itself
			err = mismatch(path, n, "")
		}
		if err != nil {
			return err
		}
		return look(a, path, place)
	})
}

// ReadRevision returns an earlier content, which the caller closes. The error is [abi.ErrNotFound] if the path no longer has one of
// this id, and [abi.ErrUnavailable] on disk.
func (d *Directory) ReadRevision(ctx context.Context, path string, revision uint64) (*blob.Blob, error) {
	var content *blob.Blob
	err := d.inspectPast(ctx, "read-revision", path, func(a archive, path, place string) error {
		past, err := find(a, path, place, revision)
		if err == nil {
			content, err = collect(ctx, past.status.Size, d.volume.blobs(), a.content(place, past, 0))
		}
		return err
	})
	return whole(content, err)
}

// Restore writes an earlier content again. The current content becomes a revision. The errors are those of ReadRevision.
func (d *Directory) Restore(ctx context.Context, path string, revision uint64) error {
	return d.change(ctx, d.resolveFile, "restore", path, func(o *op, path string) error {
		a, err := o.archive()
		if err != nil {
			return err
		}
		place, n, err := o.target(path)
		if err != nil {
			return err
		}
		past, err := find(a, path, place, revision)
		if err != nil {
			return err
		}
		return a.restore(place, n, past)
	})
}

func find(a archive, path, place string, revision uint64) (*node, error) {
	past, err := a.revision(place, revision)
	if err == nil && past == nil {
		err = abi.Errorf(abi.CodeNotFound, "%s has no revision %d", path, revision)
	}
	return past, err
}

// Snapshot keeps the current directory, with everything in it, and returns the id. The error is [abi.ErrExhausted] if the snapshots
// of the workspace reach a limit, and [abi.ErrUnavailable] on disk.
func (d *Directory) Snapshot(ctx context.Context) (uint64, error) {
	answer, came, err := d.remembered(ctx)
	if err != nil || came {
		id, _ := binary.Uvarint(answer)
		return id, err
	}
	var id uint64
	err = d.change(ctx, d.resolve, "snapshot", "", func(o *op, _ string) error {
		a, err := o.archive()
		if err == nil {
			id, err = a.snapshot()
		}
		return err
	})
	return id, err
}

// Snapshots returns the snapshots of this directory, the newest first.
func (d *Directory) Snapshots(ctx context.Context) ([]Snapshot, error) {
	var all []Snapshot
	err := d.inspect(ctx, d.resolve, "snapshots", "", func(o *op, _ string) error {
		a, err := o.archive()
		if err == nil {
			all, err = a.snapshots()
		}
		return err
	})
	return all, err
}

// RestoreSnapshot returns the directory to its earlier state. Later nodes are removed, and their files become revisions. The error
// is [abi.ErrNotFound] if this directory has no snapshot of this id.
func (d *Directory) RestoreSnapshot(ctx context.Context, id uint64) error {
	return d.withSnapshot(ctx, "restore-snapshot", id, archive.restoreSnapshot)
}

// RemoveSnapshot deletes a snapshot. The errors are those of RestoreSnapshot.
func (d *Directory) RemoveSnapshot(ctx context.Context, id uint64) error {
	return d.withSnapshot(ctx, "remove-snapshot", id, archive.removeSnapshot)
}

func (d *Directory) withSnapshot(ctx context.Context, operation string, id uint64, f func(archive, uint64) (bool, error)) error {
	return d.change(ctx, d.resolve, operation, "", func(o *op, _ string) error {
		a, err := o.archive()
		if err != nil {
			return err
		}
		known, err := f(a, id)
		if err == nil && !known {
			err = abi.Errorf(abi.CodeNotFound, "this directory has no snapshot %d", id)
		}
		return err
	})
}
