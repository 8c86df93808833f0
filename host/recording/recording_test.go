package recording

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/sqlite/sqlitetest"
)

// TestMain also serves as the other process of TestProcesses: it records until it is killed.
func TestMain(m *testing.M) {
	file := os.Getenv("STILE_TEST_CALLS")
	if file == "" {
		goleak.VerifyTestMain(m)
		return
	}
	s, err := Open(context.Background(), file, Options{})
	if err != nil {
		panic(err)
	}
	for n := range 1 << 30 {
		s.Record(context.Background(), call(n))
		if n%10 == 9 {
			s.Flush()
			fmt.Println(n + 1)
		}
	}
}

func call(n int) *host.Recording {
	return &host.Recording{
		Component: fmt.Sprintf("%064d", n%3), Tool: fmt.Sprintf("tool%d", n%2), Extension: fmt.Sprintf("extension%d", n%5), Input: fmt.Appendf(nil, `{"n":%d}`, n), Limits: host.Limits{Memory: 1 << 20}, Bindings: map[string]string{"b": "test:cap/box@1.0.0"},
		Started: time.Now().Round(time.Millisecond), Duration: 5 * time.Millisecond,
		Operations: bytes.Repeat([]byte{byte(n)}, 100), Recorded: 1, Output: []byte(`"out"`), Outcome: host.Outcome{Kind: []string{"ok", "failed"}[n%2]},
		Usage: host.Usage{CPU: time.Millisecond, Operations: n, Denials: []abi.Denial{{Binding: "b", Operation: "o"}}},
	}
}

func opened(t *testing.T, file string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), file, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func record(t *testing.T, s *Store, calls ...*host.Recording) {
	t.Helper()
	for _, r := range calls {
		s.Record(t.Context(), r)
	}
	s.Flush()
}

func list(t *testing.T, s *Store, f Filter) (ids []int64, dropped int64) {
	t.Helper()
	all, dropped, err := s.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	return ids, dropped
}

func TestStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.db")
	s := opened(t, file, Options{})
	var want []*host.Recording
	for n := range 10 {
		r := call(n)
		r.Started = time.Now().Add(time.Duration(n-10) * time.Minute).Round(time.Millisecond)
		want = append(want, r)
	}
	want[3].Input, want[3].Output, want[3].Cut = nil, nil, "input"
	want[4].Input = []byte{}
	record(t, s, want...)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = opened(t, file, Options{})
	for i, w := range want {
		got, err := s.Get(t.Context(), int64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		if !got.Started.Equal(w.Started) {
			t.Errorf("%d: started %v, not %v", i, got.Started, w.Started)
		}
		got.Started = w.Started
		if !reflect.DeepEqual(got, w) {
			t.Errorf("got %+v, want %+v", got, w)
		}
	}
	for _, c := range []struct {
		filter Filter
		want   []int64
	}{
		{Filter{}, []int64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
		{Filter{Limit: 2}, []int64{10, 9}},
		{Filter{Tool: "tool0"}, []int64{9, 7, 5, 3, 1}},
		{Filter{Failed: true}, []int64{10, 8, 6, 4, 2}},
		{Filter{Since: want[7].Started}, []int64{10, 9, 8}},
		{Filter{Since: want[7].Started, Failed: true, Tool: "tool1"}, []int64{10, 8}},
		{Filter{Tool: "none"}, nil},
	} {
		if got, _ := list(t, s, c.filter); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: got %v, want %v", c.filter, got, c.want)
		}
	}
	if _, err := s.Get(t.Context(), 99); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestRetention(t *testing.T) {
	calls := func(n int) (list []*host.Recording) {
		for i := range n {
			list = append(list, call(i))
		}
		return list
	}
	t.Run("number", func(t *testing.T) {
		s := opened(t, filepath.Join(t.TempDir(), "calls.db"), Options{MaxCalls: 3})
		record(t, s, calls(10)...)
		if got, _ := list(t, s, Filter{}); !reflect.DeepEqual(got, []int64{10, 9, 8}) {
			t.Errorf("kept %v", got)
		}
	})
	t.Run("age", func(t *testing.T) {
		s := opened(t, filepath.Join(t.TempDir(), "calls.db"), Options{MaxAge: time.Hour})
		all := calls(4)
		all[0].Started = all[0].Started.Add(-2 * time.Hour)
		all[2].Started = all[0].Started
		record(t, s, all...)
		if got, _ := list(t, s, Filter{}); !reflect.DeepEqual(got, []int64{4, 2}) {
			t.Errorf("kept %v", got)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		s := opened(t, filepath.Join(t.TempDir(), "calls.db"), Options{MaxBytes: 5000})
		for _, r := range calls(200) {
			record(t, s, r)
		}
		if got, _ := list(t, s, Filter{Limit: 1000}); len(got) < 5 || len(got) > 50 || got[0] != 200 {
			t.Errorf("kept %v", got)
		}
		// A recording that is too large alone stays until the next.
		large := call(0)
		for i := range 100_000 {
			large.Input = append(large.Input, byte(i*i>>7))
		}
		record(t, s, large)
		if got, _ := list(t, s, Filter{}); !reflect.DeepEqual(got, []int64{201}) {
			t.Errorf("kept %v", got)
		}
	})
	t.Run("components", func(t *testing.T) {
		s := opened(t, filepath.Join(t.TempDir(), "calls.db"), Options{MaxCalls: 1})
		digests := map[string]string{
			"one": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
			"two": "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3",
		}
		for _, name := range []string{"one", "two", "two"} {
			if err := s.Keep(t.Context(), []byte(name)); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Component(t.Context(), digests[name]); err != nil || string(got) != name {
				t.Errorf("%q, %v", got, err)
			}
			r := call(0)
			r.Component = digests[name]
			record(t, s, r)
		}
		if _, err := s.Component(t.Context(), digests["one"]); !errors.Is(err, ErrNotFound) {
			t.Errorf("a component without recordings: %v", err)
		}
		if _, err := s.Component(t.Context(), digests["two"]); err != nil {
			t.Error(err)
		}
		// One that is kept again is kept for another day.
		if err := errors.Join(s.Keep(t.Context(), []byte("one")), s.db.Update(t.Context(), func(c *sqlite.Conn) error {
			_, err := c.Exec(t.Context(), `UPDATE component SET kept = 0`)
			return err
		}), s.Keep(t.Context(), []byte("one"))); err != nil {
			t.Fatal(err)
		}
		record(t, s, call(0))
		if _, err := s.Component(t.Context(), digests["one"]); err != nil {
			t.Error(err)
		}
	})
}

// TestLargeComponents keeps a component of several parts, twice, and loses a part.
func TestLargeComponents(t *testing.T) {
	s := opened(t, filepath.Join(t.TempDir(), "calls.db"), Options{})
	wasm := make([]byte, 5<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(wasm)
	sum := sha256.Sum256(wasm)
	digest := hex.EncodeToString(sum[:])
	exec := func(query string) {
		t.Helper()
		if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error { _, err := c.Exec(t.Context(), query); return err }); err != nil {
			t.Fatal(err)
		}
	}
	count := func(query string) (n int64) {
		t.Helper()
		if err := s.db.View(t.Context(), func(c *sqlite.Conn) error { return c.Row(t.Context(), query).Scan(&n) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 2 {
		if err := s.Keep(t.Context(), wasm); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Component(t.Context(), digest); err != nil || !bytes.Equal(got, wasm) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		exec(`UPDATE component SET kept = 1 + unixepoch('subsec') * 1000 - 2 * 3600000`) // it is kept again, without its parts
	}
	if parts, used := count(`SELECT count(*) FROM part`), count(`SELECT bytes FROM usage`); parts != 3 || used < int64(len(wasm)) {
		t.Errorf("%d parts, %d bytes", parts, used)
	}
	exec(`DELETE FROM part WHERE n = 1`)
	if _, err := s.Component(t.Context(), digest); !errors.As(err, new(*DamagedError)) {
		t.Errorf("without a part: %v", err)
	}
	exec(`DELETE FROM component`)
	exec(`DELETE FROM gone`)
	record(t, s, call(0)) // parts without a component may be of one that is being written
	if parts := count(`SELECT count(*) FROM part`); parts != 2 {
		t.Errorf("%d parts", parts)
	}
	if err := s.Keep(t.Context(), wasm); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Component(t.Context(), digest); err != nil || !bytes.Equal(got, wasm) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	exec(`DELETE FROM component`)
	exec(`DELETE FROM gone`)
	exec(`UPDATE part SET written = 0`)
	record(t, s, call(1))
	if parts := count(`SELECT count(*) FROM part`); parts != 0 {
		t.Errorf("%d parts", parts)
	}
	// One that is given up halfway, for lack of room, leaves nothing behind. Neither does one that is deleted.
	exec(`INSERT INTO part VALUES ('other', 0, unixepoch('subsec') * 1000, x'00')`)
	s.options.MaxBytes = int64(len(wasm)) + 1000
	exec(`UPDATE part SET body = zeroblob(1001)`)
	if err := s.Keep(t.Context(), wasm); err == nil || count(`SELECT count(*) FROM part`) != 1 {
		t.Errorf("%v, and %d parts", err, count(`SELECT count(*) FROM part`))
	}
	exec(`DELETE FROM part`)
	if err := s.Keep(t.Context(), wasm); err != nil {
		t.Fatal(err)
	}
	exec(`DELETE FROM component`)
	record(t, s, call(2))
	exec(`DELETE FROM call`)
	if parts, used := count(`SELECT count(*) FROM part`), count(`SELECT bytes FROM usage`); parts != 0 || used > 1000 { // as much as the UPDATE above added
		t.Errorf("%d parts, %d bytes", parts, used)
	}
}

// TestComponentsAreBounded has more large components than fit, called and never called: nothing of what is deleted stays behind.
func TestComponentsAreBounded(t *testing.T) {
	const limit, large = 8 << 20, 3 << 20
	for name, called := range map[string]bool{"called": true, "never called": false} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, filepath.Join(t.TempDir(), "calls.db"), Options{MaxBytes: limit})
			noise := rand.NewChaCha8([32]byte{})
			var last string
			for range 10 {
				wasm := make([]byte, large)
				_, _ = noise.Read(wasm)
				if err := s.Keep(t.Context(), wasm); err != nil {
					t.Fatal(err)
				}
				sum := sha256.Sum256(wasm)
				last = hex.EncodeToString(sum[:])
				if called {
					r := call(0)
					r.Component = last
					record(t, s, r)
				}
				var all, used int64
				if err := s.db.View(t.Context(), func(c *sqlite.Conn) error {
					return c.Row(t.Context(), `SELECT (SELECT coalesce(sum(length(body)), 0) FROM part) + (SELECT coalesce(sum(length(body)), 0) FROM component)
						+ (SELECT coalesce(sum(length(body)), 0) FROM call), (SELECT bytes FROM usage)`).Scan(&all, &used)
				}); err != nil {
					t.Fatal(err)
				}
				if max(all, used) > limit+large {
					t.Fatalf("%d bytes are stored, and %d are counted, where %d may be", all, used, limit)
				}
			}
			if _, err := s.Component(t.Context(), last); err != nil {
				t.Errorf("the newest: %v", err)
			}
			if err := s.Keep(t.Context(), make([]byte, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	s := opened(t, filepath.Join(t.TempDir(), "calls.db"), Options{MaxBytes: limit})
	wasm := make([]byte, limit+1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(wasm)
	if err := s.Keep(t.Context(), wasm); err == nil {
		t.Error("a component larger than all recordings may be is kept")
	}
}

// TestDamaged alters what is stored: that recording cannot be read, and the others can.
func TestDamaged(t *testing.T) {
	s := opened(t, filepath.Join(t.TempDir(), "calls.db"), Options{})
	if err := s.Keep(t.Context(), []byte("one")); err != nil {
		t.Fatal(err)
	}
	for n := range 6 {
		record(t, s, call(n))
	}
	alter := func(query string, args ...any) {
		t.Helper()
		if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error { _, err := c.Exec(t.Context(), query, args...); return err }); err != nil {
			t.Fatal(err)
		}
	}
	alter(`UPDATE call SET body = CAST(x'00' || substr(body, 2) AS BLOB) WHERE id = 1`)
	alter(`UPDATE call SET body = substr(body, 1, 20) WHERE id = 2`)
	alter(`UPDATE call SET body = (SELECT body FROM call WHERE id = 6), digest = (SELECT digest FROM call WHERE id = 6) WHERE id = 3`)
	alter(`UPDATE call SET outcome = 'ok' WHERE id = 4`)
	alter(`UPDATE component SET body = x'28b52ffd'`)
	var damaged *DamagedError
	for id := range int64(4) {
		if _, err := s.Get(t.Context(), id+1); !errors.As(err, &damaged) {
			t.Errorf("%d: %v", id+1, err)
		}
	}
	for _, id := range []int64{5, 6} {
		if _, err := s.Get(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if got, _ := list(t, s, Filter{}); len(got) != 6 {
		t.Errorf("listed %v", got)
	}
	if _, err := s.Component(t.Context(), "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"); !errors.As(err, &damaged) {
		t.Errorf("got %v", err)
	}
}

// TestBombs has rows that say they are much larger than they are.
func TestBombs(t *testing.T) {
	s := opened(t, filepath.Join(t.TempDir(), "calls.db"), Options{})
	bomb := s.encoder.EncodeAll(make([]byte, maxBody+1), nil)
	if _, err := s.decoder.DecodeAll(bomb, nil); err == nil {
		t.Errorf("%d bytes became more than %d", len(bomb), maxBody)
	}
	large := call(0)
	large.Input = make([]byte, maxRecording)
	body, err := encode(large)
	if err != nil {
		t.Fatal(err)
	}
	body = s.encoder.EncodeAll(body, nil)
	digest := sha256.Sum256(body)
	text := strings.Repeat("x", 2000)
	if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), `INSERT INTO call (started, duration, component, tool, outcome, operations, cut, digest, body) VALUES (0, 0, ?1, ?1, ?1, 0, ?1, ?2, ?3)`, text, digest[:], body)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), 1); !errors.As(err, new(*DamagedError)) || !strings.Contains(err.Error(), "size") {
		t.Errorf("%d bytes became more than %d: %v", len(body), maxRecording, err)
	}
	got, _, err := s.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range got {
		if len(one.Component) != 1000 || len(one.Tool) != 1000 || len(one.Outcome) != 1000 || len(one.Cut) != 1000 {
			t.Errorf("listed %+v", one)
		}
	}
	// Values that take 40 times their bytes when they are decoded.
	head := []byte(`{"version":1,"denials":[` + strings.Repeat("{},", 4<<20) + `{}]}`)
	body = append(append(binary.AppendUvarint(nil, uint64(len(head))), head...), 0, 0, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = decode(body)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 1<<20 {
		t.Errorf("%d bytes took %d to decode: %v", len(body), took, err)
	}
}

// TestQueue has the disk take its time: calls wait for room, and give up with their context. What is lost is counted.
func TestQueue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.db")
	var log bytes.Buffer
	s := opened(t, file, Options{QueueBytes: 3000, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	other := opened(t, file, Options{})
	waits := make(chan struct{})
	err := other.db.Update(t.Context(), func(*sqlite.Conn) error { // another process holds the file
		s.Record(t.Context(), call(0))
		s.Record(t.Context(), call(1))
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		s.Record(cancelled, call(2))
		go func() {
			s.Record(t.Context(), call(3))
			close(waits)
		}()
		select {
		case <-waits:
			t.Error("a recording found room where there is none")
		default:
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-waits
	s.Flush()
	if got, dropped := list(t, s, Filter{}); len(got) != 3 || dropped != 1 || s.Dropped() != 1 || !strings.Contains(log.String(), "calls are not recorded") {
		t.Errorf("kept %v, dropped %d and %d; log %s", got, dropped, s.Dropped(), &log)
	}
	// One that is larger than the queue goes through it alone.
	large := call(4)
	large.Input = make([]byte, 100_000)
	record(t, s, large)
	if got, _ := list(t, s, Filter{}); len(got) != 4 {
		t.Errorf("kept %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Record(t.Context(), call(5))
	if s.Dropped() != 2 {
		t.Errorf("dropped %d", s.Dropped())
	}
}

// TestDiskFull has no room on the disk for a while.
func TestDiskFull(t *testing.T) {
	s := opened(t, filepath.Join(t.TempDir(), "calls.db"), Options{})
	record(t, s, call(0))
	limit := func(pages int) {
		t.Helper()
		if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error {
			var now int
			return c.Row(t.Context(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)).Scan(&now)
		}); err != nil {
			t.Fatal(err)
		}
	}
	limit(1)
	large := call(1)
	for i := range 100_000 {
		large.Input = append(large.Input, byte(i*i>>7))
	}
	record(t, s, large)
	if got, _ := list(t, s, Filter{}); len(got) != 1 || s.Dropped() != 1 {
		t.Errorf("kept %v, dropped %d", got, s.Dropped())
	}
	limit(1 << 20)
	record(t, s, call(2))
	if got, dropped := list(t, s, Filter{}); len(got) != 2 || dropped != 1 {
		t.Errorf("kept %v, dropped %d", got, dropped)
	}
}

// TestProcesses kills a process that records, beside another that goes on. Nothing that was flushed is lost.
func TestProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.db")
	s := opened(t, file, Options{})
	flushed := 0
	for range 3 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), "STILE_TEST_CALLS="+file)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		n := 0
		for n < 50 {
			record(t, s, call(n))
			if _, err := fmt.Fscanln(out, &n); err != nil {
				t.Fatal(err)
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // killed
		flushed += n
	}
	got, dropped := list(t, s, Filter{Limit: 10_000})
	if len(got) < flushed+15 || dropped != 0 {
		t.Errorf("%d recordings of at least %d, %d dropped", len(got), flushed+15, dropped)
	}
	for _, id := range got {
		if _, err := s.Get(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}

// FuzzDecode has anything at all for the body of a row.
func FuzzDecode(f *testing.F) {
	body, err := encode(call(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := decode(body)
		if err != nil {
			return
		}
		if _, err := encode(r); err != nil {
			t.Error(err)
		}
	})
}

// TestBeside is the second process of TestNoOperationHoldsTheLock.
func TestBeside(t *testing.T) {
	sqlitetest.Beside(t, func(file string) (func(int) error, func() error, error) {
		db, err := sqlite.Open(t.Context(), file, schema)
		if err != nil {
			return nil, nil, err
		}
		return func(n int) error {
			return db.Update(t.Context(), func(c *sqlite.Conn) error {
				_, err := c.Exec(t.Context(), `INSERT INTO dropped VALUES (?, ?)`, time.Now().UnixMilli(), n)
				return err
			})
		}, db.Close, nil
	})
}

// TestNoOperationHoldsTheLock writes many and large recordings, and deletes many, beside a second process that writes to the same file.
func TestNoOperationHoldsTheLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.db")
	s := opened(t, file, Options{MaxCalls: 1_000_000, MaxBytes: 1 << 40})
	noise := make([]byte, 32<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	many, large := make([]*host.Recording, maxBatch), make([]*host.Recording, 32)
	for i := range many {
		many[i] = call(i)
	}
	for i := range large {
		large[i] = call(i)
		large[i].Operations = noise[i<<20 : (i+1)<<20]
	}
	if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error {
		for _, statement := range []string{
			`INSERT INTO call (started, duration, component, tool, outcome, operations, cut, digest, body) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
				SELECT i, 0, 'old' || i, 't', 'ok', 0, '', x'', zeroblob(300) FROM n`,
			`INSERT INTO component SELECT component, 0, zeroblob(300), 0 FROM call`,
		} {
			if _, err := c.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var rows, bytes int64
	sqlitetest.HoldNoLock(t, s.db, file, "TestBeside", []sqlitetest.Operation{
		{Name: "old", Least: 70, Rows: 2500, Do: func(ctx context.Context) error { s.append(ctx, many[:1]); return nil }},
		{Name: "many", Rows: 2500, Do: func(ctx context.Context) error { s.append(ctx, many); return nil }},
		{Name: "large", Least: 16, Rows: 2500, Do: func(ctx context.Context) error { s.append(ctx, large); return nil }},
		{Name: "component", Least: 18, Rows: 3, Do: func(ctx context.Context) error { return s.Keep(ctx, noise) }},
		{Name: "component in vain", Least: 36, Rows: 10, Do: func(ctx context.Context) error {
			if err := s.db.Update(ctx, func(c *sqlite.Conn) error {
				_, err := c.Exec(ctx, `UPDATE component SET kept = 0 WHERE size > 0`)
				return err
			}); err != nil {
				return err
			}
			for n := range len(noise)/writtenAtOnce + 1 {
				if err := s.db.Update(ctx, func(c *sqlite.Conn) error {
					_, err := c.Exec(ctx, `UPDATE part SET written = 0 WHERE n = ?`, n)
					return err
				}); err != nil {
					return err
				}
			}
			s.append(ctx, many[:1])
			return nil
		}},
		{Name: "too many", Least: 3, Rows: 2500, Do: func(ctx context.Context) error {
			s.options.MaxCalls = 40
			s.append(ctx, many[:1])
			return nil
		}},
		{Name: "too large", Least: 8, Rows: 2500, Do: func(ctx context.Context) error {
			s.options.MaxBytes = 1000
			s.append(ctx, many[:1])
			return nil
		}},
	})
	if err := s.db.View(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), `SELECT calls, bytes FROM usage`).Scan(&rows, &bytes)
	}); err != nil || rows == 0 || rows > 40 || bytes > 1000 {
		t.Errorf("%d recordings of %d bytes, %v", rows, bytes, err)
	}
}
