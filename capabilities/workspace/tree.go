package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/capabilities/internal/stores"
	"github.com/stilehost/stile/internal/sqlite"
)

// chunkSize is how many bytes of a file one row holds. A file up to this size is one row. A larger one is never completely in
// memory.
const chunkSize = 64 << 10

// tree is a directory of one workspace within one transaction.
type tree struct {
	ctx       context.Context // for statements of few rows. It never ends: watching for its end takes longer than such a statement.
	long      context.Context // for those that may take long
	conn      *sqlite.Conn
	options   *Options
	workspace string
	base      string
	before    usage // at the start of the transaction
	newest    int64 // likewise: the last revision
	writing   bool
	batch     int     // how many files this transaction handles at most
	known     *extent // extent of a directory that was measured before
	wanted    string  // the directory to measure, for errLarge
	checked   bool    // the result was checked against the limits; a part of it may exceed them
	planned   int64   // room that the rest of the operation may take
	limited   bool    // the workspace may not grow beyond Options.Room
	store     *Store
	pending   bool      // at the start: a task is to be finished first
	counted   *usage    // now, if it is known
	version   *int64    // of the nodes, if they are those of a committed version of the workspace
	nodes     int       // statements that changed nodes
	replaced  *replaced // the file that got another content last
	answer    []byte    // what a durable call that makes the operation again has to know
}

// The modes of new nodes.
const (
	fileMode      = 0o644
	directoryMode = 0o755
	linkMode      = 0o777
)

// directoryNode is a directory without a row: the root, or a base that does not exist yet.
func directoryNode() *node { return &node{status: Status{Kind: KindDirectory, Mode: directoryMode}} }

func (t *tree) lookup(path string) (*node, error) {
	n, err := t.find(t.base + path)
	if n == nil && err == nil && path == "" {
		n = directoryNode()
	}
	return n, err
}

// find is lookup for a path from the root of the workspace.
func (t *tree) find(full string) (*node, error) {
	if full == "" {
		return directoryNode(), nil
	}
	parent, name := split(full)
	if all, has := t.listed(parent); has {
		if at, found := slices.BinarySearchFunc(all, name, byName); found {
			return all[at].node, nil
		}
		return nil, nil
	}
	var n node
	s := &n.status
	err := t.conn.Row(t.ctx, `SELECT id, kind, size, modified, mode, coalesce(content, 0), target FROM node
		WHERE workspace = ? AND parent = ? AND name = ?`, t.workspace, parent, name).
		Scan(&n.id, &s.Kind, &s.Size, &s.Modified, &s.Mode, &n.bytes, &n.target)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return &n, nil
	}
}

// reach tries all names first, which usually suffices. Everything that exists has directories above it, so reach need not look at
// each of them.
func (t *tree) reach(place string, names []string) (*node, int, error) {
	n, err := t.lookup(place + "/" + strings.Join(names, "/"))
	if n != nil || err != nil {
		return n, len(names), err
	}
	var deepest *node
	taken := sort.Search(len(names)-1, func(i int) bool { // how many exist
		found, failed := t.lookup(place + "/" + strings.Join(names[:i+1], "/"))
		if found != nil {
			deepest = found
		}
		err = errors.Join(err, failed)
		return found == nil
	})
	if err != nil || deepest == nil || !deepest.is(KindLink) {
		return nil, len(names), err
	}
	return deepest, taken, nil
}

func (t *tree) entries(path, after string, limit int) ([]dirent, error) {
	all, has := t.listed(t.base + path)
	if !has {
		some, err := t.list(path, after, limit)
		if err == nil && t.version != nil && after == "" && len(some) < limit {
			t.store.listings.put(t.workspace, *t.version, t.base+path, some)
		}
		return some, err
	}
	at, found := slices.BinarySearchFunc(all, after, byName)
	if found {
		at++
	}
	return all[at:min(at+limit, len(all))], nil
}

// listed returns all entries of a directory if they are in memory. Nobody may change a node of them.
func (t *tree) listed(full string) (all []dirent, has bool) {
	if t.version == nil {
		return nil, false
	}
	return t.store.listings.get(t.workspace, *t.version, full)
}

// list is entries from the database.
func (t *tree) list(path, after string, limit int) ([]dirent, error) {
	var all []dirent
	for row, err := range t.conn.Rows(t.ctx, `SELECT name, id, kind, size, modified, mode, coalesce(content, 0), target FROM node
		WHERE workspace = ? AND parent = ? AND name > ? ORDER BY name LIMIT ?`, t.workspace, t.base+path, after, limit) {
		if err != nil {
			return nil, err
		}
		var name string
		var n node
		s := &n.status
		if err := row.Scan(&name, &n.id, &s.Kind, &s.Size, &s.Modified, &s.Mode, &n.bytes, &n.target); err != nil {
			return nil, err
		}
		all = append(all, dirent{Entry{name, n.status}, &n})
	}
	return all, nil
}

func (t *tree) contents(all []*node, to map[int64][]byte) error {
	var missing []int64
	for _, n := range all {
		bytes, has := t.store.recent.get(n.bytes)
		if !has {
			missing = append(missing, n.bytes)
			continue
		}
		to[n.bytes] = bytes
	}
	if len(missing) == 0 {
		return nil
	}
	list, err := json.Marshal(missing)
	if err != nil {
		return err
	}
	for row, err := range t.conn.Rows(t.ctx, `SELECT id, bytes FROM content WHERE id IN (SELECT value FROM json_each(?))`, string(list)) {
		var id int64
		var bytes []byte
		if err == nil {
			err = row.Scan(&id, &bytes)
		}
		if err != nil {
			return err
		}
		to[id] = bytes
		t.keep(id, bytes)
	}
	return nil
}

// keep remembers a content. In a writing transaction, it may not be committed.
func (t *tree) keep(content int64, bytes []byte) {
	if !t.writing {
		t.store.recent.put(content, bytes)
	}
}

func (t *tree) content(_ string, n *node, offset int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if n.status.Size <= chunkSize {
			whole, err := t.small(n.bytes)
			yield(whole[min(offset, int64(len(whole))):], err)
			return
		}
		layers, err := t.layers(n.bytes, offset/chunkSize)
		if err != nil {
			yield(nil, err)
			return
		}
		from := offset
		for _, l := range layers {
			if !t.pieces(yield, l, from) {
				return
			}
			from = l.end * chunkSize
		}
	}
}

// small returns the content of a file of at most chunkSize, which nobody may change. It is empty if there is none of this number.
func (t *tree) small(content int64) ([]byte, error) {
	if bytes, has := t.store.recent.get(content); has {
		return bytes, nil
	}
	var bytes []byte
	err := t.conn.Row(t.ctx, `SELECT bytes FROM content WHERE id = ?`, content).Scan(&bytes)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		t.keep(content, bytes)
	}
	return bytes, err
}

// pieces yields those of a layer, without what comes before an offset in the file, and says whether to continue.
func (t *tree) pieces(yield func([]byte, error) bool, l layer, from int64) bool {
	less := from % chunkSize
	for row, err := range t.conn.Rows(t.long, `SELECT piece.bytes FROM part JOIN piece ON piece.id = piece WHERE content = ? AND n >= ? AND n < ? ORDER BY n`,
		l.content, from/chunkSize, l.end) {
		var piece sql.RawBytes
		if err == nil {
			err = row.Scan(&piece)
		}
		piece = piece[min(int(less), len(piece)):]
		if less = 0; !yield(piece, err) || err != nil {
			return false
		}
	}
	return true
}

// layer says that a content has the parts between the end of the previous layer and its own.
type layer struct{ content, end int64 }

// layers are where the pieces of a content from a number on are, in order. A content's own parts follow those of its base.
func (t *tree) layers(content, from int64) (all []layer, err error) {
	for row, err := range t.conn.Rows(t.long, `WITH RECURSIVE layer (content, pieces) AS (SELECT ?1, ?2 UNION ALL
		SELECT p.base, p.pieces FROM layer JOIN prefix p ON p.content = layer.content WHERE p.pieces > ?3)
		SELECT content, pieces FROM layer ORDER BY pieces`, content, int64(math.MaxInt64/chunkSize), from) {
		var l layer
		if err == nil {
			err = row.Scan(&l.content, &l.end)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

func (t *tree) now() int64 { return max(t.options.Now().UnixMilli(), 0) }

// exec runs a statement that changes something other than nodes.
func (t *tree) exec(statement string, args ...any) (sql.Result, error) {
	r, err := t.conn.Exec(t.ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		t.counted = nil
	}
	return r, nil
}

// execNodes is exec for a statement that changes nodes.
func (t *tree) execNodes(statement string, args ...any) (sql.Result, error) {
	t.nodes++
	t.version = nil
	return t.exec(statement, args...)
}

// add makes a node at a path from the root of the workspace.
func (t *tree) add(full string, n *node) error {
	parent, name := split(full)
	content := sql.NullInt64{Int64: n.bytes, Valid: n.is(KindFile)}
	_, err := t.execNodes(`INSERT INTO node (workspace, parent, name, kind, size, modified, mode, content, target)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.workspace, parent, name, n.status.Kind, int64(n.status.Size), t.now(), n.status.Mode, content, n.target)
	return err
}

func (t *tree) ensure() (made int, err error) {
	var missing []string
	for full := t.base; full != ""; full, _ = split(full) {
		n, err := t.find(full)
		if err != nil {
			return 0, err
		}
		if n != nil && !n.is(KindDirectory) {
			return 0, mismatch("", n, "directory") // the holder must not learn what lies above the base
		}
		if n != nil {
			break
		}
		if missing = append(missing, full); len(missing) > maxMade {
			return 0, tooMany("")
		}
	}
	for _, full := range slices.Backward(missing) {
		if err := t.add(full, directoryNode()); err != nil {
			return 0, err
		}
	}
	return len(missing), nil
}

func (t *tree) makeDirectory(path string) error { return t.add(t.base+path, directoryNode()) }

func (t *tree) makeLink(path, target string) error {
	return t.add(t.base+path, &node{status: Status{Kind: KindLink, Mode: linkMode}, target: target})
}

func (t *tree) setMode(_ string, n *node, mode uint32) error {
	_, err := t.execNodes(`UPDATE node SET mode = ? WHERE id = ?`, mode, n.id)
	return err
}

func (t *tree) put(path string, n *node, size int64, content io.Reader) error {
	if err := errors.Join(t.room(n, size), t.foresee(path, size)); err != nil {
		return err
	}
	if s, ok := content.(*staged); ok {
		return t.adopt(path, n, s)
	}
	if size > chunkSize {
		return t.writePieces(path, n, size, 0, content)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(content, data); err != nil {
		return err
	}
	return t.writeRow(path, n, data)
}

func (t *tree) extend(path string, n *node, data []byte) error {
	old := int64(n.status.Size)
	size := old + int64(len(data))
	if err := t.room(n, size); err != nil {
		return err
	}
	// The last piece is written again. The others are shared with the previous content.
	whole := int64(0)
	if old > chunkSize {
		whole = old / chunkSize
	}
	var rest []byte
	for piece, err := range t.content(path, n, whole*chunkSize) {
		if err != nil {
			return err
		}
		rest = append(rest, piece...)
	}
	if size <= chunkSize {
		return t.writeRow(path, n, append(rest, data...))
	}
	return t.writePieces(path, n, size, whole, io.MultiReader(bytes.NewReader(rest), bytes.NewReader(data)))
}

// room checks the limits before the work of writing.
func (t *tree) room(n *node, size int64) error {
	if n == nil {
		return t.checkLimits(1, size)
	}
	return t.checkLimits(0, size-int64(n.status.Size))
}

// roomSoon is room for a transaction that has not begun.
func (t *tree) roomSoon(n *node, size int64) (err error) {
	if t.before, err = t.usage(); err != nil {
		return err
	}
	return t.room(n, size)
}

// writeRow makes a file of a small content, or replaces the content of n.
func (t *tree) writeRow(path string, n *node, data []byte) error {
	id, err := newContent(t.ctx, t.conn)
	if err != nil {
		return err
	}
	if _, err := t.exec(`INSERT INTO content VALUES (?1, ?2, coalesce(?3, x''))`, id, len(data), data); err != nil {
		return err
	}
	err = t.assign(path, n, id, int64(len(data)))
	if n != nil {
		t.replaced.bytes = data
	}
	return err
}

// writePieces makes a file of a large content, or replaces the content of n. The first pieces are those of n.
func (t *tree) writePieces(path string, n *node, size, shared int64, content io.Reader) error {
	id, err := newContent(t.ctx, t.conn)
	if err != nil {
		return err
	}
	if _, err := t.exec(`INSERT INTO content (id, size) VALUES (?, ?)`, id, size); err != nil {
		return err
	}
	if shared > 0 {
		if err := t.share(id, n.bytes, shared); err != nil {
			return err
		}
	}
	buffer := make([]byte, chunkSize)
	for at := shared; at*chunkSize < size; at++ {
		chunk := buffer[:min(chunkSize, size-at*chunkSize)]
		if _, err := io.ReadFull(content, chunk); err != nil {
			return err
		}
		if err := addPart(t.ctx, t.conn, id, at, chunk, sha256.Sum256(chunk)); err != nil {
			return err
		}
	}
	return t.assign(path, n, id, size)
}

// share makes a new content begin with the first pieces of another one. It copies at most a batch of parts. If there are more, the
// other content becomes its base. So no chain of bases is longer than a content's number of batches.
func (t *tree) share(content, from, pieces int64) error {
	var before int64
	err := t.conn.Row(t.ctx, `SELECT pieces FROM prefix WHERE content = ?`, from).Scan(&before)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if pieces-before > int64(t.batch) {
		_, err := t.exec(`INSERT INTO prefix VALUES (?, ?, ?)`, content, from, pieces)
		return err
	}
	if _, err := t.exec(`INSERT INTO prefix SELECT ?, base, pieces FROM prefix WHERE content = ?`, content, from); err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO part SELECT ?, n, piece FROM part WHERE content = ? AND n < ?`, content, from, pieces)
	return err
}

// newContent returns a number that no content ever had.
func newContent(ctx context.Context, c *sqlite.Conn) (id int64, err error) {
	err = c.Row(ctx, `UPDATE serial SET last = last + 1 RETURNING last`).Scan(&id)
	return id, err
}

// addPart adds a piece to a content. It stores the piece unless an equal one exists.
func addPart(ctx context.Context, c *sqlite.Conn, content, at int64, data []byte, digest [sha256.Size]byte) error {
	var piece int64
	err := c.Row(ctx, `SELECT id FROM piece WHERE digest = ?`, digest[:]).Scan(&piece)
	if errors.Is(err, sql.ErrNoRows) {
		var r sql.Result
		if r, err = c.Exec(ctx, `INSERT INTO piece (digest, bytes) VALUES (?, ?)`, digest[:], data); err == nil {
			piece, err = r.LastInsertId()
		}
	}
	if err == nil {
		_, err = c.Exec(ctx, `INSERT INTO part VALUES (?, ?, ?)`, content, at, piece)
	}
	return err
}

// assign gives a content to n, or to a new file.
func (t *tree) assign(path string, n *node, id, size int64) error {
	if n == nil {
		return t.add(t.base+path, &node{status: Status{Kind: KindFile, Size: uint64(size), Mode: fileMode}, bytes: id})
	}
	now := t.now()
	_, err := t.execNodes(`UPDATE node SET size = ?, modified = ?, content = ? WHERE id = ?`, size, now, id, n.id)
	t.replaced = &replaced{full: t.base + path, id: n.id, Status: Status{Size: uint64(size), Modified: uint64(now)}, content: id}
	return err
}

func (t *tree) move(n *node, source, target string) error {
	if err := t.checkDepth(n, source, target); err != nil {
		return err
	}
	parent, name := split(t.base + target)
	if _, err := t.execNodes(`UPDATE node SET parent = ?, name = ? WHERE id = ?`, parent, name, n.id); err != nil || !n.is(KindDirectory) {
		return err
	}
	return t.begin(task{kind: moveTask, source: t.base + source, target: t.base + target})
}

func (t *tree) copy(n *node, source, target string) error {
	if err := t.checkDepth(n, source, target); err != nil {
		return err
	}
	if err := t.add(t.base+target, n); err != nil || !n.is(KindDirectory) {
		return err
	}
	e, err := t.measure(t.base + source)
	if err == nil {
		err = t.checkLimits(e.files, e.bytes)
	}
	if err != nil {
		return err
	}
	t.planned = e.bytes + e.files*t.pathRoom(e.longest+int64(len(target)-len(source)))
	return t.begin(task{kind: copyTask, source: t.base + source, target: t.base + target})
}

// tail is the position, in characters from 1, where a path below source continues after source.
func tail(source string) int { return utf8.RuneCountInString(source) + 1 }

// checkDepth makes sure that no path below source gets too long at target.
func (t *tree) checkDepth(n *node, source, target string) error {
	if !n.is(KindDirectory) {
		return nil // its own path was checked when it was resolved
	}
	e, err := t.measure(t.base + source)
	if err != nil {
		return err
	}
	size := int(e.longest) + len(target) - len(source)
	if e.files > 0 && size > maxPath {
		return tooDeep(size)
	}
	t.planned = e.files * t.pathRoom(int64(size)) // of a move; the history may grow by what is removed
	return nil
}

func (t *tree) remove(n *node, path string, _ bool) error {
	if _, err := t.execNodes(`DELETE FROM node WHERE id = ?`, n.id); err != nil || !n.is(KindDirectory) {
		return err
	}
	return t.begin(task{kind: removeTask, source: t.base + path})
}

// usage is what a workspace holds: nodes and their bytes, revisions and theirs. version counts transactions.
type usage struct {
	files, bytes, revisions, history, version int64
	paths, planned, room                      int64 // see the schema
}

func (t *tree) usage() (usage, error) {
	if t.counted != nil {
		return *t.counted, nil
	}
	var u usage
	err := t.conn.Row(t.ctx, `SELECT files, bytes, revisions, history, version, paths, planned, room FROM usage WHERE workspace = ?`, t.workspace).
		Scan(&u.files, &u.bytes, &u.revisions, &u.history, &u.version, &u.paths, &u.planned, &u.room)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return usage{}, err
	}
	t.counted = &u
	return u, nil
}

// checkLimits refuses growth beyond the limits, including growth by the rest of the operation.
func (t *tree) checkLimits(files, bytes int64) error {
	now, err := t.usage()
	now.files += files
	now.bytes += bytes
	switch {
	case err != nil:
		return err
	case now.files > t.options.Files && now.files > t.before.files:
		return stores.Exhausted("workspace: files and directories", t.options.Files, now.files)
	case now.bytes > t.options.Bytes && now.bytes > t.before.bytes:
		return stores.Exhausted("workspace: bytes", t.options.Bytes, now.bytes)
	default:
		return nil
	}
}
