package workspace

import (
	"context"
	"time"

	"github.com/stilehost/stile/capabilities/internal/stores"
)

// fullError reports that a change would exceed the room of the workspace's owner, or of all, by so many bytes.
type fullError struct {
	error
	over int64
}

// Unwrap returns the error for the guest.
func (e *fullError) Unwrap() error { return e.error }

// pathRoom is the most that nodes and revisions of a path take besides their contents.
func (t *tree) pathRoom(path int64) int64 {
	long := path + int64(len(t.workspace))
	if long <= 960 {
		return 3*long + 300
	}
	return long + 10<<10
}

// settle ends a transaction: it counts what the workspace takes, and refuses growth beyond the room of its owner or of all.
func (t *tree) settle() (after left, err error) {
	now, err := t.usage()
	if err != nil {
		return left{}, err
	}
	var snapshots int64
	const query = `SELECT (SELECT coalesce(sum(bytes + paths), 0) FROM snapshot WHERE workspace = ?1), ` + hasTask + `, EXISTS (SELECT 1 FROM garbage WHERE since <= ?2)`
	if err := t.conn.Row(t.ctx, query, t.workspace, time.Now().UnixMilli()).Scan(&snapshots, &after.task, &after.garbage); err != nil {
		return left{}, err
	}
	return after, t.account(now, snapshots, after.task)
}

// account stores what the workspace takes now.
func (t *tree) account(now usage, snapshots int64, pending bool) error {
	switch {
	case !pending:
		now.planned = 0
	case t.planned > 0:
		now.planned = t.planned
	}
	now.room = 512 + now.bytes + now.history + now.paths + snapshots + now.planned
	r, err := t.exec(`UPDATE usage SET version = version + 1, planned = ?, room = ? WHERE workspace = ?`, now.planned, now.room, t.workspace)
	if err != nil || now.room == t.before.room {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 { // an unknown workspace was not changed
		return err
	}
	const own = `INSERT INTO owned VALUES (?, ?) ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes`
	if _, err := t.exec(own, stores.Owner(t.workspace), now.room-t.before.room); err != nil || !t.limited || now.room < t.before.room {
		return err
	}
	return t.checkRoom(0)
}

// foresee refuses what settle would refuse once a content of this size is written, because a content can be read only once.
func (t *tree) foresee(path string, size int64) error {
	if !t.limited {
		return nil
	}
	now, err := t.usage()
	if err != nil {
		return err
	}
	grown := now.bytes + now.history + now.paths - t.before.bytes - t.before.history - t.before.paths
	return t.checkRoom(512 + grown + size + 2*t.pathRoom(int64(len(t.base)+len(path))))
}

// checkRoom returns a *fullError if the workspaces of this one's owner, or all, take more than they may with so many bytes more.
func (t *tree) checkRoom(more int64) error {
	if t.options.Room == nil {
		return nil
	}
	over, err := stores.CheckRoom(t.ctx, t.conn, t.options.Room(), "workspaces", t.workspace, more)
	if over > 0 {
		return &fullError{err, over}
	}
	return err
}

// drain deletes the oldest revisions of a workspace to make room for so many bytes, some at a time, and returns how many it freed.
func (v *stored) drain(ctx context.Context, want int64) (freed int64, err error) {
	if err := v.finish(ctx); err != nil {
		return 0, err
	}
	left, err := v.transact(ctx, "", func(t *tree) error {
		freed = 0
		for range prunedAtOnce / 16 {
			if _, err := t.exec(`DELETE FROM revision WHERE id IN (SELECT id FROM revision WHERE workspace = ? ORDER BY id LIMIT 16)`, v.name); err != nil {
				return err
			}
			now, err := t.usage()
			if err != nil {
				return err
			}
			if freed = t.before.history + t.before.paths - now.history - now.paths; freed >= want || now.revisions == 0 {
				return nil
			}
		}
		return nil
	})
	if err == nil && left.garbage {
		err = v.store.sweep(ctx)
	}
	return freed, err
}
