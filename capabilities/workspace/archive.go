package workspace

import (
	"database/sql"
	"encoding/binary"
	"errors"

	"github.com/stilehost/stile/capabilities/internal/stores"
)

func (t *tree) revisions(path string) ([]Revision, error) {
	parent, name := split(t.base + path)
	var all []Revision
	for row, err := range t.conn.Rows(t.ctx, `SELECT id, size, modified FROM revision
		WHERE workspace = ? AND parent = ? AND name = ? ORDER BY n DESC`, t.workspace, parent, name) {
		if err != nil {
			return nil, err
		}
		var r Revision
		if err := row.Scan(&r.ID, &r.Size, &r.Modified); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func (t *tree) revision(path string, id uint64) (*node, error) {
	parent, name := split(t.base + path)
	n := node{status: Status{Kind: KindFile}}
	err := t.conn.Row(t.ctx, `SELECT size, modified, mode, content FROM revision
		WHERE id = ? AND workspace = ? AND parent = ? AND name = ?`, int64(id), t.workspace, parent, name).
		Scan(&n.status.Size, &n.status.Modified, &n.status.Mode, &n.bytes)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return &n, nil
	}
}

func (t *tree) restore(path string, n, past *node) error {
	if n == nil {
		return t.add(t.base+path, past)
	}
	_, err := t.execNodes(`UPDATE node SET size = ?, modified = ?, mode = ?, content = ? WHERE id = ?`,
		int64(past.status.Size), t.now(), past.status.Mode, past.bytes, n.id)
	return err
}

// prune deletes surplus revisions: first of the paths that lost a content in this transaction, then of the workspace. The rest
// becomes a task.
func (t *tree) prune() error {
	if _, err := t.exec(`DELETE FROM revision WHERE id IN (SELECT old.id FROM revision new
		JOIN revision old USING (workspace, parent, name) WHERE new.id > ? AND old.n <= new.n - ? LIMIT ?)`, t.newest, t.options.Revisions, 4*t.batch); err != nil {
		return err
	}
	done, err := t.pruneWorkspace()
	if err == nil && !done {
		_, err = t.exec(`INSERT INTO task VALUES (?, ?, '', '', 0, 0, '', '') ON CONFLICT DO NOTHING`, t.workspace, pruneTask)
	}
	return err
}

// pruneWorkspace deletes some of the workspace's surplus revisions, the oldest first.
func (t *tree) pruneWorkspace() (done bool, err error) {
	for range prunedAtOnce / 16 {
		now, err := t.usage()
		if err != nil || now.revisions <= 4*t.options.Files && now.history <= t.options.HistoryBytes {
			return true, err
		}
		if _, err = t.exec(`DELETE FROM revision WHERE id IN
			(SELECT id FROM revision WHERE workspace = ? ORDER BY id LIMIT 16)`, t.workspace); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (t *tree) snapshot() (uint64, error) {
	e, err := t.measure(t.base)
	if err != nil {
		return 0, err
	}
	r, err := t.exec(`INSERT INTO snapshot (workspace, base, taken, files, bytes, paths) VALUES (?, ?, ?, ?, ?, ?)`,
		t.workspace, t.base, t.now(), e.files, e.bytes, 1024+4*int64(len(t.base))+e.paths)
	if err != nil {
		return 0, err
	}
	id, err := r.LastInsertId()
	if err != nil {
		return 0, err
	}
	var snapshots, files, bytes int64
	err = t.conn.Row(t.ctx, `SELECT count(*), sum(files), sum(bytes) FROM snapshot WHERE workspace = ?`, t.workspace).
		Scan(&snapshots, &files, &bytes)
	switch {
	case err != nil:
		return 0, err
	case snapshots > t.options.Snapshots:
		return 0, stores.Exhausted("workspace: snapshots", t.options.Snapshots, snapshots)
	case files > 10*t.options.Files:
		return 0, stores.Exhausted("workspace: files in snapshots", 10*t.options.Files, files)
	case bytes > 4*t.options.Bytes:
		return 0, stores.Exhausted("workspace: bytes in snapshots", 4*t.options.Bytes, bytes)
	}
	t.answer = binary.AppendUvarint(nil, uint64(id))
	return uint64(id), t.begin(task{kind: keepTask, source: t.base, snapshot: id})
}

func (t *tree) snapshots() ([]Snapshot, error) {
	var all []Snapshot
	for row, err := range t.conn.Rows(t.ctx, `SELECT id, taken, files, bytes FROM snapshot
		WHERE workspace = ? AND base = ? ORDER BY id DESC`, t.workspace, t.base) {
		if err != nil {
			return nil, err
		}
		var s Snapshot
		if err := row.Scan(&s.ID, &s.Taken, &s.Files, &s.Bytes); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// snapshotOf returns the content of a snapshot of this directory, and whether it exists.
func (t *tree) snapshotOf(id uint64) (files, bytes int64, known bool, err error) {
	err = t.conn.Row(t.ctx, `SELECT files, bytes FROM snapshot WHERE id = ? AND workspace = ? AND base = ?`, int64(id), t.workspace, t.base).
		Scan(&files, &bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, false, nil
	}
	return files, bytes, err == nil, err
}

func (t *tree) restoreSnapshot(id uint64) (bool, error) {
	files, bytes, known, err := t.snapshotOf(id)
	if err != nil || !known {
		return known, err
	}
	if _, err := t.ensure(); err != nil {
		return true, err
	}
	e, err := t.measure(t.base)
	if err == nil {
		err = t.checkLimits(files-e.files, bytes-e.bytes)
	}
	if err != nil {
		return true, err
	}
	if err := t.conn.Row(t.ctx, `SELECT bytes + paths FROM snapshot WHERE id = ?`, int64(id)).Scan(&t.planned); err != nil {
		return true, err
	}
	t.checked = true // growing files may come before shrinking ones
	return true, t.begin(task{kind: rewindTask, source: t.base, snapshot: int64(id)})
}

func (t *tree) removeSnapshot(id uint64) (bool, error) {
	_, _, known, err := t.snapshotOf(id)
	if err != nil || !known {
		return known, err
	}
	return true, t.begin(task{kind: forgetTask, snapshot: int64(id)})
}

var _ archive = (*tree)(nil)
