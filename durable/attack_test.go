package durable_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// stored is a store with its process, for tests that change the file.
type stored struct {
	dir, cacheDir, keyDir string
	options               []func(*durable.Options)
	*shop
}

func newStored(t *testing.T, options ...func(*durable.Options)) *stored {
	t.Helper()
	s := &stored{dir: t.TempDir(), options: options}
	s.cacheDir, s.keyDir = cachetest.Dirs(t)
	s.reopen(t)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *stored) reopen(t *testing.T) {
	t.Helper()
	var err error
	if s.shop, err = open(t.Context(), s.dir, s.cacheDir, s.keyDir, s.options...); err != nil {
		t.Fatal(err)
	}
}

// kept is what a bucket has under a key, or nothing.
func (s *stored) kept(t *testing.T, bucket, key string) string {
	t.Helper()
	v, err := s.bucket.Bucket(bucket).Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if v == nil {
		return ""
	}
	return *v
}

// file opens the file beside those who work on it. The caller closes it.
func (s *stored) file(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.dir, durable.File)+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// change runs statements on the file, which nobody has open.
func (s *stored) change(t *testing.T, statements ...string) {
	t.Helper()
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	db := s.file(t)
	for _, q := range statements {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(q, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s.reopen(t)
}

// until waits for a run to be in a state.
func (s *stored) until(t *testing.T, name string, state durable.State) durable.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		r, err := s.runs.Result(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if r.State == state {
			return r
		}
		if r.State.Final() {
			t.Fatalf("it is %s: %s %s", r.State, r.Reason, r.Outcome)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// flip changes one byte of a column, whatever it is.
func flip(table, column, where string) string {
	return `UPDATE ` + table + ` SET ` + column + ` = CAST(substr(` + column + `, 1, length(` + column + `) / 2) || CASE hex(substr(` + column + `, length(` + column + `) / 2 + 1, 1)) WHEN '00' THEN x'01' ELSE x'00' END ||
		substr(` + column + `, length(` + column + `) / 2 + 2) AS BLOB) WHERE ` + where
}

// TestAltered alters what the file keeps of a sleeping run. The run is parked or its result is refused; nothing of it goes on.
func TestAltered(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		const first = await env.store.increment("n", 1);
		await env.clock.sleep(input.first);
		await env.store.increment("n", 1);
		await env.clock.sleep(input.second);
		return await env.store.increment("n", 1);`)
	spec.Input = []byte(`{"first":100,"second":3600000}`)
	const due = `UPDATE run SET wake = 0 WHERE state = 'asleep'`
	for _, c := range []struct {
		name       string
		statements []string
		want       string
	}{
		{"its snapshot", []string{flip("snapshot", "body", "run = (SELECT max(id) FROM run)")}, "its snapshot cannot be read"},
		{"the end of its log", []string{flip("run", "head", "id = (SELECT max(id) FROM run)")}, "the end of its log cannot be read"},
		{"what it was started with", []string{flip("run", "spec", "id = (SELECT max(id) FROM run)")}, "read run"},
		{"no snapshot", []string{`DELETE FROM snapshot WHERE run = (SELECT max(id) FROM run)`}, "its log cannot be read"},
		{"the snapshot of another run", []string{`UPDATE snapshot SET body = (SELECT body FROM snapshot WHERE run = (SELECT min(run) FROM snapshot)) WHERE run = (SELECT max(id) FROM run)`}, "its snapshot cannot be read"},
		{"a log that is not its own", []string{`INSERT INTO log SELECT id, batches + 1, head FROM run WHERE id = (SELECT max(id) FROM run)`, `UPDATE run SET batches = batches + 1 WHERE id = (SELECT max(id) FROM run)`}, "cannot be read"},
		{"a shorter log", []string{`UPDATE run SET batches = batches - 1 WHERE id = (SELECT max(id) FROM run)`}, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec.Target = c.name
			other, _, err := s.runs.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			run, _, err := s.runs.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			s.runs.Work()
			for _, name := range []string{other.Name, run.Name} {
				for r := s.until(t, name, durable.Asleep); time.Until(r.Wake) < time.Minute; r = s.until(t, name, durable.Asleep) {
					<-time.After(5 * time.Millisecond)
				}
			}
			s.change(t, append(c.statements, due)...)
			s.runs.Work(run.Name)
			if r, err := s.runs.Result(t.Context(), run.Name); err != nil { // it cannot even be listed
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v", err)
				}
				s.change(t, `DELETE FROM run`)
				return
			} else if r.State.Final() && r.State != durable.Parked {
				t.Fatalf("it is %s", r.State)
			}
			if r := s.until(t, run.Name, durable.Parked); !strings.Contains(r.Reason, c.want) {
				t.Errorf("it is parked because %s", r.Reason)
			}
			if n, err := s.bucket.Bucket(c.name).Get(t.Context(), "n"); err != nil || *n != "4" {
				t.Errorf("the counter is %v, %v", *n, err)
			}
			s.change(t, `DELETE FROM run`, `DELETE FROM snapshot`, `DELETE FROM log`)
		})
	}
}

// TestOlderSnapshot puts an older snapshot of the run back.
func TestOlderSnapshot(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		for (let i = 0; i < 3; i++) { await env.store.increment("n", 1); await env.clock.sleep(3600000); }`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	before := s.until(t, run.Name, durable.Asleep).Changed
	s.change(t, `CREATE TABLE copy AS SELECT * FROM snapshot`, `UPDATE run SET wake = 0`)
	s.runs.Work()
	for !s.until(t, run.Name, durable.Asleep).Changed.After(before) { // it wakes too early, and sleeps again
		<-time.After(5 * time.Millisecond)
	}
	s.change(t, `UPDATE snapshot SET body = (SELECT body FROM copy)`, `DROP TABLE copy`, `UPDATE run SET wake = 0`)
	s.runs.Work()
	if r := s.until(t, run.Name, durable.Parked); !strings.Contains(r.Reason, "cannot be read") {
		t.Errorf("it is parked because %s", r.Reason)
	}
}

// TestOtherKey opens the file with another key.
func TestOtherKey(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `return 1;`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	was := key
	key = bytes.Repeat([]byte{8}, durable.KeySize)
	defer func() { key = was }()
	s.change(t)
	if _, err := s.runs.Get(t.Context(), run.Name); err == nil || !strings.Contains(err.Error(), "the key is another") {
		t.Errorf("got %v", err)
	}
	list, err := s.runs.List(t.Context(), "", 10)
	if err != nil || len(list) != 1 || list[0].Tool != "" {
		t.Errorf("got %v, %v", list, err)
	}
}

// TestStopped stops a process that has runs. Another takes them over, and the first, when it comes back, changes nothing.
func TestStopped(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		let last = 0;
		for (let i = 0; i < 40; i++) { last = await env.store.increment("n", 1); await env.clock.sleep(40); }
		return last;`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	process, end := workerProcess(t, s.dir, s.cacheDir, s.keyDir)
	defer end()
	for {
		v, err := s.bucket.Bucket("").Get(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		if v != nil {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	s.runs.Work()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	taken := false
	for !taken {
		r, err := s.runs.Get(ctx, run.Name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.bucket.Bucket("").Get(ctx, "n")
		if err != nil {
			t.Fatal(err)
		}
		taken = r.State.Final() || *v >= "20" && len(*v) > 1
		<-time.After(5 * time.Millisecond)
	}
	t.Logf("another process was half through it after %v", time.Since(started))
	if err := process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r, err := s.runs.Wait(ctx, run.Name)
	if err != nil || string(r.Output) != "40" {
		t.Errorf("got %s %s %v, %v", r.State, r.Output, r.Err(), err)
	}
	if v, err := s.bucket.Bucket("").Get(ctx, "n"); err != nil || *v != "40" {
		t.Errorf("the counter is %v, %v", *v, err)
	}
}

// TestEveryByte flips each byte of what is sealed of a sleeping run, one after the other, in turn with a wake. The run is parked each time, and goes on once the byte is what it was.
func TestEveryByte(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `await env.store.increment("n", 1); await env.clock.sleep(3600000); return await env.store.increment("n", 1);`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Asleep)
	s.change(t)
	db := s.file(t)
	defer func() { _ = db.Close() }()
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	s.runs.Work()
	for _, at := range []struct{ table, column string }{{"run", "spec"}, {"run", "head"}, {"snapshot", "body"}} {
		var whole []byte
		if err := db.QueryRowContext(t.Context(), `SELECT `+at.column+` FROM `+at.table).Scan(&whole); err != nil {
			t.Fatal(err)
		}
		step := max(1, len(whole)/200) // of a snapshot, a part: it is one seal
		for i := 0; i < len(whole); i += step {
			body := bytes.Clone(whole)
			body[i] ^= 1 << (i % 8)
			exec(`UPDATE `+at.table+` SET `+at.column+` = ?`, body)
			exec(`UPDATE run SET state = 'asleep', wake = 0, reason = ''`)
			if _, err := s.runs.Retry(t.Context(), run.Name); err != nil { // which has it look at once
				t.Fatal(err)
			}
			s.untilParked(t, db)
			exec(`UPDATE `+at.table+` SET `+at.column+` = ?`, whole)
		}
	}
	if n, err := s.bucket.Bucket("").Get(t.Context(), "n"); err != nil || *n != "1" {
		t.Errorf("the counter is %v, %v", *n, err)
	}
	if ok, err := s.runs.Retry(t.Context(), run.Name); err != nil || !ok {
		t.Fatal(ok, err)
	}
	s.until(t, run.Name, durable.Asleep)
}

// TestEveryByteOfLog does the same with what a run has that a process left in the middle: its log, and a message.
func TestEveryByteOfLog(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, receive+`
		await env.store.increment("n", 1);
		while (!(await env.store.get("go"))) await new Promise(r => setTimeout(r, 5));
		return [await env.store.increment("n", 1), await receive()];`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	for {
		if v, err := s.bucket.Bucket("").Get(t.Context(), "n"); err != nil {
			t.Fatal(err)
		} else if v != nil {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	s.change(t)
	send(t, s.runs, run.Name, 7, "")
	if err := s.bucket.Bucket("").Set(t.Context(), "go", "1"); err != nil {
		t.Fatal(err)
	}
	db := s.file(t)
	defer func() { _ = db.Close() }()
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	works := false
	for _, table := range []string{"log", "message"} {
		var first, last int64
		if err := db.QueryRowContext(t.Context(), `SELECT min(n), max(n) FROM `+table).Scan(&first, &last); err != nil {
			t.Fatal(table, err)
		}
		for n := first; n <= last; n++ {
			var whole []byte
			if err := db.QueryRowContext(t.Context(), `SELECT body FROM `+table+` WHERE n = ?`, n).Scan(&whole); err != nil {
				t.Fatal(table, err)
			}
			for i := 0; i < len(whole); i += max(1, len(whole)/100) {
				body := bytes.Clone(whole)
				body[i] ^= 1 << (i % 8)
				exec(`UPDATE `+table+` SET body = ? WHERE n = ?`, body, n)
				exec(`UPDATE run SET state = 'ready', reason = '', owner = NULL`)
				if !works {
					s.runs.Work()
					works = true
				}
				if _, err := s.runs.Retry(t.Context(), run.Name); err != nil { // which has it look at once
					t.Fatal(err)
				}
				s.untilParked(t, db)
				exec(`UPDATE `+table+` SET body = ? WHERE n = ?`, whole, n)
			}
		}
	}
	if ok, err := s.runs.Retry(t.Context(), run.Name); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if r := s.until(t, run.Name, durable.Done); string(r.Output) != "[2,7]" {
		t.Errorf("got %s", r.Output)
	}
}

// TestPoison has a run whose processes end before it comes on. It is parked after so many of them, and others go on.
func TestPoison(t *testing.T) {
	const most = 3
	s := newStored(t, func(o *durable.Options) { o.Crashes = most })
	poison, _, err := s.runs.Start(t.Context(), program(t, s.shop, s.cacheDir, s.keyDir, `for (;;) await new Promise(r => setTimeout(r, 15));`))
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := s.runs.Start(t.Context(), program(t, s.shop, s.cacheDir, s.keyDir, `await env.signals.receive("go"); return 1;`))
	if err != nil {
		t.Fatal(err)
	}
	for i := range most {
		end := worker(t, s.dir, s.cacheDir, s.keyDir)
		for s.count(t, fmt.Sprint(`SELECT count(*) FROM run WHERE state = 'running' AND crashes = `, i)) == 0 {
			<-time.After(5 * time.Millisecond)
		}
		s.until(t, other.Name, durable.Asleep)
		end()
	}
	s.runs.Work()
	if r := s.until(t, poison.Name, durable.Parked); !strings.Contains(r.Reason, "3 processes ended while it ran") {
		t.Errorf("it is parked because %s", r.Reason)
	}
	if _, err := s.runs.Signal(t.Context(), other.Name, "go", durable.Message{Data: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	s.until(t, other.Name, durable.Done)
}

// untilParked waits until the only run is parked.
func (s *stored) untilParked(t *testing.T, db *sql.DB) {
	t.Helper()
	for {
		var state durable.State
		if err := db.QueryRowContext(t.Context(), `SELECT state FROM run`).Scan(&state); err != nil {
			t.Fatal(err)
		}
		switch {
		case state == durable.Parked:
			return
		case state.Final():
			t.Fatalf("it is %s", state)
		}
		<-time.After(time.Millisecond)
	}
}

// TestAsleepBytes has runs of one caller sleep with more than all of them may take on the disk. What does not fit ends, with its child's bytes counted, and what was removed counts no more.
func TestAsleepBytes(t *testing.T) {
	s := newStored(t, func(o *durable.Options) { o.Idle, o.MaxAsleepBytes = 10*time.Millisecond, 300<<10 })
	hold := program(t, s.shop, s.cacheDir, s.keyDir, `
		let x = 1;
		const held = Uint8Array.from({ length: 60_000 }, () => (x = (Math.imul(x, 1664525) + 1013904223) | 0) >>> 16);
		await env.signals.receive("go");
		return held.length;`)
	hold.Whose, hold.Most = "ada", 100
	s.runs.Work()
	var names []string
	for i := range 6 {
		name := s.start(t, hold, `{}`)
		r := s.settled(t, name)
		switch {
		case r.State == durable.Asleep:
			names = append(names, name)
		case r.State != durable.Failed || r.Outcome.Limit != "disk" || i < 3:
			t.Fatalf("run %d is %s: %s", i, r.State, r.Outcome)
		}
	}
	if len(names) < 3 || len(names) > 4 {
		t.Fatalf("%d runs sleep", len(names))
	}
	// Others have room of their own, and so does a person.
	for _, whose := range []string{"eve", ""} {
		hold.Whose = whose
		if r := s.settled(t, s.start(t, hold, `{}`)); r.State != durable.Asleep {
			t.Errorf("a run of %q is %s: %s", whose, r.State, r.Outcome)
		}
	}
	// What has ended counts no more, whether it went on or was cancelled.
	hold.Whose = "ada"
	if _, err := s.runs.Signal(t.Context(), names[0], "go", durable.Message{Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.runs.Cancel(t.Context(), names[1]); err != nil {
		t.Fatal(err)
	}
	for _, name := range names[:2] {
		if _, err := s.runs.Wait(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if r := s.settled(t, s.start(t, hold, `{}`)); r.State != durable.Asleep {
			t.Errorf("with room again, a run is %s: %s", r.State, r.Outcome)
		}
	}
	db := s.file(t)
	defer func() { _ = db.Close() }()
	var held, all int64
	if err := db.QueryRowContext(t.Context(), `SELECT (SELECT sum(bytes) FROM held), (SELECT sum(length(body)) FROM snapshot WHERE whose <> '')`).Scan(&held, &all); err != nil || held != all {
		t.Errorf("%d bytes count, and %d are there: %v", held, all, err)
	}
}

// settled waits until a run sleeps or has ended.
func (s *stored) settled(t *testing.T, name string) durable.Result {
	t.Helper()
	for {
		r, err := s.runs.Result(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if r.State == durable.Asleep || r.State.Final() {
			return r
		}
		<-time.After(time.Millisecond)
	}
}

// TestLogBytes has a run do more than its log may hold, without a wait in which it would sleep.
func TestLogBytes(t *testing.T) {
	s := newStored(t, func(o *durable.Options) { o.MaxLogBytes = 200 << 10 })
	run := s.start(t, program(t, s.shop, s.cacheDir, s.keyDir, `
		let x = 1;
		for (let i = 0; i < 100; i++) {
			await env.store.set("k", Array.from({ length: 6000 }, () => (x = (Math.imul(x, 1664525) + 1013904223) | 0) >>> 24).join());
			await env.store.get("k");
		}`), `{}`)
	s.runs.Work()
	r, err := s.runs.Wait(t.Context(), run)
	if err != nil || r.State != durable.Failed || r.Outcome.Limit != "disk" {
		t.Errorf("it is %s: %s %v", r.State, r.Outcome, err)
	}
}
