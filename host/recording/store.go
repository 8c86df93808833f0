// Package recording keeps recordings of calls and their components in one database file. They are compressed, and bounded by age,
// number and bytes. Several processes may use the file at once. Written recordings survive kill -9. Writing happens in the
// background. A damaged recording gives an error and does not affect the others.
package recording

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/turns"
)

// Options limit what a store keeps. The zero value of a field means its default.
type Options struct {
	// MaxAge is how long a recording is kept. Default 30 days.
	MaxAge time.Duration
	// MaxCalls is how many recordings are kept. Default 10,000.
	MaxCalls int64
	// MaxBytes bounds the compressed bytes of all recordings and components together. Default 256 MiB. When one of the three bounds
	// is exceeded, the oldest recordings are deleted, and components together with their last recording.
	MaxBytes int64
	// QueueBytes bounds the recordings that wait to be written. A call whose recording does not fit waits for room, for which users take
	// turns. If its context ends meanwhile, the recording is dropped and counted. Default 32 MiB.
	QueueBytes int64
	// Logger receives recordings that could not be kept. Default: nothing is logged.
	Logger *slog.Logger
}

// Triggers keep usage exact for every statement that changes the tables.
var schema = sqlite.Schema{Kind: "call recording", ID: 0x73747263 /* strc */, MaxRow: MaxRow, Migrations: []string{`
CREATE TABLE call (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	started    INTEGER NOT NULL, -- milliseconds since 1970
	duration   INTEGER NOT NULL, -- nanoseconds
	component  TEXT NOT NULL,
	tool       TEXT NOT NULL,
	outcome    TEXT NOT NULL,
	operations INTEGER NOT NULL,
	cut        TEXT NOT NULL,
	digest     BLOB NOT NULL,    -- SHA-256 of body
	body       BLOB NOT NULL
) STRICT;
CREATE INDEX call_component ON call (component);
CREATE INDEX call_started ON call (started);

CREATE TABLE component (
	digest TEXT NOT NULL PRIMARY KEY, -- SHA-256 of the component, in hex
	kept   INTEGER NOT NULL,          -- when, in milliseconds since 1970
	body   BLOB NOT NULL
) STRICT;

CREATE TABLE dropped (
	at    INTEGER NOT NULL, -- milliseconds since 1970
	calls INTEGER NOT NULL
) STRICT;

CREATE TABLE usage (calls INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
INSERT INTO usage VALUES (0, 0);

CREATE TRIGGER call_insert AFTER INSERT ON call BEGIN
	UPDATE usage SET calls = calls + 1, bytes = bytes + length(new.body);
END;
CREATE TRIGGER call_delete AFTER DELETE ON call BEGIN
	UPDATE usage SET calls = calls - 1, bytes = bytes - length(old.body);
	DELETE FROM component WHERE digest = old.component AND NOT EXISTS (SELECT 1 FROM call WHERE component = old.component);
END;
CREATE TRIGGER component_insert AFTER INSERT ON component BEGIN
	UPDATE usage SET bytes = bytes + length(new.body);
END;
CREATE TRIGGER component_delete AFTER DELETE ON component BEGIN
	UPDATE usage SET bytes = bytes - length(old.body);
END;
`, `
-- A large component has its bytes in parts, and an empty body. Parts are written before it and deleted after it.
CREATE TABLE part (
	component TEXT NOT NULL,
	n         INTEGER NOT NULL,
	written   INTEGER NOT NULL, -- when, in milliseconds since 1970
	body      BLOB NOT NULL,
	PRIMARY KEY (component, n)
) STRICT;
ALTER TABLE component ADD COLUMN size INTEGER NOT NULL DEFAULT 0; -- bytes of its parts
DROP TRIGGER component_insert;
CREATE TRIGGER component_insert AFTER INSERT ON component BEGIN
	UPDATE usage SET bytes = bytes + length(new.body) + new.size;
END;
DROP TRIGGER component_delete;
CREATE TRIGGER component_delete AFTER DELETE ON component BEGIN
	UPDATE usage SET bytes = bytes - length(old.body) - old.size;
END;
`, `
-- Components that are deleted, or were given up while they were written, and whose parts are still to be deleted.
CREATE TABLE gone (component TEXT NOT NULL PRIMARY KEY) STRICT;
INSERT INTO gone SELECT DISTINCT component FROM part WHERE NOT EXISTS (SELECT 1 FROM component WHERE digest = part.component);
CREATE TRIGGER component_gone AFTER DELETE ON component WHEN old.size > 0 BEGIN
	INSERT OR IGNORE INTO gone VALUES (old.digest);
END;
-- Components without a call, in the order in which they came.
CREATE TABLE uncalled (id INTEGER PRIMARY KEY, component TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO uncalled (component) SELECT digest FROM component WHERE NOT EXISTS (SELECT 1 FROM call WHERE component = digest) ORDER BY kept;
CREATE TRIGGER uncalled_insert AFTER INSERT ON component WHEN NOT EXISTS (SELECT 1 FROM call WHERE component = new.digest) BEGIN
	INSERT INTO uncalled (component) VALUES (new.digest);
END;
CREATE TRIGGER uncalled_delete AFTER DELETE ON component BEGIN
	DELETE FROM uncalled WHERE component = old.digest;
END;
CREATE TRIGGER uncalled_call AFTER INSERT ON call BEGIN
	DELETE FROM uncalled WHERE component = new.component;
END;
-- Parts count, and no longer the sizes of components.
UPDATE usage SET bytes = bytes - (SELECT coalesce(sum(size), 0) FROM component) + (SELECT coalesce(sum(length(body)), 0) FROM part);
CREATE TRIGGER part_insert AFTER INSERT ON part BEGIN
	UPDATE usage SET bytes = bytes + length(new.body);
END;
CREATE TRIGGER part_delete AFTER DELETE ON part BEGIN
	UPDATE usage SET bytes = bytes - length(old.body);
END;
DROP TRIGGER component_insert;
CREATE TRIGGER component_insert AFTER INSERT ON component BEGIN
	UPDATE usage SET bytes = bytes + length(new.body);
END;
DROP TRIGGER component_delete;
CREATE TRIGGER component_delete AFTER DELETE ON component BEGIN
	UPDATE usage SET bytes = bytes - length(old.body);
END;
`, `
ALTER TABLE call ADD COLUMN extension TEXT NOT NULL DEFAULT '';
`}}

// Store is a file of recordings. It is safe for concurrent use. The caller of Open closes it. It is a [host.Recorder].
type Store struct {
	db      *sqlite.DB
	options Options
	encoder *zstd.Encoder
	decoder *zstd.Decoder // of components
	bodies  *zstd.Decoder // of recordings
	room    *turns.Places // bytes of room in the queue

	mu      sync.Mutex
	written *sync.Cond
	hurry   chan struct{} // has an element if a call waits for the writer
	queue   []*host.Recording
	waiting int   // recordings that are not yet written, in the queue or out of it
	writing bool  // a goroutine is writing
	dropped int64 // not yet counted in the table of that name
	total   int64 // dropped since Open
	closed  bool
}

const (
	// maxBody bounds the decompressed size of a component, and maxRecording that of a recording. With the default of
	// host.Options.RecordBytes, no recording is larger.
	maxBody      = 256 << 20
	maxRecording = 64 << 20
	// MaxRow is the largest row of the store, in bytes. Only another program can have written a larger one.
	MaxRow = maxBody + 1<<20
)

// Open opens the recordings in file, and makes the file if it is missing. Its folder must exist. ctx bounds only the opening.
func Open(ctx context.Context, file string, o Options) (*Store, error) {
	o.MaxAge = cmp.Or(o.MaxAge, 30*24*time.Hour)
	o.MaxCalls = cmp.Or(o.MaxCalls, 10_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 256<<20)
	o.QueueBytes = cmp.Or(o.QueueBytes, 32<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{options: o, room: turns.New(int(o.QueueBytes)), hurry: make(chan struct{}, 1)}
	s.written = sync.NewCond(&s.mu)
	var err error
	if s.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true)); err != nil {
		return nil, err
	}
	if s.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody)); err != nil {
		return nil, err
	}
	if s.bodies, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRecording)); err != nil {
		return nil, err
	}
	if s.db, err = sqlite.Open(ctx, file, schema); err != nil {
		return nil, err
	}
	return s, nil
}

// Close writes the waiting recordings, and closes the file. It is idempotent. Later recordings are dropped.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Flush()
	s.decoder.Close()
	s.bodies.Close()
	return errors.Join(s.encoder.Close(), s.db.Close())
}

// Record implements [host.Recorder]: it puts a recording into the queue.
func (s *Store) Record(ctx context.Context, r *host.Recording) {
	size := min(weight(r), s.options.QueueBytes)
	if user := turns.User(ctx); !s.room.TryTake(user, size) {
		s.hasten()
		if s.room.TakeFor(ctx, user, size) != nil {
			s.drop(1, context.Cause(ctx))
			return
		}
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.room.GiveBack(size)
		s.drop(1, errors.New("the recordings are closed"))
		return
	}
	s.queue = append(s.queue, r)
	s.waiting++
	if !s.writing {
		s.writing = true
		go s.write() //nolint:contextcheck // the call that this one came with may be over before
	}
	s.mu.Unlock()
}

// weight estimates the memory that a recording holds.
func weight(r *host.Recording) int64 {
	size := 1024 + len(r.Code) + len(r.SourceMap) + len(r.Input) + cap(r.Operations) + len(r.Output) + len(r.Outcome.Message) + len(r.Outcome.Stack)
	for _, d := range r.Usage.Denials {
		size += len(d.Operation) + len(d.Reason) + len(d.Remedy)
	}
	return int64(size)
}

// drop counts lost recordings.
func (s *Store) drop(n int64, why error) {
	s.mu.Lock()
	s.dropped += n
	s.total += n
	s.mu.Unlock()
	s.options.Logger.Warn("calls are not recorded", "calls", n, "error", why)
}

// Dropped is how many recordings were lost since Open, for lack of room or because the disk failed.
func (s *Store) Dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Flush returns when no recording waits to be written.
func (s *Store) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.waiting > 0 {
		s.hasten()
		s.written.Wait()
	}
}

func (s *Store) hasten() {
	select {
	case s.hurry <- struct{}{}:
	default:
	}
}

const (
	// maxBatch is how many recordings one transaction writes at most.
	maxBatch = 1000
	// linger is how long a recording waits for others, because a transaction costs more than a hundred recordings.
	linger = 20 * time.Millisecond
)

// write writes until no recording waits.
func (s *Store) write() {
	for more := false; ; {
		if !more {
			timer := time.NewTimer(linger)
			select {
			case <-timer.C:
			case <-s.hurry:
				timer.Stop()
			}
		}
		s.mu.Lock()
		batch := s.queue
		if len(batch) == 0 {
			s.writing = false
			s.mu.Unlock()
			return
		}
		if more = len(batch) > maxBatch; more {
			batch = batch[:maxBatch:maxBatch]
		}
		s.queue = s.queue[len(batch):]
		s.mu.Unlock()
		s.append(context.Background(), batch) // the calls have ended
		for _, r := range batch {
			s.room.GiveBack(min(weight(r), s.options.QueueBytes))
		}
		s.mu.Lock()
		s.waiting -= len(batch)
		s.written.Broadcast()
		s.mu.Unlock()
	}
}

// writtenAtOnce bounds the bytes of recordings that one transaction writes or deletes. A single recording may exceed it.
const writtenAtOnce = 2 << 20

// append writes recordings, and deletes the oldest if there are too many. It uses several transactions, so that none is long.
func (s *Store) append(ctx context.Context, batch []*host.Recording) {
	type row struct {
		*host.Recording
		body []byte
	}
	var rows []row
	for _, r := range batch {
		body, err := encode(r)
		if err == nil && len(body) > maxRecording {
			err = fmt.Errorf("a recording of %d bytes", len(body))
		}
		if err != nil {
			s.drop(1, err)
			continue
		}
		rows = append(rows, row{r, s.encoder.EncodeAll(body, nil)})
	}
	more := false
	for first := true; first || len(rows) > 0; first = false { // without rows, dropped recordings may remain to be counted
		n, size := 0, 0
		for n < len(rows) && (n == 0 || size+len(rows[n].body) <= writtenAtOnce) {
			size += len(rows[n].body)
			n++
		}
		s.mu.Lock()
		dropped := s.dropped
		s.mu.Unlock()
		err := s.db.Update(ctx, func(c *sqlite.Conn) (err error) {
			for _, r := range rows[:n] {
				digest := sha256.Sum256(r.body)
				if _, err := c.Exec(ctx, `INSERT INTO call (started, duration, component, tool, extension, outcome, operations, cut, digest, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
					r.Started.UnixMilli(), int64(r.Duration), r.Component, r.Tool, r.Extension, r.Outcome.Kind, r.Usage.Operations, r.Cut, digest[:], r.body); err != nil {
					return err
				}
			}
			if dropped > 0 {
				if _, err := c.Exec(ctx, `INSERT INTO dropped VALUES (?, ?)`, time.Now().UnixMilli(), dropped); err != nil {
					return err
				}
			}
			more, err = s.forget(ctx, c)
			return err
		})
		if err != nil {
			s.drop(int64(len(rows)), err)
			return
		}
		s.mu.Lock()
		s.dropped -= dropped
		s.mu.Unlock()
		rows = rows[n:]
	}
	if more {
		if err := s.makeRoom(ctx); err != nil {
			s.options.Logger.Warn("delete the oldest recordings", "error", err)
		}
	}
}

// forgottenAtOnce is how many recordings one transaction deletes at most.
const forgottenAtOnce = 256

// forget deletes recordings beyond the options' limits, as many as fit
// one transaction. more reports whether more may remain. It always
// keeps the newest recording, whatever its size.
func (s *Store) forget(ctx context.Context, c *sqlite.Conn) (more bool, err error) {
	oldest := time.Now().Add(-s.options.MaxAge).UnixMilli()
	var calls, bytes int64
	if err := c.Row(ctx, `SELECT calls, bytes FROM usage`).Scan(&calls, &bytes); err != nil {
		return false, err
	}
	if gone, err := forgetPart(ctx, c); gone || err != nil {
		return gone, err
	}
	if bytes > s.options.MaxBytes { // a component is kept before its first call is recorded, so the newest stays
		r, err := c.Exec(ctx, `DELETE FROM component WHERE digest = (SELECT component FROM uncalled WHERE id < (SELECT max(id) FROM uncalled) ORDER BY id LIMIT 1)`)
		if err != nil {
			return false, err
		}
		if n, err := r.RowsAffected(); err != nil || n > 0 {
			return true, err
		}
	}
	many := max(calls-s.options.MaxCalls, 0)
	if more = bytes > s.options.MaxBytes; more {
		many = max(many, calls/50+1)
	}
	query, args := `SELECT id, length(body) FROM call ORDER BY id LIMIT ?`, []any{min(many, calls-1, forgottenAtOnce)}
	if min(many, calls-1) <= 0 {
		query = `SELECT id, length(body) FROM call WHERE id < (SELECT max(id) FROM call) AND started < ? ORDER BY started LIMIT ?`
		args = []any{oldest, forgottenAtOnce}
	}
	var ids []int64
	size := int64(0)
	for row, err := range c.Rows(ctx, query, args...) {
		var id, its int64
		if err == nil {
			err = row.Scan(&id, &its)
		}
		if err != nil {
			return false, err
		}
		if size += its; len(ids) > 0 && size > writtenAtOnce {
			more = true
			break
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if _, err := c.Exec(ctx, `DELETE FROM call WHERE id = ?`, id); err != nil {
			return false, err
		}
	}
	if len(ids) > 0 && more || len(ids) == forgottenAtOnce {
		return true, nil
	}
	r, err := c.Exec(ctx, `DELETE FROM component WHERE digest = (SELECT digest FROM component WHERE kept < ? AND NOT EXISTS (SELECT 1 FROM call WHERE call.component = component.digest) LIMIT 1)`,
		time.Now().Add(-24*time.Hour).UnixMilli())
	if err != nil {
		return false, err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		return true, err
	}
	// Parts of a component that is being written do not belong to a component yet.
	r, err = c.Exec(ctx, `INSERT INTO gone SELECT DISTINCT component FROM part WHERE NOT EXISTS (SELECT 1 FROM component WHERE digest = part.component)
		GROUP BY component HAVING max(written) < ?`, time.Now().Add(-time.Hour).UnixMilli())
	if err != nil {
		return false, err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		return true, err
	}
	_, err = c.Exec(ctx, `DELETE FROM dropped WHERE at < ?`, oldest)
	return false, err
}

// forgetPart deletes a part of a component that is gone, and reports whether it did.
func forgetPart(ctx context.Context, c *sqlite.Conn) (bool, error) {
	r, err := c.Exec(ctx, `DELETE FROM part WHERE rowid = (SELECT part.rowid FROM gone JOIN part ON part.component = gone.component LIMIT 1)`)
	if err != nil {
		return false, err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		return n > 0, err
	}
	_, err = c.Exec(ctx, `DELETE FROM gone`)
	return false, err
}

// makeRoom deletes what is beyond the options' limits.
func (s *Store) makeRoom(ctx context.Context) error {
	for more := true; more; {
		if err := s.db.Update(ctx, func(c *sqlite.Conn) (err error) {
			more, err = s.forget(ctx, c)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Keep stores a component, so that its calls can be replayed without its file. It is deleted with its last recording. Without any
// recording, it is kept for a day.
func (s *Store) Keep(ctx context.Context, wasm []byte) error {
	digest := sha256hex.Of(wasm)
	var known bool
	if err := s.db.Read(ctx, func(c *sqlite.Conn) error { // a component stored some hours ago may be about to be deleted
		return c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM component WHERE digest = ? AND kept > ?)`, digest,
			time.Now().Add(-time.Hour).UnixMilli()).Scan(&known)
	}); err != nil || known {
		return err
	}
	if err := s.db.Update(ctx, func(c *sqlite.Conn) error {
		r, err := c.Exec(ctx, `UPDATE component SET kept = ? WHERE digest = ?`, time.Now().UnixMilli(), digest)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		known = n > 0
		return err
	}); err != nil || known {
		return err
	}
	body := s.encoder.EncodeAll(wasm, nil)
	if int64(len(body)) > s.options.MaxBytes {
		return fmt.Errorf("the component takes %s, and all recordings may take %s", printable.Size(int64(len(body))), printable.Size(s.options.MaxBytes))
	}
	if err := s.keep(ctx, digest, body); err != nil {
		ctx := context.WithoutCancel(ctx) // nobody else deletes the parts within an hour
		return errors.Join(err, s.db.Update(ctx, func(c *sqlite.Conn) error {
			_, err := c.Exec(ctx, `INSERT OR IGNORE INTO gone SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM component WHERE digest = ?1)`, digest)
			return err
		}), s.makeRoom(ctx))
	}
	return s.makeRoom(ctx)
}

// keep writes a compressed component, a large one in parts.
func (s *Store) keep(ctx context.Context, digest string, body []byte) error {
	size := 0
	if len(body) > writtenAtOnce {
		for n, part := range slices.Collect(slices.Chunk(body, writtenAtOnce)) {
			if err := s.db.Update(ctx, func(c *sqlite.Conn) error {
				if _, err := c.Exec(ctx, `DELETE FROM gone WHERE component = ?`, digest); err != nil {
					return err
				}
				if _, err := c.Exec(ctx, `DELETE FROM part WHERE component = ? AND n = ?`, digest, n); err != nil {
					return err
				}
				if _, err := c.Exec(ctx, `INSERT INTO part VALUES (?, ?, ?, ?)`, digest, n, time.Now().UnixMilli(), part); err != nil {
					return err
				}
				var unfinished int64
				if err := c.Row(ctx, `SELECT coalesce(sum(length(body)), 0) FROM part
					WHERE NOT EXISTS (SELECT 1 FROM component WHERE digest = part.component UNION ALL SELECT 1 FROM gone WHERE gone.component = part.component)`).Scan(&unfinished); err != nil {
					return err
				}
				if unfinished > s.options.MaxBytes {
					return fmt.Errorf("other components that are being written take %s", printable.Size(unfinished))
				}
				_, err := s.forget(ctx, c)
				return err
			}); err != nil {
				return err
			}
		}
		body, size = nil, len(body)
	}
	return s.db.Update(ctx, func(c *sqlite.Conn) error {
		var written int
		if err := c.Row(ctx, `SELECT coalesce(sum(length(body)), 0) FROM part WHERE component = ?`, digest).Scan(&written); err != nil {
			return err
		}
		if size > 0 && written != size {
			return fmt.Errorf("%d of the component's %d bytes are stored", written, size) // it took more than an hour
		}
		_, err := c.Exec(ctx, `INSERT INTO component VALUES (?, ?, coalesce(?, x''), ?) ON CONFLICT DO UPDATE SET kept = excluded.kept`, digest, time.Now().UnixMilli(), body, size)
		return err
	})
}

// ErrNotFound reports that there is no such recording.
var ErrNotFound = abi.ErrNotFound

// DamagedError reports an altered recording or component.
type DamagedError struct {
	What   string // "recording 12", "component 0a..."
	Reason string
}

func (e *DamagedError) Error() string { return e.What + " is damaged: " + e.Reason }

// Component returns a stored component.
func (s *Store) Component(ctx context.Context, digest string) ([]byte, error) {
	var body []byte
	err := s.db.View(ctx, func(c *sqlite.Conn) error {
		var size int64
		if err := c.Row(ctx, `SELECT body, size FROM component WHERE digest = ?`, digest).Scan(&body, &size); err != nil || size == 0 {
			return err
		}
		for row, err := range c.Rows(ctx, `SELECT body FROM part WHERE component = ? ORDER BY n`, digest) {
			var part []byte
			if err == nil {
				err = row.Scan(&part)
			}
			if err != nil {
				return err
			}
			if body = append(body, part...); len(body) > maxBody {
				break // it has another digest
			}
		}
		return nil
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, abi.Errorf(abi.CodeNotFound, "component %s", printable.Short(digest, 64))
	}
	if err != nil {
		return nil, err
	}
	wasm, err := s.decoder.DecodeAll(body, nil)
	if err == nil {
		if sha256hex.Of(wasm) != digest {
			err = errors.New("its digest does not match its content")
		}
	}
	if err != nil {
		return nil, &DamagedError{"component " + printable.Short(digest, 64), printable.Text(err.Error())}
	}
	return wasm, nil
}

// Get returns a recording. Errors are [ErrNotFound] or a *[DamagedError].
func (s *Store) Get(ctx context.Context, id int64) (*host.Recording, error) {
	var digest, body []byte
	var row Summary
	err := s.db.Read(ctx, func(c *sqlite.Conn) error {
		return row.scan(c.Row(ctx, `SELECT `+columns+`, digest, body FROM call WHERE id = ?`, id), &digest, &body)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, abi.Errorf(abi.CodeNotFound, "recording %d", id)
	}
	if err != nil {
		return nil, err
	}
	damaged := func(reason string) error {
		return &DamagedError{fmt.Sprintf("recording %d", id), printable.Text(reason)}
	}
	if sum := sha256.Sum256(body); string(sum[:]) != string(digest) {
		return nil, damaged("its digest does not match its content")
	}
	plain, err := s.bodies.DecodeAll(body, nil)
	if err != nil {
		return nil, damaged(err.Error())
	}
	r, err := decode(plain)
	if err != nil {
		return nil, damaged(err.Error())
	}
	if summary(r, id) != row {
		return nil, damaged("its row in the index does not match its content")
	}
	return r, nil
}
