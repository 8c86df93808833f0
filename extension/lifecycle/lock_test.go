package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/sqlite/sqlitetest"
)

// manyEntries puts entries into the log.
func manyEntries(t *testing.T, m *Manager, n int) {
	t.Helper()
	if err := m.db.Update(t.Context(), func(c *sqlite.Conn) error {
		entries := make([]Entry, n)
		for i := range entries {
			entries[i] = Entry{Kind: "call", By: "user:x", Tool: fmt.Sprint("t", i)}
		}
		return audit(t.Context(), c, m.options.Now(), entries...)
	}); err != nil {
		t.Fatal(err)
	}
}

// work is how many transactions there were, and the most rows that one changed.
type work struct {
	transactions int
	most         int64
}

// endedAfter returns a context that ends after so many transactions, or never after 0, and what they do.
func endedAfter(t *testing.T, end int) (context.Context, context.CancelFunc, *work) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &work{}
	return sqlite.Observe(ctx, func() func(sqlite.Work) {
		w.transactions++
		return func(done sqlite.Work) {
			if w.most = max(w.most, done.Rows); w.transactions == end {
				cancel()
			}
		}
	}), cancel, w
}

// TestArchivingLetsOthersWrite moves many entries to an archive in transactions with a bounded number of rows. Wherever it ends, the move is
// either done or not, and entries left in the store are not part of the log.
func TestArchivingLetsOthersWrite(t *testing.T) {
	const entries = 2*forgottenAtOnce + 500
	for end := range 5 { // after so many transactions; 0 is never
		h := newHome(t)
		now := time.Now()
		h.options.Now = func() time.Time { return now }
		m := h.open()
		manyEntries(t, m, entries)
		now = now.Add(48 * time.Hour)
		ctx, cancel, work := endedAfter(t, end)
		var to memory
		moved, err := m.ArchiveAudit(ctx, now, person, &to)
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) || err == nil && moved != entries {
			t.Fatalf("moved %d, %v", moved, err)
		}
		if work.most > forgottenAtOnce+10 || end == 0 && work.transactions < 4 {
			t.Errorf("%d transactions, at most %d rows in one", work.transactions, work.most)
		}
		archives := to.String()
		if err != nil {
			archives = ""
		}
		n, _, err := m.VerifyAudit(t.Context(), strings.NewReader(archives))
		if want := int64(entries + 1); err != nil || n != want {
			t.Errorf("ended after %d: %d entries, want %d, %v", end, n, want, err)
		}
		if list, err := m.Audit(t.Context(), 10); err != nil || len(list) != 1 || list[0].Kind != "archive" {
			t.Errorf("ended after %d: %+v, %v", end, list, err)
		}
		if _, err := m.ArchiveAudit(t.Context(), now, person, new(memory)); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := m.db.View(t.Context(), func(c *sqlite.Conn) error {
			return c.Row(t.Context(), "SELECT count(*) FROM audit").Scan(&left)
		}); err != nil || left != 1 {
			t.Errorf("ended after %d: %d rows are left, %v", end, left, err)
		}
	}
}

// TestBeside is the second process of TestNoOperationHoldsTheLock.
func TestBeside(t *testing.T) {
	sqlitetest.Beside(t, func(file string) (func(int) error, func() error, error) {
		db, err := sqlite.Open(t.Context(), file, schema)
		if err != nil {
			return nil, nil, err
		}
		return func(int) error {
			return db.Update(t.Context(), func(c *sqlite.Conn) error {
				_, err := c.Exec(t.Context(), "UPDATE head SET generation = generation")
				return err
			})
		}, db.Close, nil
	})
}

// noise is random data that differs for each seed.
func noise(size int, seed uint64) []byte {
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = random.Read(data)
	return data
}

// largest is a draft of the maximum size that has passed all stages.
func largest(t *testing.T, m *Manager, name string, seed uint64) *build {
	t.Helper()
	d := draft(name, "1", "")
	manifest, err := extension.Parse(d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	wasm := noise(64<<20, seed)
	v := &Version{
		Manifest: manifest, manifest: d.Manifest, Files: map[string][]byte{}, Entry: "0.ts", Lock: noise(8<<20, seed+1),
		Component: sha256hex.Of(wasm), Created: m.options.Now(), Author: d.Author,
	}
	for i := range extension.MaxFiles {
		v.Files[fmt.Sprint(i, ".ts")] = noise(extension.MaxSource/extension.MaxFiles, seed+2+uint64(i))
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 250 {
		var words strings.Builder
		for words.Len() < 7_500 {
			fmt.Fprintf(&words, "w%d ", random.IntN(100_000))
		}
		v.Tools = append(v.Tools, abi.Definition{Name: fmt.Sprint("t", i), Description: words.String()})
	}
	if v.Digest, err = v.record().digest(); err != nil {
		t.Fatal(err)
	}
	b := &build{Manager: m, draft: d, version: v, wasm: wasm, written: &Written{Version: v}}
	if b.author, err = extension.ParseScope(d.Author); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNoOperationHoldsTheLock runs every operation that writes, on a store with many tools and versions of the maximum size, while a second
// process writes to the same store.
func TestNoOperationHoldsTheLock(t *testing.T) {
	h := newHome(t)
	h.options.poll = time.Hour
	now := time.Now()
	h.options.Now = func() time.Time { return now }
	m := h.open()
	manyEntries(t, m, 16*forgottenAtOnce)
	h.policyOf(`{"limits": {"auditedCalls": "1MiB"}}`)
	m.SetPolicy(h.options.Policy)
	now = now.Add(48 * time.Hour)
	if err := m.db.Update(t.Context(), func(c *sqlite.Conn) error { // a day of versions of an extension with many tools, and too many calls
		for _, statement := range []string{
			`INSERT INTO object VALUES ('past', x'')`,
			`INSERT INTO version VALUES ('past', 'often', 'past', '{}')`,
			`INSERT INTO release (scope, name, digest, state, author, asked) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
				SELECT 'agent:a', 'often', 'past', 'pending', 'agent:' || i, 0 FROM n`,
			`INSERT INTO tool (release, full_name, name) WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 249)
				SELECT id, 'often_t' || i, 't' || i FROM release, n`,
			`UPDATE release SET state = 'denied'`,
			`INSERT INTO call (scope, extension, tool, duration) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
				SELECT 'agent:a', 'large', 't', 0 FROM n`,
		} {
			if _, err := c.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	first, second := largest(t, m, "large", 1), largest(t, m, "large", 10_000)
	often := largest(t, m, "often", 20_000)
	often.wasm, often.version.Files, often.version.Lock = []byte("often"), map[string][]byte{"tool.ts": nil}, nil
	often.version.Component = sha256hex.Of(often.wasm)
	often.version.Manifest.Tools = nil
	for i := range often.version.Tools {
		often.version.Tools[i].Description = ""
		often.version.Manifest.Tools = append(often.version.Manifest.Tools, often.version.Tools[i].Name)
	}
	batch := make([]used, ledgerBatch)
	for i := range batch {
		batch[i] = used{scope: own.String(), extension: "large", tool: "t", started: now, outcome: "trap", message: strings.Repeat("x", 500), by: "agent:a"}
	}
	var asked Release
	decide := func() Decision {
		d := person
		d.Release, d.Digest = asked.ID, asked.Digest
		return d
	}
	sqlitetest.HoldNoLock(t, m.db, filepath.Join(h.options.Dir, File), "TestBeside", []sqlitetest.Operation{
		{Name: "write", Least: 30, Rows: 4000, Do: first.commit},
		{Name: "write another", Least: 30, Rows: 4000, Do: second.commit},
		{Name: "write what was written often", Rows: 4000, Do: often.commit},
		{Name: "write the first again", Rows: 4000, Do: first.commit},
		{Name: "roll back", Rows: 4000, Do: func(ctx context.Context) error {
			_, err := m.Rollback(ctx, own, "large", second.version.Digest, person)
			return err
		}},
		{Name: "promote", Rows: 4000, Do: func(ctx context.Context) (err error) {
			asked, err = m.Promote(ctx, own, everybody, "large", "user:tom", "test")
			return err
		}},
		{Name: "approve", Rows: 4000, Do: func(ctx context.Context) error { _, err := m.Approve(ctx, decide()); return err }},
		{Name: "revoke", Rows: 4000, Do: func(ctx context.Context) error {
			_, err := m.Revoke(ctx, everybody, "large", person)
			return err
		}},
		{Name: "promote again", Rows: 4000, Do: func(ctx context.Context) (err error) {
			asked, err = m.Promote(ctx, own, everybody, "large", "user:tom", "test")
			return err
		}},
		{Name: "deny", Rows: 4000, Do: func(ctx context.Context) error { _, err := m.Deny(ctx, decide()); return err }},
		{Name: "keep what was built again", Least: 30, Rows: 4000, Do: func(ctx context.Context) error {
			wasm := noise(64<<20, 77)
			m.keepRebuilt(ctx, second.version, wasm)
			return nil
		}},
		{Name: "remove", Rows: 4000, Do: func(ctx context.Context) error {
			_, err := m.Remove(ctx, own, "large", person)
			return err
		}},
		{Name: "remove what was written often", Rows: 4000, Do: func(ctx context.Context) error {
			_, err := m.Remove(ctx, own, "often", person)
			return err
		}},
		{Name: "delete what no version has", Least: 30, Rows: 4000, Do: func(ctx context.Context) error {
			if _, err := m.writeObjects(ctx, "agent:a", []stored{{sha256hex.Of(noise(64<<20, 78)), noise(64<<20, 78)}}); err != nil {
				return err
			}
			now = now.Add(2 * unfinishedFor)
			return m.forgetUnfinished(ctx)
		}},
		{Name: "forget", Least: 30, Rows: 4000, Do: func(ctx context.Context) error {
			freed, err := m.Forget(ctx, first.version.Digest, person)
			if freed < 64<<20 {
				t.Errorf("%d bytes", freed)
			}
			return err
		}},
		{Name: "refuse", Rows: 10, Do: func(ctx context.Context) error {
			return m.Refuse(ctx, first.draft, strings.Repeat("because ", 100_000))
		}},
		{Name: "drop calls from the audit log", Least: 6, Rows: forgottenAtOnce + 10, Do: func(ctx context.Context) error {
			l := &ledger{m: m}
			for range 10 {
				if err := l.trim(ctx); err != nil {
					return err
				}
			}
			return nil
		}},
		{Name: "calls", Rows: 4000, Do: func(ctx context.Context) error { return m.writeCalls(ctx, batch) }},
		{Name: "archive", Least: 6, Rows: forgottenAtOnce + 10, Do: func(ctx context.Context) error {
			_, err := m.ArchiveAudit(ctx, now, person, new(memory))
			return err
		}},
	})
	v, err := m.Version(t.Context(), second.version.Digest)
	if err != nil || !maps.EqualFunc(v.Files, second.version.Files, func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Errorf("version %s: %v", second.version.Digest, err)
	}
	var left int
	if err := m.db.View(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), "SELECT count(*) FROM unfinished").Scan(&left)
	}); err != nil || left != 0 {
		t.Errorf("%d unfinished objects are left, %v", left, err)
	}
}

// TestOftenReplaced decides about an extension that its author has written 20,000 times in each way: replaced, withdrawn and removed. No
// transaction reads all of them.
func TestOftenReplaced(t *testing.T) {
	m := newHome(t).open()
	first := write(t, m, draft("notes", "1", "")).Version.Digest
	second := write(t, m, draft("notes", "2", "")).Version.Digest
	if err := m.db.Update(t.Context(), func(c *sqlite.Conn) error {
		const before = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
		for _, query := range []string{
			before + "INSERT INTO version SELECT printf('%064d', i), 'notes', '', '' FROM n",
			before + "INSERT INTO content (version, author, ran, source, component) SELECT printf('%064d', i), 'agent:a', 1, 0, 0 FROM n",
			before + `INSERT INTO release (scope, name, digest, state, author, asked, decided, decider)
				SELECT 'agent:a', 'notes', printf('%064d', i), value, 'agent:a', i, i, 'policy' FROM n, json_each('["superseded", "withdrawn", "removed"]')`,
		} {
			if _, err := c.Exec(t.Context(), query); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, do := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"write", func(ctx context.Context) error { _, err := m.Write(ctx, draft("notes", "3", "")); return err }},
		{"roll back", func(ctx context.Context) error { _, err := m.Rollback(ctx, own, "notes", first, person); return err }},
		{"promote", func(ctx context.Context) error {
			_, err := m.Promote(ctx, own, everybody, "notes", "user:tom", "test")
			return err
		}},
		{"remove", func(ctx context.Context) error { _, err := m.Remove(ctx, own, "notes", person); return err }},
		{"write again", func(ctx context.Context) error { _, err := m.Write(ctx, draft("notes", "4", "")); return err }},
		{"revoke", func(ctx context.Context) error { _, err := m.Revoke(ctx, own, "notes", person); return err }},
	} {
		var most int64
		ctx := sqlite.Observe(t.Context(), func() func(sqlite.Work) { return func(w sqlite.Work) { most = max(most, w.Pages) } })
		if err := do.do(ctx); err != nil || most > 2000 {
			t.Errorf("%s: one transaction looked up %d pages, %v", do.name, most, err)
		}
	}
	for _, digest := range []string{"", second, second[:MinDigest]} {
		if r, err := m.Earlier(t.Context(), own, "notes", digest); err != nil || digest != "" && r.Digest != second {
			t.Errorf("%q: got %+v, %v", digest, r, err)
		}
	}
	if _, err := m.Earlier(t.Context(), own, "notes", strings.Repeat("0", DigestSize-5)); !errors.As(err, new(*NotFoundError)) {
		t.Errorf("a beginning of many: %v", err)
	}
}

// TestCallsInTurnAreForgotten calls many tools in turn. For each, it keeps about as many calls as for a tool that is called alone.
func TestCallsInTurnAreForgotten(t *testing.T) {
	const tools, more = 64, 200
	h := newHome(t)
	h.options.poll = time.Hour
	m := h.open()
	if err := m.db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), `INSERT INTO call (scope, extension, tool, duration) WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
			SELECT ?2, 'x', 't' || (i % ?3), 0 FROM n`, tools*(keptCalls+more), own.String(), tools)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	batch := make([]used, ledgerBatch)
	for i := range batch {
		batch[i] = used{scope: own.String(), extension: "x", tool: fmt.Sprint("t", i%tools), outcome: "ok", by: "agent:a"}
	}
	written := 0
	for range 20 {
		if err := m.writeCalls(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		written += len(batch)
	}
	var rows, fewest int
	if err := m.db.View(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), "SELECT sum(n), min(n) FROM (SELECT count(*) AS n FROM call GROUP BY tool)").Scan(&rows, &fewest)
	}); err != nil {
		t.Fatal(err)
	}
	// About 80 times, there were more than 200 calls of one of the tools.
	if most := tools*(keptCalls+more) + written - 10*more; rows > most || fewest < keptCalls {
		t.Errorf("%d calls are kept, want at most %d; of one tool %d", rows, most, fewest)
	}
}

// TestCallsOfScopeAreForgotten has one scope call ever other tools. What is kept of it is bounded, and other scopes keep what they have.
func TestCallsOfScopeAreForgotten(t *testing.T) {
	const more = 3000
	h := newHome(t)
	h.options.poll = time.Hour
	m := h.open()
	for _, query := range []string{
		"INSERT INTO call (scope, extension, tool, duration) SELECT scope, extension, tool, 0 FROM many",
		"INSERT INTO usage SELECT scope, extension, tool, 1, 0, i, '' FROM many WHERE i < ?3",
	} {
		if err := m.db.Update(t.Context(), func(c *sqlite.Conn) error {
			_, err := c.Exec(t.Context(), `WITH many AS (WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
				SELECT ?2 AS scope, 'x' || (i / 250) AS extension, 't' || i AS tool, i FROM n UNION ALL SELECT 'agent:other', 'x', 't', -1) `+query,
				keptOfScope+more, own.String(), countedOfScope+more)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	batch := make([]used, ledgerBatch)
	for i := range batch {
		batch[i] = used{scope: own.String(), extension: "new", tool: fmt.Sprint("t", i), started: time.Now(), outcome: "input", message: strings.Repeat("x", 500), by: "agent:a"}
	}
	for range 20 {
		if err := m.writeCalls(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	var calls, counted, others, newest int
	if err := m.db.View(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), `SELECT (SELECT count(*) FROM call WHERE scope = ?1), (SELECT count(*) FROM usage WHERE scope = ?1),
			(SELECT count(*) FROM call WHERE scope != ?1) + (SELECT count(*) FROM usage WHERE scope != ?1), (SELECT count(*) FROM usage WHERE extension = 'new')`,
			own.String()).Scan(&calls, &counted, &others, &newest)
	}); err != nil {
		t.Fatal(err)
	}
	const most = 8 * ledgerBatch // of these, about 32 forgot what is beyond
	if calls > keptOfScope+most || counted > countedOfScope+most || others != 2 || newest != ledgerBatch {
		t.Errorf("%d calls and %d counts are kept, %d of them new, and %d of another scope", calls, counted, newest, others)
	}
}

// TestUnfinishedVersions interrupts the writing of a large version after each of its transactions. The version is complete or absent, it can
// be written again, by another process too, and data that belongs to no version is deleted.
func TestUnfinishedVersions(t *testing.T) {
	h := newHome(t)
	h.options.poll = time.Hour
	now := time.Now()
	h.options.Now = func() time.Time { return now }
	m := h.open()
	other := h.open()
	rows := func() (objects, pieces, unfinished int) {
		if err := m.db.View(t.Context(), func(c *sqlite.Conn) error {
			return c.Row(t.Context(), "SELECT (SELECT count(*) FROM object), (SELECT count(*) FROM piece), (SELECT count(*) FROM unfinished)").Scan(&objects, &pieces, &unfinished)
		}); err != nil {
			t.Fatal(err)
		}
		return objects, pieces, unfinished
	}
	small := func(name string, seed uint64) *build {
		b := largest(t, m, name, seed)
		b.wasm = b.wasm[:3<<20]
		b.version.Component = sha256hex.Of(b.wasm)
		b.version.Files = map[string][]byte{"tool.ts": []byte(name)}
		b.version.Lock = nil
		b.version.Tools = b.version.Tools[:1]
		var err error
		if b.version.Digest, err = b.version.record().digest(); err != nil {
			t.Fatal(err)
		}
		return b
	}
	kept := small("kept", 5000)
	if err := kept.commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	objects, pieces, _ := rows()
	for end := 1; ; end++ {
		b := small("version", uint64(end)) // a different version each time
		ctx, cancel := context.WithCancel(t.Context())
		transactions := 0
		err := b.commit(sqlite.Observe(ctx, func() func(sqlite.Work) {
			transactions++
			return func(sqlite.Work) {
				if transactions == end {
					cancel()
				}
			}
		}))
		cancel()
		if transactions < end {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		_, failed := m.Version(t.Context(), b.version.Digest)
		if err == nil != (failed == nil) {
			t.Errorf("ended after %d: %v, and then %v", end, err, failed)
		}
		if err == nil {
			continue // the last transaction was that of the version
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if end%2 == 0 { // another process wrote it again meanwhile
			again := small("version", uint64(end))
			again.Manager = other
			if err := again.commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			now = now.Add(2 * unfinishedFor)
			if err := errors.Join(m.forgetUnfinished(t.Context()), b.commit(t.Context())); err != nil || !b.written.Unchanged {
				t.Errorf("ended after %d: written again: %+v, %v", end, b.written.Release, err)
			}
			if _, err := m.Version(t.Context(), b.version.Digest); err != nil {
				t.Errorf("ended after %d: %v", end, err)
			}
			objects, pieces, _ = rows()
			continue
		}
		now = now.Add(2 * unfinishedFor)
		if err := m.forgetUnfinished(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o, p, u := rows(); o != objects || p != pieces || u != 0 {
			t.Errorf("ended after %d: %d objects, %d pieces, %d unfinished; want %d, %d, 0", end, o, p, u, objects, pieces)
		}
	}
	// It is deleted during the write.
	b := small("late", 9000)
	deleted := false
	err := b.commit(sqlite.Observe(t.Context(), func() func(sqlite.Work) {
		return func(sqlite.Work) {
			if !deleted {
				deleted = true
				now = now.Add(2 * unfinishedFor)
				if err := other.forgetUnfinished(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	}))
	if err != nil || !deleted { // it was written once more
		t.Errorf("got %v", err)
	}
}
