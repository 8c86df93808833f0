package workspace

import (
	"database/sql"
	"errors"

	"github.com/stilehost/stile/abi"
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
	_, err := t.conn.Exec(t.ctx, `UPDATE node SET size = ?, modified = ?, mode = ?, content = ? WHERE id = ?`,
		int64(past.status.Size), t.now(), past.status.Mode, past.bytes, n.id)
	return err
}

// prune deletes the revisions that are too many: first of the paths that lost a content in this transaction, then of the
// workspace.
func (t *tree) prune() error {
	_, err := t.conn.Exec(t.ctx, `DELETE FROM revision WHERE id IN (SELECT old.id FROM revision new
		JOIN revision old USING (workspace, parent, name) WHERE new.id > ? AND old.n <= new.n - ?)`, t.newest, t.options.Revisions)
	for err == nil {
		var now usage
		now, err = t.usage()
		if err != nil || now.revisions <= 4*t.options.Files && now.history <= t.options.HistoryBytes {
			break
		}
		_, err = t.conn.Exec(t.ctx, `DELETE FROM revision WHERE id IN
			(SELECT id FROM revision WHERE workspace = ? ORDER BY id LIMIT 16)`, t.workspace)
	}
	return err
}

func (t *tree) snapshot() (uint64, error) {
	r, err := t.conn.Exec(t.ctx, `INSERT INTO snapshot (workspace, base, taken, files, bytes)
		SELECT ?1, ?2, ?3, count(*), coalesce(sum(size), 0) FROM node WHERE`+below, t.workspace, t.base, t.now())
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
		return 0, abi.Errorf(abi.CodeExhausted, "workspace: snapshots: limit %d, needed %d", t.options.Snapshots, snapshots)
	case files > 10*t.options.Files:
		return 0, abi.Errorf(abi.CodeExhausted, "workspace: files in snapshots: limit %d, needed %d", 10*t.options.Files, files)
	case bytes > 4*t.options.Bytes:
		return 0, abi.Errorf(abi.CodeExhausted, "workspace: bytes in snapshots: limit %d, needed %d", 4*t.options.Bytes, bytes)
	}
	_, err = t.conn.Exec(t.ctx, `INSERT INTO kept (snapshot, parent, name, kind, size, modified, mode, content, target)
		SELECT ?3, substr(parent, ?4), name, kind, size, modified, mode, content, target FROM node WHERE`+below,
		t.workspace, t.base, id, tail(t.base))
	return uint64(id), err
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

func (t *tree) hasSnapshot(id uint64) (has bool, err error) {
	err = t.conn.Row(t.ctx, `SELECT EXISTS (SELECT 1 FROM snapshot WHERE id = ? AND workspace = ? AND base = ?)`,
		int64(id), t.workspace, t.base).Scan(&has)
	return has, err
}

// restoreSnapshot leaves alone what is as it was, so that no revision is made of it.
func (t *tree) restoreSnapshot(id uint64) (bool, error) {
	if known, err := t.hasSnapshot(id); err != nil || !known {
		return known, err
	}
	if err := t.ensure(); err != nil {
		return true, err
	}
	args := []any{t.workspace, t.base, int64(id), tail(t.base)}
	if _, err := t.conn.Exec(t.ctx, `DELETE FROM node WHERE`+below+`AND NOT EXISTS (SELECT 1 FROM kept k
		WHERE k.snapshot = ?3 AND k.parent = substr(node.parent, ?4) AND k.name = node.name AND k.kind = node.kind)`, args...); err != nil {
		return true, err
	}
	if _, err := t.conn.Exec(t.ctx, `UPDATE node SET size = k.size, modified = k.modified, mode = k.mode, content = k.content, target = k.target
		FROM kept k WHERE node.workspace = ?1 AND k.snapshot = ?3 AND node.parent = ?2 || k.parent AND node.name = k.name
		AND (node.content, node.mode, node.target, node.modified) IS NOT (k.content, k.mode, k.target, k.modified)`, args[:3]...); err != nil {
		return true, err
	}
	_, err := t.conn.Exec(t.ctx, `INSERT INTO node (workspace, parent, name, kind, size, modified, mode, content, target)
		SELECT ?1, ?2 || parent, name, kind, size, modified, mode, content, target FROM kept WHERE snapshot = ?3
		AND NOT EXISTS (SELECT 1 FROM node n WHERE n.workspace = ?1 AND n.parent = ?2 || kept.parent AND n.name = kept.name)`, args[:3]...)
	return true, err
}

func (t *tree) removeSnapshot(id uint64) (bool, error) {
	known, err := t.hasSnapshot(id)
	if err == nil && known {
		_, err = t.conn.Exec(t.ctx, `DELETE FROM snapshot WHERE id = ?`, int64(id))
	}
	return known, err
}

var _ archive = (*tree)(nil)
