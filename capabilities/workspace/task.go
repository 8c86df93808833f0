package workspace

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
)

// A store has one writer at a time, so no transaction may be long. An operation on many files does as much as fits into the
// transaction that commits it, and leaves a task: a row that says what remains. Every later operation on that workspace, in any
// process, first does the rest, in separate transactions, so that no operation sees it half done. Other workspaces do not wait.
const (
	// defaultBatch is how many files one transaction handles. One takes up to 40 us, and as much again for each KiB of its path.
	defaultBatch = 500
	// prunedAtOnce is how many revisions one transaction deletes if the workspace has too much history.
	prunedAtOnce = 256
	// sweptAtOnce is how many pieces of garbage one transaction deletes.
	sweptAtOnce = 64
	// maxMeasured is how often a directory is measured again if the workspace changes meanwhile.
	maxMeasured = 8
)

type taskKind int

const (
	moveTask    taskKind = iota // moves the nodes below source below target
	copyTask                    // copies the nodes below source below target
	removeTask                  // removes the nodes below source
	keepTask                    // makes a snapshot of the nodes below source
	rewindTask                  // removes nodes below source that are not in the snapshot, and restores the others
	replaceTask                 // makes the nodes of the snapshot that are missing below source
	forgetTask                  // removes a snapshot
	pruneTask                   // deletes revisions beyond the limits of the workspace
)

type task struct {
	kind           taskKind
	source, target string // paths from the root of the workspace
	snapshot       int64
	at             int64  // the time of the operation
	parent, name   string // the last node done; in a snapshot the parent is relative to it
}

var (
	errPending = errors.New("a task is to be finished first")
	errLarge   = errors.New("the directory has to be measured outside of the transaction")
)

// begin does as much of a task as fits into one transaction, and leaves the rest.
func (t *tree) begin(k task) error {
	k.at = t.now()
	began := k.kind
	done, err := t.advance(&k)
	if err == nil && k.kind != began { // a small directory: only one half is done
		done, err = t.advance(&k)
	}
	if err != nil || done {
		return err
	}
	_, err = t.exec(`INSERT INTO task VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		t.workspace, k.kind, k.source, k.target, k.snapshot, k.at, k.parent, k.name)
	return err
}

// resume does the next part of the workspace's task, if it has one.
func (t *tree) resume() (done bool, err error) {
	var k task
	err = t.conn.Row(t.ctx, `SELECT kind, source, target, snapshot, at, parent, name FROM task WHERE workspace = ?`, t.workspace).
		Scan(&k.kind, &k.source, &k.target, &k.snapshot, &k.at, &k.parent, &k.name)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	if err == nil {
		done, err = t.advance(&k)
	}
	switch {
	case err != nil:
		return false, err
	case done:
		_, err = t.exec(`DELETE FROM task WHERE workspace = ?`, t.workspace)
	default:
		_, err = t.exec(`UPDATE task SET kind = ?2, parent = ?3, name = ?4 WHERE workspace = ?1`, t.workspace, k.kind, k.parent, k.name)
	}
	return done, err
}

// below is a query for columns of the nodes below the directory ?2 of the workspace ?1, at any depth. "0" follows "/" in byte order.
// These are two ranges of the index, because siblings with longer names lie between them, as "/a-b" does next to "/a".
func below(columns string) string {
	return ` SELECT ` + columns + ` FROM node WHERE workspace = ?1 AND parent = ?2
		UNION ALL SELECT ` + columns + ` FROM node WHERE workspace = ?1 AND parent > ?2 || '/' AND parent < ?2 || '0' `
}

// next is the condition for the nodes after ?3 and ?4, up to ?5 and ?6.
const next = ` workspace = ?1 AND (parent, name) > (?3, ?4) AND (parent, name) <= (?5, ?6) `

var (
	nextPaths  = below("parent") + `LIMIT ?3`
	moveSome   = `UPDATE node SET parent = ?3 || substr(parent, ?4) WHERE id IN (` + below("id") + `LIMIT ?5)`
	removeSome = `DELETE FROM node WHERE id IN (` + below("id") + `LIMIT ?3)`
	isLarge    = `SELECT count(*) = ?3 FROM (` + below("1") + `LIMIT ?3)`
	measureAll = `SELECT count(*), coalesce(sum(size), 0), coalesce(max(octet_length(parent) + 1 + octet_length(name)), 0), coalesce(sum(room), 0) FROM (` + below("size, parent, name, room") + `)`
)

// advance does one batch.
func (t *tree) advance(k *task) (done bool, err error) {
	switch k.kind {
	case moveTask, removeTask:
		most, err := t.fit(t.batch, k.target, nextPaths, t.workspace, k.source, t.batch)
		switch {
		case err != nil:
			return false, err
		case k.kind == removeTask:
			return t.some(most, removeSome, t.workspace, k.source, most)
		default:
			return t.some(most, moveSome, t.workspace, k.source, k.target, tail(k.source), most)
		}
	case forgetTask:
		most, err := t.fit(t.batch, "", `SELECT parent FROM kept WHERE snapshot = ? LIMIT ?`, k.snapshot, t.batch)
		if err != nil {
			return false, err
		}
		done, err = t.some(most, `DELETE FROM kept WHERE snapshot = ?1 AND (parent, name) IN (SELECT parent, name FROM kept WHERE snapshot = ?1 LIMIT ?2)`,
			k.snapshot, most)
		if err == nil && done {
			_, err = t.exec(`DELETE FROM snapshot WHERE id = ?`, k.snapshot)
		}
		return done, err
	case pruneTask:
		return t.pruneWorkspace()
	case replaceTask:
		return t.replace(k)
	default:
		return t.pass(k)
	}
}

// fit returns how many of the next nodes to handle if there is room for this many with short paths. A node counts once more for each KiB of
// the path above and of the longest of the next paths, which the query returns.
func (t *tree) fit(room int, above, paths string, args ...any) (most int, err error) {
	var longest int
	err = t.conn.Row(t.ctx, `SELECT coalesce(max(octet_length(parent)), 0) FROM (`+paths+`)`, args...).Scan(&longest)
	return max(room/(1+(longest+len(above))>>10), 1), err
}

// some runs a statement that handles at most this many rows, perhaps nodes, and reports whether these were the last.
func (t *tree) some(most int, statement string, args ...any) (done bool, err error) {
	r, err := t.execNodes(statement, args...)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n < int64(most), err
}

// pass does a batch of a task that visits the nodes below source in order: first those directly in it, then those further down.
func (t *tree) pass(k *task) (done bool, err error) {
	if k.parent == "" && k.name == "" {
		k.parent = k.source
	}
	room := t.batch
	if k.parent == k.source {
		if room, err = t.stretch(k, k.source+"\x01", room); err != nil || room == 0 { // no name has a control character
			return false, err
		}
		k.parent, k.name = k.source+"/", ""
	}
	room, err = t.stretch(k, k.source+"0", room)
	if err == nil && room > 0 && k.kind == rewindTask {
		k.kind, k.parent, k.name = replaceTask, "", ""
		return false, nil
	}
	return room > 0, err
}

// stretch continues a task for the nodes in directories before end, as far as there is room. It returns for how many more there was room.
func (t *tree) stretch(k *task, end string, before int) (room int, err error) {
	const ahead = ` FROM node WHERE workspace = ?1 AND (parent, name) > (?2, ?3) AND parent < ?4 `
	most, err := t.fit(before, k.target, `SELECT parent`+ahead+`ORDER BY parent, name LIMIT ?5`, t.workspace, k.parent, k.name, end, before)
	if err != nil {
		return 0, err
	}
	parent, name, last, err := t.upTo(`SELECT parent, name`+ahead+`ORDER BY parent, name LIMIT 1 OFFSET ?5`, t.workspace, k.parent, k.name, end, most-1)
	if err == nil && last {
		parent = end
		err = t.conn.Row(t.ctx, `SELECT (?5 - count(*)) * ?6 / ?5`+ahead, t.workspace, k.parent, k.name, end, most, before).Scan(&room)
	}
	run := func(statement string, more ...any) {
		if err == nil {
			args := append([]any{t.workspace, k.source, k.parent, k.name, parent, name, tail(k.source)}, more...)
			_, err = t.execNodes(statement, args...) // or it keeps them, which happens once for a snapshot
		}
	}
	switch k.kind {
	case copyTask:
		run(`INSERT INTO node (workspace, parent, name, kind, size, modified, mode, content, target)
			SELECT workspace, ?8 || substr(parent, ?7), name, kind, size, ?9, mode, content, target FROM node WHERE`+next, k.target, k.at)
	case keepTask:
		run(`INSERT INTO kept (snapshot, parent, name, kind, size, modified, mode, content, target)
			SELECT ?8, substr(parent, ?7), name, kind, size, modified, mode, content, target FROM node WHERE`+next, k.snapshot)
	default: // rewindTask: unchanged files are left alone, so that they get no revision
		run(`DELETE FROM node WHERE`+next+`AND NOT EXISTS (SELECT 1 FROM kept k WHERE k.snapshot = ?8 AND k.parent = substr(node.parent, ?7)
			AND k.name = node.name AND k.kind = node.kind)`, k.snapshot)
		run(`UPDATE node SET size = k.size, modified = k.modified, mode = k.mode, content = k.content, target = k.target
			FROM kept k WHERE k.snapshot = ?8 AND k.parent = substr(node.parent, ?7) AND k.name = node.name
			AND node.id IN (SELECT id FROM node WHERE`+next+`)
			AND (node.content, node.mode, node.target, node.modified) IS NOT (k.content, k.mode, k.target, k.modified)`, k.snapshot)
	}
	k.parent, k.name = parent, name
	return room, err
}

// replace makes a batch of the missing nodes.
func (t *tree) replace(k *task) (bool, error) {
	const ahead = ` FROM kept WHERE snapshot = ? AND (parent, name) > (?, ?) ORDER BY parent, name LIMIT `
	most, err := t.fit(t.batch, k.source, `SELECT parent`+ahead+`?`, k.snapshot, k.parent, k.name, t.batch)
	if err != nil {
		return false, err
	}
	parent, name, done, err := t.upTo(`SELECT parent, name`+ahead+`1 OFFSET ?`, k.snapshot, k.parent, k.name, most-1)
	if err != nil {
		return false, err
	}
	if done {
		parent = "0"
	}
	_, err = t.execNodes(`INSERT INTO node (workspace, parent, name, kind, size, modified, mode, content, target)
		SELECT ?1, ?2 || parent, name, kind, size, modified, mode, content, target FROM kept
		WHERE snapshot = ?3 AND (parent, name) > (?4, ?5) AND (parent, name) <= (?6, ?7)
		AND NOT EXISTS (SELECT 1 FROM node n WHERE n.workspace = ?1 AND n.parent = ?2 || kept.parent AND n.name = kept.name)`,
		t.workspace, k.source, k.snapshot, k.parent, k.name, parent, name)
	k.parent, k.name = parent, name
	return done, err
}

// upTo returns the last row of the next batch. done reports that there are fewer.
func (t *tree) upTo(query string, args ...any) (parent, name string, done bool, err error) {
	err = t.conn.Row(t.ctx, query, args...).Scan(&parent, &name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", true, nil
	}
	return parent, name, false, err
}

// extent is the size of everything below a directory, at a version of its workspace.
type extent struct {
	path         string
	version      int64
	files, bytes int64
	longest      int64 // path, in bytes
	paths        int64 // room of the nodes
}

// measure measures everything below a directory. Counting takes up to 1 us per file, so a large directory is counted before the
// transaction.
func (t *tree) measure(full string) (extent, error) {
	if known := t.known; known != nil && known.path == full && known.version == t.before.version {
		return *known, nil
	}
	var large bool
	if err := t.conn.Row(t.long, isLarge, t.workspace, full, t.batch).Scan(&large); err != nil {
		return extent{}, err
	}
	if large && t.writing {
		t.wanted = full
		return extent{}, errLarge
	}
	e := extent{path: full, version: t.before.version}
	err := t.conn.Row(t.long, measureAll, t.workspace, full).Scan(&e.files, &e.bytes, &e.longest, &e.paths)
	return e, err
}

// The first queries of a transaction: a workspace's version, what else is counted of it, and whether it has a task.
const (
	hasTask   = `EXISTS (SELECT 1 FROM task WHERE workspace = ?1)`
	atVersion = `SELECT coalesce((SELECT version FROM usage WHERE workspace = ?1), 0), ` + hasTask
	atStart   = `SELECT coalesce(files, 0), coalesce(bytes, 0), coalesce(revisions, 0), coalesce(history, 0), coalesce(version, 0), coalesce(paths, 0),
		coalesce(planned, 0), coalesce(room, 0), (SELECT coalesce(max(id), 0) FROM revision), ` + hasTask + ` FROM (SELECT 1) LEFT JOIN usage ON workspace = ?1`
)

// look begins a transaction that only reads.
func (t *tree) look() error {
	t.version = new(int64)
	return t.conn.Row(t.ctx, atVersion, t.workspace).Scan(t.version, &t.pending)
}

// start begins a writing transaction.
func (t *tree) start() error {
	u := &t.before
	err := t.conn.Row(t.ctx, atStart, t.workspace).
		Scan(&u.files, &u.bytes, &u.revisions, &u.history, &u.version, &u.paths, &u.planned, &u.room, &t.newest, &t.pending)
	t.counted = new(t.before)
	if u.version > 0 { // a workspace without a version may have no row that counts
		t.version = new(u.version)
	}
	return err
}

// view runs f over one state of the workspace.
func (v *stored) view(ctx context.Context, base string, f func(files) error) error {
	for {
		err := v.store.db.View(ctx, func(c *sqlite.Conn) error {
			t := v.tree(ctx, c, base)
			if err := t.look(); err != nil {
				return err
			}
			if t.pending {
				return errPending
			}
			return f(t)
		})
		if !errors.Is(err, errPending) {
			return err
		}
		if err := v.finish(ctx); err != nil {
			return err
		}
	}
}

// update runs f in one writing transaction and enforces the limits of
// the workspace. A workspace that already exceeds a limit, because
// the limit was lowered, can still shrink.
func (v *stored) update(ctx context.Context, base string, f func(files) error) error {
	var known *extent
	measured := 0
	for {
		var wanted string
		left, err := v.transact(ctx, base, func(t *tree) error {
			if t.pending {
				return errPending
			}
			t.known, t.limited = known, true
			if err := f(t); err != nil {
				wanted = t.wanted
				return err
			}
			if err := sqlite.Mark(ctx, t.conn, t.answer); err != nil {
				return err
			}
			if t.checked {
				return nil
			}
			return t.checkLimits(0, 0)
		})
		switch {
		case errors.Is(err, errPending):
			if err := v.finish(ctx); err != nil {
				return err
			}
		case errors.Is(err, errLarge):
			if measured++; measured > maxMeasured {
				return abi.Errorf(abi.CodeConflict, "others changed the workspace %d times while a large directory was counted, so nothing was done; try again", maxMeasured)
			}
			if known, err = v.measure(ctx, wanted); err != nil {
				return err
			}
		case err != nil:
			full, ok := errors.AsType[*fullError](err)
			if !ok {
				return err
			}
			if freed, err := v.drain(ctx, full.over); err != nil || freed == 0 {
				return errors.Join(err, full.error)
			}
		default:
			// It is committed: if this does not finish, a later operation continues.
			if left.task {
				_ = v.finish(ctx)
			}
			if left.garbage {
				_ = v.store.sweep(ctx)
			}
			return nil
		}
	}
}

// left is what a transaction leaves to be done: a task of its workspace, and garbage of any.
type left struct{ task, garbage bool }

// transact runs f in a writing transaction and deletes surplus revisions.
func (v *stored) transact(ctx context.Context, base string, f func(*tree) error) (left, error) {
	var t *tree
	var after left
	err := v.store.db.Update(ctx, func(c *sqlite.Conn) error {
		t = v.tree(ctx, c, base)
		t.writing = true
		if err := t.start(); err != nil {
			return err
		}
		if err := f(t); err != nil {
			return err
		}
		if err := t.prune(); err != nil {
			return err
		}
		var err error
		after, err = t.settle()
		return err
	})
	if err == nil && t.replaced != nil && t.replaced.bytes != nil {
		v.store.recent.put(t.replaced.content, t.replaced.bytes)
	}
	// A workspace without a version may have no row that counts.
	if err == nil && t.before.version > 0 && (t.nodes == 0 || t.nodes == 1 && t.replaced != nil) {
		v.store.listings.follow(v.name, t.before.version, t.replaced)
	}
	return after, err
}

// measure is the measure of a tree, at the newest version.
func (v *stored) measure(ctx context.Context, full string) (*extent, error) {
	var e extent
	err := v.store.db.View(ctx, func(c *sqlite.Conn) (err error) {
		t := v.tree(ctx, c, "")
		if t.before, err = t.usage(); err == nil {
			e, err = t.measure(full)
		}
		return err
	})
	return &e, err
}

// finish completes the workspace's task.
func (v *stored) finish(ctx context.Context) error {
	for {
		var pending bool
		err := v.store.db.Read(ctx, func(c *sqlite.Conn) error {
			return c.Row(context.WithoutCancel(ctx), `SELECT `+hasTask, v.name).Scan(&pending)
		})
		if err != nil || !pending {
			return err
		}
		left, err := v.transact(ctx, "", func(t *tree) error {
			_, err := t.resume()
			return err
		})
		if err != nil {
			return err
		}
		if left.garbage {
			if err := v.store.sweep(ctx); err != nil {
				return err
			}
		}
	}
}

// finish completes the tasks of all workspaces.
func (s *Store) finish(ctx context.Context) error {
	var names []string
	err := s.db.View(ctx, func(c *sqlite.Conn) error {
		for row, err := range c.Rows(ctx, `SELECT workspace FROM task`) {
			var name string
			if err == nil {
				err = row.Scan(&name)
			}
			if err != nil {
				return err
			}
			names = append(names, name)
		}
		return nil
	})
	for _, name := range names {
		if err == nil {
			err = (&stored{s, name}).finish(ctx)
		}
	}
	return err
}

// sweep deletes garbage contents that are no longer being written.
func (s *Store) sweep(ctx context.Context) error {
	for {
		done := false
		err := s.db.Update(ctx, func(c *sqlite.Conn) error {
			var content int64
			err := c.Row(ctx, `SELECT content FROM garbage WHERE since <= ? ORDER BY since LIMIT 1`, time.Now().UnixMilli()).Scan(&content)
			if errors.Is(err, sql.ErrNoRows) {
				done = true
				return nil
			}
			if err != nil {
				return err
			}
			r, err := c.Exec(ctx, `DELETE FROM part WHERE content = ?1 AND n IN (SELECT n FROM part WHERE content = ?1 LIMIT ?2)`, content, sweptAtOnce)
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err != nil || n == sweptAtOnce {
				return err
			}
			if _, err := c.Exec(ctx, `DELETE FROM garbage WHERE content = ?`, content); err != nil {
				return err
			}
			_, err = c.Exec(ctx, `DELETE FROM content WHERE id = ?`, content)
			return err
		})
		if err != nil || done {
			return err
		}
	}
}
