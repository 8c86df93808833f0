package durable_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/durable"
)

// heard is the code of a tool that waits to be cancelled. It then counts, sleeps and counts again.
const heard = `
	const { cancelled } = env.runs;
	await env.store.increment("begun", 1);
	try {
		await new Promise((_, reject) => cancelled.addEventListener("abort", () => reject(cancelled.reason)));
	} catch (e: any) {
		for (let i = 0; i < (input.counts ?? 2); i++) {
			await env.store.increment("cleaned", 1);
			await env.clock.sleep(60);
		}
		if (input.fails) throw new Error("no");
		if (input.aborts) throw e;
		return e.name;
	}`

// started starts a run that works.
func (s *stored) started(t *testing.T, body, input string) string {
	t.Helper()
	spec := program(t, s.shop, s.cacheDir, s.keyDir, body)
	spec.Input, spec.Target = []byte(input), "runs"
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	return run.Name
}

// counted is what a tool has counted.
func (s *stored) counted(t *testing.T, key string) string {
	t.Helper()
	return cmp.Or(s.kept(t, "runs", key), "0")
}

// comesTo waits until a tool has counted so far.
func (s *stored) comesTo(t *testing.T, key, n string) {
	t.Helper()
	for s.counted(t, key) != n {
		<-time.After(time.Millisecond)
	}
}

// cancel has somebody ask for the end of a run.
func (s *stored) cancel(t *testing.T, name string, grace time.Duration) {
	t.Helper()
	if asked, err := s.runs.CancelWithin(t.Context(), name, grace); err != nil || !asked {
		t.Fatalf("got %v, %v", asked, err)
	}
}

// cancelled waits until a run has ended as cancelled, and returns what is said of that.
func (s *stored) cancelled(t *testing.T, name string) string {
	t.Helper()
	r, err := s.runs.Wait(t.Context(), name)
	if err != nil || r.State != durable.Cancelled || r.Outcome.Kind != "cancelled" || r.Output != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	return r.Outcome.Message
}

// TestCancelHeard cancels runs that listen: they clean up, asleep and awake, and are cancelled whatever they then return or throw.
func TestCancelHeard(t *testing.T) {
	s := newStored(t)
	for input, says := range map[string]string{
		`{}`:               "the run was cancelled",
		`{"aborts": true}`: "the run was cancelled",
		`{"fails": true}`:  "the run was cancelled; its clean-up ended with failed: tool failed: no",
	} {
		name := s.started(t, heard, input)
		if r := s.until(t, name, durable.Asleep); !r.Wake.IsZero() {
			t.Errorf("it wakes at %v", r.Wake)
		}
		s.cancel(t, name, durable.Grace)
		if got := s.cancelled(t, name); got != says {
			t.Errorf("%s: got %q", input, got)
		}
		if asked, err := s.runs.Cancel(t.Context(), name); asked || err != nil {
			t.Errorf("it is cancelled again: %v", err)
		}
	}
	if n := s.counted(t, "cleaned"); n != "6" {
		t.Errorf("they counted to %s", n)
	}
}

// TestCancelSignals cancels runs that pass the signal on: to a sleep, to a request without an answer, and to what waits for a message.
func TestCancelSignals(t *testing.T) {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(end)
	t.Setenv(serverEnv, server.URL)
	s := newStored(t)
	for waits, sleeps := range map[string]bool{
		`env.clock.sleep("3 days", { signal })`:                             true,
		`env.clock.sleep(new Date(Date.now() + 1e9), { signal })`:           true,
		`env.signals.receive("never", { signal })`:                          true,
		`env.signals.receive("never", { signal, timeout: "3 days" })`:       true,
		`env.web.fetch(input.url + "/plain", { method: "POST", signal })`:   false,
		`Promise.race([env.clock.sleep(1e9), env.runs.keepAwake(aborted)])`: false,
	} {
		name := s.started(t, `
			const signal = env.runs.cancelled;
			const aborted = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
			aborted.catch(() => 0);
			const before = await env.store.increment("begun", 1);
			try { await `+waits+`; } catch (e: any) {
				if (e !== signal.reason || !(e instanceof DOMException) || e.name !== "AbortError" || e.message !== "the run was cancelled") throw e;
			}
			await env.clock.sleep(60);
			await env.store.increment("cleaned", 1);
			await env.signals.receive("never", { signal }).catch(() => 0);`, fmt.Sprintf(`{"url": %q}`, server.URL))
		s.comesTo(t, "begun", "1")
		if sleeps {
			s.until(t, name, durable.Asleep)
		}
		s.cancel(t, name, durable.Grace)
		if got := s.cancelled(t, name); got != "the run was cancelled" {
			t.Errorf("%s: got %q", waits, got)
		}
		if n := s.counted(t, "cleaned"); n != "1" {
			t.Errorf("%s: it counted to %s", waits, n)
		}
		for _, key := range []string{"begun", "cleaned"} {
			if _, err := s.bucket.Bucket("runs").Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCancelUnheard cancels runs whose code does not listen, awake and asleep: they end at once.
func TestCancelUnheard(t *testing.T) {
	s := newStored(t)
	for _, body := range []string{`await env.store.increment("n", 1); for (;;);`, `await env.store.increment("n", 1); await env.clock.sleep(3600_000);`} {
		begun := s.counted(t, "n")
		name := s.started(t, body, `{}`)
		for s.counted(t, "n") == begun {
			<-time.After(time.Millisecond)
		}
		s.cancel(t, name, time.Hour)
		s.cancelled(t, name)
	}
}

// TestCancelNeverEnds cancels runs that listen and do not end. They have their time once: computing, sleeping, keeping awake and being asked again do not prolong it.
func TestCancelNeverEnds(t *testing.T) {
	s := newStored(t)
	for name, rest := range map[string]string{
		"computes": `for (;;);`,
		"sleeps":   `for (;;) await env.clock.sleep(50);`,
		"waits":    `await env.signals.receive("never");`,
		"is awake": `await env.runs.keepAwake(env.clock.sleep(3600_000));`,
		"listens":  `for (;;) { env.runs.cancelled; await env.clock.sleep(50); }`,
	} {
		run := s.started(t, `
			await env.store.increment("begun", 1);
			if (!env.runs.cancelled.aborted) await new Promise((resolve) => env.runs.cancelled.addEventListener("abort", resolve));
			`+rest, `{}`)
		s.until(t, run, durable.Asleep)
		begun := time.Now()
		s.cancel(t, run, 300*time.Millisecond)
		<-time.After(100 * time.Millisecond)
		s.cancel(t, run, time.Hour)
		if says := s.cancelled(t, run); says != "the run was cancelled, and did not end by itself in the time that it had for that" {
			t.Errorf("%s: got %q", name, says)
		}
		if took := time.Since(begun); took < 250*time.Millisecond || took > 20*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
	}
}

// TestCancelNow ends a run at once, although it listens: asleep, and while it cleans up.
func TestCancelNow(t *testing.T) {
	s := newStored(t)
	asleep := s.started(t, heard, `{}`)
	s.until(t, asleep, durable.Asleep)
	s.cancel(t, asleep, 0)
	if r, err := s.runs.Get(t.Context(), asleep); err != nil || r.State != durable.Cancelled {
		t.Errorf("got %+v, %v", r, err)
	}
	if n := s.counted(t, "cleaned"); n != "0" {
		t.Errorf("it counted to %s", n)
	}
	cleans := s.started(t, heard, `{"counts": 1e9}`)
	s.until(t, cleans, durable.Asleep)
	s.cancel(t, cleans, time.Hour)
	s.comesTo(t, "cleaned", "3")
	if r, err := s.runs.Get(t.Context(), cleans); err != nil || !r.Cancelled || r.Ends.Before(time.Now()) || r.State.Final() {
		t.Errorf("got %+v, %v", r, err)
	}
	s.cancel(t, cleans, 0)
	s.cancelled(t, cleans)
}

// TestCancelFromElsewhere has another process cancel runs, which sleep and which are awake.
func TestCancelFromElsewhere(t *testing.T) {
	s := newStored(t)
	other, err := open(t.Context(), s.dir, s.cacheDir, s.keyDir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, input := range []string{`{}`, `{"awake": true}`} {
		name := s.started(t, `if (input.awake) void env.runs.keepAwake(env.clock.sleep(3600_000));`+heard, input)
		want := durable.Asleep
		if strings.Contains(input, "awake") {
			want = durable.Running
			s.comesTo(t, "begun", "2")
		}
		s.until(t, name, want)
		if asked, err := other.runs.Cancel(t.Context(), name); err != nil || !asked {
			t.Fatalf("got %v, %v", asked, err)
		}
		s.cancelled(t, name)
	}
	if n := s.counted(t, "cleaned"); n != "4" {
		t.Errorf("they counted to %s", n)
	}
}

// TestCancelAtAnyTime cancels runs that end by themselves. Where that is accepted, they were cancelled.
func TestCancelAtAnyTime(t *testing.T) {
	s := newStored(t)
	for _, listens := range []string{``, `env.runs.cancelled;`} {
		for range 30 {
			name := s.started(t, listens+`await env.store.increment("n", 1); await env.clock.sleep(10); return 1;`, `{}`)
			<-time.After(time.Duration(rand.IntN(30)) * time.Millisecond)
			asked, err := s.runs.Cancel(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.runs.Wait(t.Context(), name)
			if err != nil || (r.State == durable.Cancelled) != asked {
				t.Fatalf("it was asked for: %v; got %s, %v", asked, r.State, err)
			}
		}
	}
}

// TestCancelKilled kills the process of runs that clean up. Each cleans up once, to its end.
func TestCancelKilled(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, heard)
	spec.Input = []byte(`{"counts": 20}`)
	var runs []string
	for i := range 6 {
		spec.Target = fmt.Sprint("runs", i)
		run, _, err := s.runs.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run.Name)
	}
	kill := worker(t, s.dir, s.cacheDir, s.keyDir)
	for i, name := range runs[:4] {
		for {
			if n, err := s.bucket.Bucket(fmt.Sprint("runs", i)).Get(t.Context(), "begun"); err == nil && n != nil {
				break
			}
			<-time.After(time.Millisecond)
		}
		if i < 2 { // the others are cancelled while nobody has them, or before they begin
			s.cancel(t, name, durable.Grace)
		}
	}
	kill()
	for _, name := range runs[2:4] {
		s.cancel(t, name, durable.Grace)
	}
	kills := 0
	for ended := 0; ended < 4; kills++ {
		kill := worker(t, s.dir, s.cacheDir, s.keyDir)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200+20*kills))*time.Millisecond)
		for _, name := range runs[:4] {
			_, _ = s.runs.Wait(ctx, name)
		}
		cancel()
		kill()
		ended = 0
		for _, name := range runs[:4] {
			r, err := s.runs.Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if r.State.Final() {
				ended++
			}
		}
	}
	t.Logf("killed %d times", kills)
	for i, name := range runs[:4] {
		if says := s.cancelled(t, name); says != "the run was cancelled" {
			t.Errorf("got %q", says)
		}
		if n, err := s.bucket.Bucket(fmt.Sprint("runs", i)).Get(t.Context(), "cleaned"); err != nil || n == nil || *n != "20" {
			t.Errorf("run %d counted to %v, %v", i, n, err)
		}
	}
}

// TestCancelCrowded cancels a run whose mailboxes are full.
func TestCancelCrowded(t *testing.T) {
	s := newStored(t)
	name := s.started(t, heard, `{}`)
	s.until(t, name, durable.Asleep)
	for i := range durable.MaxMailboxes {
		for range 2 {
			if _, err := s.runs.Signal(t.Context(), name, fmt.Sprint("m", i), durable.Message{Data: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.cancel(t, name, durable.Grace)
	if messages, err := s.runs.Messages(t.Context(), name); err != nil || len(messages) != 0 && len(messages) != 2*durable.MaxMailboxes {
		t.Errorf("got %d messages, %v", len(messages), err)
	}
	s.cancelled(t, name)
	if n := s.counted(t, "cleaned"); n != "2" {
		t.Errorf("it counted to %s", n)
	}
}

// TestCancelBetweenAttempts cancels a run that has listened and failed, while it waits for its next attempt. That one would have to listen first.
func TestCancelBetweenAttempts(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `env.runs.cancelled; await env.store.increment("n", 1); throw new Error("no");`)
	spec.Retry, spec.Target = durable.Retry{Attempts: 2, Delay: time.Hour}, "runs"
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Asleep)
	s.cancel(t, run.Name, time.Hour)
	if r, err := s.runs.Get(t.Context(), run.Name); err != nil || r.State != durable.Cancelled {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestKeepAwake has a run stay awake for as long as a promise is pending, also once its process was killed. Whatever drains waits for it.
func TestKeepAwake(t *testing.T) {
	s := newStored(t)
	name := s.started(t, `
		const said = await env.runs.keepAwake((async () => {
			await env.store.increment("begun", 1);
			await env.signals.receive("go");
			return "done";
		})());
		await env.store.increment(said, 1);
		await env.clock.sleep(3600_000);`, `{}`)
	s.comesTo(t, "begun", "1")
	awake := func() {
		t.Helper()
		for range 10 { // it would sleep after 20 ms
			if r, err := s.runs.Get(t.Context(), name); err != nil || r.State != durable.Running {
				t.Fatalf("got %+v, %v", r, err)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	awake()
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s.runs.Drain(soon); soon.Err() == nil {
		t.Error("it does not wait")
	}
	if err := s.close(); err != nil { // it goes on from its log
		t.Fatal(err)
	}
	s.reopen(t)
	s.runs.Work()
	s.until(t, name, durable.Running)
	awake()
	if _, err := s.runs.Signal(t.Context(), name, "go", durable.Message{Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	s.until(t, name, durable.Asleep)
	if n := s.counted(t, "done"); n != "1" {
		t.Errorf("it counted to %s", n)
	}
}

// TestStash keeps values for later attempts: those of the policy, and those that a person asks for.
func TestStash(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		const { seen = [] } = (await env.runs.recover()) ?? {};
		const n = await env.store.increment("n", 1);
		await env.runs.stash({ seen: [...seen, n], by: "ada" });
		if (n < 4) throw new Error("attempt " + n);
		return (await env.runs.recover()).seen;`)
	spec.Retry, spec.Target = durable.Retry{Attempts: 3, Delay: time.Millisecond}, "runs"
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Failed)
	if v, err := s.runs.Stashed(t.Context(), run.Name); err != nil || string(v) != `{"seen":[1,2,3],"by":"ada"}` {
		t.Errorf("got %s, %v", v, err)
	}
	for _, f := range []string{durable.File, durable.File + "-wal"} {
		if text, err := os.ReadFile(filepath.Join(s.dir, f)); err != nil || strings.Contains(string(text), "ada") {
			t.Errorf("%s shows it, or %v", f, err)
		}
	}
	if ok, err := s.runs.Retry(t.Context(), run.Name); err != nil || !ok {
		t.Fatalf("got %v, %v", ok, err)
	}
	if r := s.until(t, run.Name, durable.Done); string(r.Output) != `[1,2,3,4]` {
		t.Errorf("got %s", r.Output)
	}
	if v, err := s.runs.Stashed(t.Context(), run.Name); err != nil || v != nil {
		t.Errorf("it still keeps %s, %v", v, err)
	}
}

// TestStashRefused refuses what is no JSON, or too large.
func TestStashRefused(t *testing.T) {
	s := newStored(t)
	name := s.started(t, `
		const said = [];
		for (const value of [undefined, () => 1, "a".repeat(65_535)]) {
			try { await env.runs.stash(value); } catch (e: any) { said.push(e.code ?? e.name, e.message); }
		}
		await env.runs.stash("a".repeat(65_534));
		return [...said, (await env.runs.recover()).length];`, `{}`)
	r, err := s.runs.Wait(t.Context(), name)
	const want = `["TypeError","stash: undefined is not JSON; stash an object, a list, text, a number, true, false or null",` +
		`"TypeError","stash: function is not JSON; stash an object, a list, text, a number, true, false or null",` +
		`"too-large","too large: 65537 bytes; a stash has at most 64 KiB of JSON",65534]`
	if err != nil || string(r.Output) != want {
		t.Errorf("got %s %v, %v", r.Output, r.Outcome, err)
	}
}

// TestStashMany bounds what many stashes take: the file has the last one.
func TestStashMany(t *testing.T) {
	s := newStored(t)
	name := s.started(t, `
		const much = "a".repeat(60_000);
		for (let i = 0; i < 2000; i++) await env.runs.stash(i + much);
		return (await env.runs.recover()).length;`, `{}`)
	if r, err := s.runs.Wait(t.Context(), name); err != nil || string(r.Output) != "60004" {
		t.Fatalf("got %s %v, %v", r.Output, r.Outcome, err)
	}
	var size int64
	for _, f := range []string{durable.File, durable.File + "-wal"} {
		info, err := os.Stat(filepath.Join(s.dir, f))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if t.Logf("%d KiB", size>>10); size > 64<<20 {
		t.Errorf("the file has %d bytes", size)
	}
}

// TestStashLost has a process stash for a run that it has lost. Nothing comes of it.
func TestStashLost(t *testing.T) {
	s := newStored(t)
	name := s.started(t, `
		await env.runs.stash("first");
		await env.store.increment("begun", 1);
		await env.runs.keepAwake(env.signals.receive("go"));
		await env.runs.stash("second");`, `{}`)
	s.comesTo(t, "begun", "1")
	db := s.file(t)
	defer func() { _ = db.Close() }()
	for _, q := range []string{`UPDATE run SET fence = fence + 1, owner = 'another'`} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.runs.Signal(t.Context(), name, "go", durable.Message{Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	s.runs.Drain(t.Context())
	if v, err := s.runs.Stashed(t.Context(), name); err != nil || string(v) != `"first"` {
		t.Errorf("got %s, %v", v, err)
	}
}

// TestStashAltered parks a run whose stash was altered, or is that of another operation or run.
func TestStashAltered(t *testing.T) {
	for _, q := range []string{flip("stash", "body", "TRUE"), `UPDATE stash SET operation = operation - 1`, `UPDATE stash SET body = (SELECT body FROM stash WHERE run = 1) WHERE run = 2`} {
		s := newStored(t)
		var name string
		for range 2 {
			name = s.started(t, `
				await env.runs.stash(1);
				await env.signals.receive("go");
				return await env.runs.recover();`, `{}`)
			s.until(t, name, durable.Asleep)
		}
		s.change(t, q)
		if _, err := s.runs.Stashed(t.Context(), name); err == nil {
			t.Errorf("%s: it is read", q)
		}
		if _, err := s.runs.Signal(t.Context(), name, "go", durable.Message{Data: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		s.runs.Work()
		if r := s.until(t, name, durable.Parked); !strings.Contains(r.Reason, "what run "+name+" keeps") {
			t.Errorf("it is parked because %s", r.Reason)
		}
	}
}

// TestStashKilled kills the process of a run that stashes. It always recovers what it stashed last.
func TestStashKilled(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		for (let i = 0; i < 150; i++) {
			await env.runs.stash({ i });
			const got = (await env.runs.recover()).i;
			if (got !== i) return [i, got];
			await env.store.increment("n", 1);
		}
		return "same";`)
	spec.Target = "runs"
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	for kills := 0; ; kills++ {
		kill := worker(t, s.dir, s.cacheDir, s.keyDir)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(100+10*kills))*time.Millisecond)
		r, _ := s.runs.Wait(ctx, run.Name)
		cancel()
		kill()
		if r.State.Final() {
			t.Logf("killed %d times", kills)
			break
		}
	}
	r, err := s.runs.Result(t.Context(), run.Name)
	if err != nil || string(r.Output) != `"same"` || s.counted(t, "n") != "150" {
		t.Errorf("got %s %v, %v; it counted to %s", r.Output, r.Outcome, err, s.counted(t, "n"))
	}
}

// TestStashOfFunction has runs of Go code keep values for later attempts.
func TestStashOfFunction(t *testing.T) {
	type page struct{ N int }
	runs := function(t, func(ctx context.Context, _ string) (seen []int, err error) {
		last, kept, err := durable.Recover[page](ctx)
		if err != nil || kept != (last.N > 0) {
			return nil, fmt.Errorf("got %v, %v, %w", last, kept, err)
		}
		for n := last.N + 1; n <= 3; n++ {
			if err := durable.Stash(ctx, page{n}); err != nil {
				return nil, err
			}
			if err := durable.Sleep(ctx, 30*time.Millisecond); err != nil { // it is called again
				return nil, err
			}
			if n != last.N+2 {
				continue
			}
			return nil, errors.New("again")
		}
		if err := durable.Stash(ctx, strings.Repeat("a", abi.MaxStash)); err == nil || errors.As(err, new(*durable.StepError)) {
			return nil, fmt.Errorf("too much is stashed: %w", err)
		}
		now, _, err := durable.Recover[page](ctx)
		return []int{last.N, now.N}, err
	})
	r := result(t, runs, start(t, runs, durable.Spec{Input: []byte(`""`), Retry: durable.Retry{Attempts: 2, Delay: time.Millisecond}}))
	if string(r.Output) != "[2,3]" || len(r.Attempts) != 1 {
		t.Errorf("got %s %v after %d attempts", r.Output, r.Outcome, len(r.Attempts))
	}
	if err := durable.Stash(t.Context(), 1); !errors.Is(err, durable.ErrNotDurable) {
		t.Errorf("got %v", err)
	}
	if _, _, err := durable.Recover[int](t.Context()); !errors.Is(err, durable.ErrNotDurable) {
		t.Errorf("got %v", err)
	}
}
