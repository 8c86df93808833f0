package workspace

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
)

// chunkSize is how many bytes of a file one row holds: a file up to this size is one row, and a larger one is never in
// memory as a whole.
const chunkSize = 64 << 10

// tree is one workspace within one transaction. All its paths are from the root.
type tree struct {
	ctx    context.Context
	conn   *sqlite.Conn
	handle *Directory
	before usage // when the transaction began
}

// node is a file or a directory.
type node struct {
	id     int64
	status Status
}

func (n *node) isDirectory() bool { return n.status.Kind == KindDirectory }

func (t *tree) notFound(full string) error {
	return abi.Errorf(abi.CodeNotFound, "%s", t.handle.shown(full))
}

func (t *tree) invalid(full, problem string) error {
	return abi.Errorf(abi.CodeInvalid, "%s %s", t.handle.shown(full), problem)
}

// find returns the node at a path, nil when there is none. The directory of the handle itself is always there.
func (t *tree) find(full string) (*node, error) {
	var n node
	err := sql.ErrNoRows
	if full != "" {
		parent, name := split(full)
		err = t.conn.Row(t.ctx, `SELECT id, kind, size, modified FROM node WHERE workspace = ? AND parent = ? AND name = ?`,
			t.handle.workspace, parent, name).Scan(&n.id, &n.status.Kind, &n.status.Size, &n.status.Modified)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows) && full == t.handle.base:
		return &node{status: Status{Kind: KindDirectory}}, nil
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return &n, nil
	}
}

// get is find for a node that must be there.
func (t *tree) get(full string) (*node, error) {
	n, err := t.find(full)
	if err == nil && n == nil {
		err = t.notFound(full)
	}
	return n, err
}

func (t *tree) file(full string) (*node, error) {
	n, err := t.get(full)
	if err == nil && n.isDirectory() {
		err = t.invalid(full, "is a directory")
	}
	return n, err
}

func (t *tree) directory(full string) (*node, error) {
	n, err := t.get(full)
	if err == nil && !n.isDirectory() {
		err = t.invalid(full, "is a file, not a directory")
	}
	return n, err
}

// absent makes sure that a path is free.
func (t *tree) absent(full string) error {
	n, err := t.find(full)
	if err == nil && n != nil {
		err = abi.Errorf(abi.CodeAlreadyExists, "%s", t.handle.shown(full))
	}
	return err
}

// add makes a node.
func (t *tree) add(full string, kind Kind, size int64) (id int64, err error) {
	parent, name := split(full)
	r, err := t.conn.Exec(t.ctx, `INSERT INTO node (workspace, parent, name, kind, size, modified) VALUES (?, ?, ?, ?, ?, ?)`,
		t.handle.workspace, parent, name, kind, size, t.now())
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

func (t *tree) now() int64 { return max(t.handle.store.options.Now().UnixMilli(), 0) }

// makeDirectories makes a directory and those above it, as far as they are missing.
func (t *tree) makeDirectories(full string) error {
	var missing []string
	for ; full != ""; full, _ = split(full) {
		parent, name := split(full)
		var kind Kind
		err := t.conn.Row(t.ctx, `SELECT kind FROM node WHERE workspace = ? AND parent = ? AND name = ?`,
			t.handle.workspace, parent, name).Scan(&kind)
		if err == nil && kind != KindDirectory {
			return t.invalid(full, "is a file, not a directory")
		}
		if err == nil {
			break
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		missing = append(missing, full)
	}
	for _, path := range slices.Backward(missing) {
		if _, err := t.add(path, KindDirectory, 0); err != nil {
			return err
		}
	}
	return nil
}

// put replaces the file at a path, or makes it, with the size bytes of content.
func (t *tree) put(full string, size int64, content io.Reader) error {
	n, err := t.find(full)
	if err != nil {
		return err
	}
	var id int64
	switch {
	case n == nil:
		parent, _ := split(full)
		if err := t.makeDirectories(parent); err != nil {
			return err
		}
		id, err = t.add(full, KindFile, size)
	case n.isDirectory():
		err = t.invalid(full, "is a directory")
	default:
		id = n.id
		err = t.resize(id, size)
		if err == nil {
			_, err = t.conn.Exec(t.ctx, `DELETE FROM chunk WHERE node = ?`, id)
		}
	}
	if err != nil {
		return err
	}
	if err := t.checkLimits(); err != nil { // before the work of writing
		return err
	}
	return t.writeChunks(id, 0, content)
}

// extend adds data to the end of the file at a path, and makes the file if it is missing.
func (t *tree) extend(full string, data []byte) error {
	n, err := t.find(full)
	switch {
	case err != nil:
		return err
	case n == nil:
		return t.put(full, int64(len(data)), bytes.NewReader(data))
	case n.isDirectory():
		return t.invalid(full, "is a directory")
	}
	size := int64(n.status.Size)
	last, rest := size/chunkSize, []byte{}
	if size%chunkSize != 0 {
		if err := t.conn.Row(t.ctx, `SELECT bytes FROM chunk WHERE node = ? AND n = ?`, n.id, last).Scan(&rest); err != nil {
			return err
		}
	}
	if err := t.resize(n.id, size+int64(len(data))); err != nil {
		return err
	}
	return t.writeChunks(n.id, last, io.MultiReader(bytes.NewReader(rest), bytes.NewReader(data)))
}

func (t *tree) resize(id, size int64) error {
	_, err := t.conn.Exec(t.ctx, `UPDATE node SET size = ?, modified = ? WHERE id = ?`, size, t.now(), id)
	return err
}

// writeChunks stores content as the chunks of a file from the n-th on.
func (t *tree) writeChunks(id, n int64, content io.Reader) error {
	chunk := make([]byte, chunkSize)
	for {
		size, err := io.ReadFull(content, chunk)
		if err == io.EOF {
			return nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		if _, err := t.conn.Exec(t.ctx, `INSERT INTO chunk VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET bytes = excluded.bytes`,
			id, n, chunk[:size]); err != nil {
			return err
		}
		n++
	}
}

// chunks yields the chunks of a file from the n-th on. A chunk is good until the next one is asked for.
func (t *tree) chunks(id, n int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for row, err := range t.conn.Rows(t.ctx, `SELECT bytes FROM chunk WHERE node = ? AND n >= ? ORDER BY n`, id, n) {
			var chunk sql.RawBytes
			if err == nil {
				err = row.Scan(&chunk)
			}
			if !yield(chunk, err) || err != nil {
				return
			}
		}
	}
}

// below is the condition for the nodes below the directory ?2 of the workspace ?1, at any depth. "0" follows "/" in byte
// order, so the range on parent can use the index; the last part leaves out neighbours such as "/a-b" of "/a".
const below = ` workspace = ?1 AND parent >= ?2 AND parent < ?2 || '0' AND (parent = ?2 OR parent > ?2 || '/') `

// rename gives a node, and all below it, another path, which must be free.
func (t *tree) rename(n *node, source, target string) error {
	if err := t.checkDepth(n, source, target); err != nil {
		return err
	}
	parent, name := split(target)
	if _, err := t.conn.Exec(t.ctx, `UPDATE node SET parent = ?, name = ? WHERE id = ?`, parent, name, n.id); err != nil {
		return err
	}
	_, err := t.conn.Exec(t.ctx, `UPDATE node SET parent = ?3 || substr(parent, ?4) WHERE`+below,
		t.handle.workspace, source, target, tail(source))
	return err
}

// duplicate makes a copy of a node, and of all below it, at another path, which must be free.
func (t *tree) duplicate(n *node, source, target string) error {
	if err := t.checkDepth(n, source, target); err != nil {
		return err
	}
	id, err := t.add(target, n.status.Kind, int64(n.status.Size))
	if err != nil {
		return err
	}
	if _, err := t.conn.Exec(t.ctx, `INSERT INTO node (workspace, parent, name, kind, size, modified)
		SELECT workspace, ?3 || substr(parent, ?4), name, kind, size, ?5 FROM node WHERE`+below,
		t.handle.workspace, source, target, tail(source), t.now()); err != nil {
		return err
	}
	if err := t.checkLimits(); err != nil { // before the work of copying
		return err
	}
	pairs, err := t.copied(source, target)
	if err != nil {
		return err
	}
	for _, p := range append(pairs, pair{n.id, id, int64(n.status.Size)}) {
		for chunk := int64(0); chunk*chunkSize < p.size; chunk++ {
			if _, err := t.conn.Exec(t.ctx, `INSERT INTO chunk SELECT ?, n, bytes FROM chunk WHERE node = ? AND n = ?`,
				p.to, p.from, chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// pair is a file and its copy.
type pair struct{ from, to, size int64 }

// copied finds, for the files below source, their copies below target.
func (t *tree) copied(source, target string) ([]pair, error) {
	var pairs []pair
	for row, err := range t.conn.Rows(t.ctx, `SELECT old.id, new.id, old.size
		FROM (SELECT * FROM node WHERE`+below+`) old
		JOIN node new ON new.workspace = ?1 AND new.parent = ?3 || substr(old.parent, ?4) AND new.name = old.name
		WHERE old.size > 0`, t.handle.workspace, source, target, tail(source)) {
		if err != nil {
			return nil, err
		}
		var p pair
		if err := row.Scan(&p.from, &p.to, &p.size); err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// tail is where, counted in characters from 1, a path below source goes on after source.
func tail(source string) int { return utf8.RuneCountInString(source) + 1 }

// checkDepth makes sure that no path below source gets too long at target.
func (t *tree) checkDepth(n *node, source, target string) error {
	var longest sql.NullInt64
	if !n.isDirectory() {
		return nil // its own path was checked when it was resolved
	}
	err := t.conn.Row(t.ctx, `SELECT max(octet_length(parent) + 1 + octet_length(name)) FROM node WHERE`+below,
		t.handle.workspace, source).Scan(&longest)
	if err != nil {
		return err
	}
	if size := int(longest.Int64) + len(target) - len(source); longest.Valid && size > maxPath {
		return abi.Errorf(abi.CodeInvalid, "a path below the target would have %d bytes; at most %d", size, maxPath)
	}
	return nil
}

// remove deletes a node and all below it.
func (t *tree) remove(n *node, full string) error {
	if _, err := t.conn.Exec(t.ctx, `DELETE FROM node WHERE`+below, t.handle.workspace, full); err != nil {
		return err
	}
	_, err := t.conn.Exec(t.ctx, `DELETE FROM node WHERE id = ?`, n.id)
	return err
}

// usage is what a workspace holds.
type usage struct{ files, bytes int64 }

func (t *tree) usage() (u usage, err error) {
	err = t.conn.Row(t.ctx, `SELECT files, bytes FROM usage WHERE workspace = ?`, t.handle.workspace).Scan(&u.files, &u.bytes)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return u, err
}

// checkLimits refuses growth beyond the limits.
func (t *tree) checkLimits() error {
	now, err := t.usage()
	switch limits := t.handle.store.options; {
	case err != nil:
		return err
	case now.files > limits.Files && now.files > t.before.files:
		return abi.Errorf(abi.CodeExhausted, "workspace: files and directories: limit %d, needed %d", limits.Files, now.files)
	case now.bytes > limits.Bytes && now.bytes > t.before.bytes:
		return abi.Errorf(abi.CodeExhausted, "workspace: bytes: limit %d, needed %d", limits.Bytes, now.bytes)
	default:
		return nil
	}
}
