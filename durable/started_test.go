package durable_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/runs"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/durable"
)

// starter has the program of a store start itself: a [runs.Starter].
type starter struct{ *family }

const mine = "the program"

// Start implements [runs.Starter].
func (f starter) Start(ctx context.Context, _ string, input []byte, key string) (string, error) {
	return f.s.runs.StartFor(ctx, mine, key, input, func() (durable.Spec, error) { return f.spec(input) })
}

// Await implements [runs.Starter].
func (f starter) Await(ctx context.Context, id string) (bool, error) {
	return f.s.runs.AwaitFor(ctx, mine, id)
}

// Wait implements [runs.Starter].
func (f starter) Wait(ctx context.Context, id string) error { return f.s.runs.WaitFor(ctx, mine, id) }

// Take implements [runs.Starter].
func (f starter) Take(ctx context.Context, id string) (tools.Ended, bool, error) {
	r, ok, err := f.s.runs.ResultFor(ctx, mine, id)
	if err != nil || !ok {
		return tools.Ended{}, false, err
	}
	return tools.Ended{Output: r.Output, Failure: r.Failure("t")}, true, nil
}

// Status implements [runs.Starter].
func (f starter) Status(ctx context.Context, id string) (runs.Status, error) {
	r, err := f.s.runs.StatusFor(ctx, mine, id)
	return runs.Status{State: map[durable.State]runs.State{durable.Asleep: runs.Asleep, durable.Parked: runs.Parked}[r.State], Since: uint64(r.Changed.UnixMilli()), Mailboxes: r.Mailboxes}, err
}

// Signal implements [runs.Starter]. Of some operations, the process forgets the answer, and so they are made again when the run has ended.
func (f starter) Signal(ctx context.Context, id, mailbox string, data []byte, key string) (bool, error) {
	m := durable.Message{Data: data, Key: key, From: "a test"}
	delivered, err := f.s.runs.SignalFor(ctx, mine, id, mailbox, m)
	if err != nil || mailbox != "last" {
		return delivered, err
	}
	if err := f.s.runs.WaitFor(ctx, mine, id); err != nil {
		return false, err
	}
	return f.s.runs.SignalFor(ctx, mine, id, mailbox, m)
}

// Cancel implements [runs.Starter].
func (f starter) Cancel(ctx context.Context, id string) error {
	return f.s.runs.CancelFor(ctx, mine, id)
}

// TestStartedKilled kills the process that works on runs at random times, while they start others and send these signals. Each run is started once, gets each signal once, and the run that started it gets
// its result.
func TestStartedKilled(t *testing.T) {
	s, spec := newFamily(t)
	const kills, children = 25, 3
	open := map[string]string{}
	killed, starters := 0, 0
	for ; killed < kills || len(open) > 0; killed++ {
		for len(open) < 5 && killed < kills {
			starters++
			name := fmt.Sprint("s", starters)
			open[s.start(t, spec, fmt.Sprintf(`{"what": "starter", "name": %q, "children": %d}`, name, children))] = name
		}
		kill := worker(t, s.dir, s.cacheDir, s.keyDir)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(300+20*killed))*time.Millisecond)
		for run := range open {
			_, _ = s.runs.Wait(ctx, run)
		}
		cancel()
		kill()
		for run, name := range open {
			r, err := s.runs.Result(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			if !r.State.Final() {
				continue
			}
			delete(open, run)
			const three = `["1 from a test","2 from a test","3 from a test"],`
			if want := `[` + strings.Repeat(three, children) + `"unavailable: unavailable: t: its run was cancelled"]`; string(r.Output) != want {
				t.Errorf("%s is %s: %s %v %s", name, r.State, r.Reason, r.Outcome, r.Output)
			}
			for i := range children {
				if n := s.counter(t, fmt.Sprint(name, "/", i)); n != "1" {
					t.Errorf("%s/%d began %s times", name, i, n)
				}
			}
		}
		if killed > 300 {
			t.Fatalf("%d have not ended", len(open))
		}
	}
	if n := s.count(t, `SELECT count(*) FROM run`); n != int64(starters*(children+2)) {
		t.Errorf("there are %d runs of %d starters", n, starters)
	}
	if n := s.count(t, `SELECT (SELECT count(*) FROM awaited) + (SELECT count(*) FROM reached) + (SELECT count(*) FROM message)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	t.Logf("killed %d times, %d starters", killed, starters)
}

// does has a run do something to a run that its program started.
func (s *stored) does(t *testing.T, spec durable.Spec, run, what, args string) string {
	t.Helper()
	name := s.start(t, spec, fmt.Sprintf(`{"what": "await", "run": %q, "does": %q, "args": [%s]}`, run, what, args))
	r, err := s.runs.Wait(t.Context(), name)
	if err != nil || r.State != durable.Done {
		t.Fatal(r.State, r.Reason, r.Err(), err)
	}
	return string(r.Output)
}

// starts has a run start another one, which it returns.
func (s *stored) starts(t *testing.T, spec durable.Spec, order, options string) string {
	t.Helper()
	r, err := s.runs.Wait(t.Context(), s.start(t, spec, `{"what": "start", "order": `+order+`, "options": `+options+`}`))
	if err != nil || r.State != durable.Done {
		t.Fatal(r.State, r.Reason, r.Err(), err)
	}
	return strings.Trim(string(r.Output), `"`)
}

// TestStartedReached reaches a run that was started: with signals, one of which is sent again when the run has ended, and with what no run takes.
func TestStartedReached(t *testing.T) {
	s, spec := newFamily(t)
	s.runs.Work()
	run := s.starts(t, spec, `{"what": "three", "name": "a"}`, `{}`)
	s.until(t, run, durable.Asleep)
	if got := s.does(t, spec, run, "status", ""); !strings.Contains(got, `"state":"asleep"`) || !strings.Contains(got, `"mailboxes":["go"]`) {
		t.Errorf("its status is %s", got)
	}
	for _, c := range []struct{ args, want string }{
		{`"go", 1, {"key": "a"}`, "true"},
		{`"go", 1, {"key": "a"}`, "false"},
		{`"go", 1, {"key": ""}`, `"invalid: `},
		{`"no mailbox", 1`, `"invalid: `},
		{`"go", "` + strings.Repeat("x", 64<<10) + `"`, `"too-large: `},
	} {
		if got := s.does(t, spec, run, "signal", c.args); !strings.HasPrefix(got, c.want) {
			t.Errorf("signal(%.40s) returns %s, want %s", c.args, got, c.want)
		}
	}
	for range durable.MaxMessages {
		if _, err := s.runs.Signal(t.Context(), run, "full", durable.Message{Data: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.does(t, spec, run, "signal", `"full"`); !strings.HasPrefix(got, `"exhausted: `) {
		t.Errorf("a full mailbox: %s", got)
	}
	for _, id := range []string{"aaaaaaaaaaaaaaaa", s.start(t, spec, `{"what": "sleep"}`), strings.Repeat("a", 1<<10), ""} { // one that nobody started, and one that somebody else did
		for _, does := range []string{"status", "cancel", "result"} {
			if got := s.does(t, spec, id, does, ""); !strings.HasPrefix(got, `"not-found: `) {
				t.Errorf("%s of %.20q: %s", does, id, got)
			}
		}
		if got := s.does(t, spec, id, "signal", `"go"`); !strings.HasPrefix(got, `"not-found: `) {
			t.Errorf("signal to %.20q: %s", id, got)
		}
	}
	// The process has forgotten the answer of this one, and the run has ended meanwhile.
	last := s.starts(t, spec, `{"what": "one"}`, `{}`)
	if got := s.does(t, spec, last, "signal", `"last", 7`); got != "true" {
		t.Errorf("a signal that is sent again: %s", got)
	}
	if got := s.does(t, spec, last, "result", ""); got != "7" {
		t.Errorf("its result is %s", got)
	}
	if got := s.does(t, spec, last, "signal", `"go", 8`); !strings.HasPrefix(got, `"unavailable: `) || !strings.Contains(got, "has ended") {
		t.Errorf("a signal for a run that has ended: %s", got)
	}
	if got := s.does(t, spec, run, "cancel", ""); got != "null" {
		t.Errorf("cancel returns %s", got)
	}
	if r, err := s.runs.Wait(t.Context(), run); err != nil || r.State != durable.Cancelled {
		t.Errorf("%s %v", r.State, err)
	}
	if got := s.does(t, spec, run, "cancel", ""); got != "null" {
		t.Errorf("cancel of a run that has ended returns %s", got)
	}
}

// TestStartedParked parks a run for which another one waits. That one goes on once the run ends that somebody retries, or is removed.
func TestStartedParked(t *testing.T) {
	var parks bool
	var mu sync.Mutex
	s, spec := newFamily(t, func(o *durable.Options) {
		request := o.Request
		o.Request = func(ctx context.Context, run durable.Info) (durable.Authority, error) {
			mu.Lock()
			defer mu.Unlock()
			if parks && strings.HasPrefix(string(run.Input), `{"what":"echo","name":"parked"`) {
				return durable.Authority{}, errors.New("a secret path")
			}
			return request(ctx, run)
		}
	})
	parks = true
	s.runs.Work()
	for _, c := range []struct {
		name string
		then func(run string) (bool, error)
		want string
	}{
		{"retried", func(run string) (bool, error) {
			mu.Lock()
			parks = false
			mu.Unlock()
			return s.runs.Retry(t.Context(), run)
		}, `"parked"`},
		{"removed", func(run string) (bool, error) { return s.runs.Remove(t.Context(), run) }, `"not-found: not found: this extension has started no run`},
		{"cancelled", func(run string) (bool, error) { return s.runs.Cancel(t.Context(), run) }, `"unavailable: unavailable: t: its run was cancelled"`},
	} {
		mu.Lock()
		parks = true
		mu.Unlock()
		run := s.starts(t, spec, `{"what": "echo", "name": "parked"}`, `{}`)
		if r, err := s.runs.Wait(t.Context(), run); err != nil || r.State != durable.Parked {
			t.Fatal(r.State, err)
		}
		waits := s.start(t, spec, fmt.Sprintf(`{"what": "await", "durably": true, "run": %q}`, run))
		above := s.start(t, spec, fmt.Sprintf(`{"what": "calls", "order": {"what": "await", "durably": true, "run": %q}}`, run))
		for _, name := range []string{waits, s.childrenIn(t, above, 1, durable.Asleep)[0]} {
			r := s.until(t, name, durable.Asleep)
			if r.WaitsFor() != "the end of "+run || r.Blocked == nil || r.Blocked.Run != run {
				t.Errorf("it waits for %q, and is blocked by %v", r.WaitsFor(), r.Blocked)
			}
		}
		if r, err := s.runs.Get(t.Context(), above); err != nil || r.Blocked == nil || r.Blocked.Run != run {
			t.Errorf("its caller is blocked by %v, %v", r.Blocked, err)
		}
		if got := s.does(t, spec, run, "status", ""); !strings.Contains(got, `"state":"parked"`) || strings.Contains(got, "secret") {
			t.Errorf("its status is %s", got)
		}
		if done, err := c.then(run); err != nil || !done {
			t.Fatal(done, err)
		}
		if r, err := s.runs.Wait(t.Context(), waits); err != nil || !strings.HasPrefix(string(r.Output), c.want) {
			t.Errorf("%s: %s %v %s", c.name, r.State, err, r.Output)
		}
		if r, err := s.runs.Wait(t.Context(), above); err != nil || !strings.HasPrefix(string(r.Output), c.want) {
			t.Errorf("%s: the caller of one that waits: %s %v %s", c.name, r.State, err, r.Output)
		}
	}
}

// counting counts how often runs wait for runs.
type counting struct {
	runs.Starter
	awaits atomic.Int64
}

// Await implements [runs.Starter].
func (c *counting) Await(ctx context.Context, id string) (bool, error) {
	c.awaits.Add(1)
	return c.Starter.Await(ctx, id)
}

// TestStartedRetried has a run begin again after its end was announced, and before the run that waits for it has seen that. This one sleeps again, until the next end.
func TestStartedRetried(t *testing.T) {
	s, spec := newFamily(t)
	s.runs.Work()
	run := s.starts(t, spec, `{"what": "three", "name": "a"}`, `{}`)
	s.until(t, run, durable.Asleep)
	waits := s.start(t, spec, fmt.Sprintf(`{"what": "await", "durably": true, "run": %q}`, run))
	s.until(t, waits, durable.Asleep)
	s.change(t) // nobody works
	for _, do := range []func(context.Context, string) (bool, error){s.runs.Cancel, s.runs.Retry} {
		if done, err := do(t.Context(), run); err != nil || !done {
			t.Fatal(done, err)
		}
	}
	c := &counting{Starter: s.starter}
	s.starter = c
	s.runs.Work()
	for state := durable.Ready; state != durable.Asleep; {
		r, err := s.runs.Get(t.Context(), waits)
		if state = r.State; err != nil || state.Final() || c.awaits.Load() > 100 {
			t.Fatalf("it is %s, and has begun to wait %d times: %v", state, c.awaits.Load(), err)
		}
	}
	if _, err := s.runs.Cancel(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if r, err := s.runs.Wait(t.Context(), waits); err != nil || !strings.Contains(string(r.Output), "its run was cancelled") {
		t.Errorf("%s %v %s", r.State, err, r.Output)
	}
}

// forgetful makes each start again, after the run has ended and was removed.
type forgetful struct {
	starter
	again func(first, second string)
}

// Start implements [runs.Starter].
func (f forgetful) Start(ctx context.Context, tool string, input []byte, key string) (string, error) {
	first, err := f.starter.Start(ctx, tool, input, key)
	if err != nil {
		return "", err
	}
	if _, err := f.s.runs.Wait(ctx, first); err != nil {
		return "", err
	}
	if removed, err := f.s.runs.Remove(ctx, first); err != nil || !removed {
		return "", fmt.Errorf("removed %t: %w", removed, err)
	}
	second, err := f.starter.Start(ctx, tool, input, key)
	f.again(first, second)
	return second, err
}

// TestStartedOnce makes operations again that have started a run, which has ended and is not kept any more. They start no other one.
func TestStartedOnce(t *testing.T) {
	s, spec := newFamily(t)
	made := 0
	s.starter = forgetful{s.starter.(starter), func(first, second string) {
		made++
		if first != second {
			t.Errorf("the operation started %s, and then %s", first, second)
		}
	}}
	s.runs.Work()
	for _, options := range []string{`{}`, `{"key": "k"}`, `{}`, `{"key": "k"}`} { // the key is free again
		run := s.starts(t, spec, `{"what": "count", "name": "once"}`, options)
		if _, err := s.runs.Get(t.Context(), run); !errors.As(err, new(*durable.UnknownError)) {
			t.Errorf("it is there: %v", err)
		}
	}
	if n := s.counter(t, "once"); made != 4 || n != "4" {
		t.Errorf("%d operations started %s runs", made, n)
	}
}

// TestStartedAgain has a run begin again that waited for runs. The next attempt does not wait for these.
func TestStartedAgain(t *testing.T) {
	s, spec := newFamily(t)
	s.runs.Work()
	spec.Retry = durable.Retry{Attempts: 2}
	run := s.start(t, spec, `{"what": "leaves", "name": "again"}`)
	s.until(t, run, durable.Asleep)
	// The end of another run for which it waited comes, and it fails before it takes that.
	s.change(t, `INSERT INTO message (run, mailbox, bytes, body) SELECT waiter, 'run:aaaaaaaaaaaaaaaa', 4, x'00' FROM awaited`)
	left := func() int64 {
		return s.count(t, `SELECT (SELECT count(*) FROM awaited) + (SELECT count(*) FROM message WHERE mailbox GLOB 'run:*')`)
	}
	if n := left(); n != 2 {
		t.Fatalf("%d rows are there", n)
	}
	signal := func() {
		if _, err := s.runs.Signal(t.Context(), run, "go", durable.Message{Data: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	signal()
	s.runs.Work()
	for s.counter(t, "again") != "2" {
		<-time.After(time.Millisecond)
	}
	if n := left(); n != 0 {
		t.Errorf("%d rows are left of the first attempt", n)
	}
	signal()
	if r, err := s.runs.Wait(t.Context(), run); err != nil || string(r.Output) != `"left"` {
		t.Errorf("%s %v %s %s", r.State, err, r.Output, r.Outcome)
	}
}

// TestStartedCrowd has more runs wait for a run than may.
func TestStartedCrowd(t *testing.T) {
	s, spec := newFamily(t)
	s.runs.Work()
	run := s.starts(t, spec, `{"what": "sleep"}`, `{}`)
	s.until(t, run, durable.Asleep)
	crowd := fmt.Sprintf(`WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < 1000) INSERT INTO awaited SELECT id, 1000000 + n FROM run, n WHERE name = '%s'`, run)
	s.change(t, crowd)
	s.runs.Work()
	waits := fmt.Sprintf(`{"what": "await", "durably": true, "run": %q}`, run)
	if r, err := s.runs.Wait(t.Context(), s.start(t, spec, waits)); err != nil || !strings.Contains(string(r.Output), "exhausted: limit reached: 1000 runs that wait for one run") {
		t.Errorf("%s %v %s", r.State, err, r.Output)
	}
	s.change(t, `DELETE FROM awaited WHERE waiter = 1000001`)
	s.runs.Work()
	s.until(t, s.start(t, spec, waits), durable.Asleep)
}

// TestStartedOnly has a process work on one run only, and so on what that waits for: a run that it has started, and what that one has called and started.
func TestStartedOnly(t *testing.T) {
	s, spec := newFamily(t)
	other := s.start(t, spec, `{"what": "echo"}`)
	run := s.start(t, spec, `{"what": "waits", "order": {"what": "waits", "order": {"what": "parent", "name": "a", "children": 1}}}`)
	s.runs.Work(run)
	if r, err := s.runs.Wait(t.Context(), run); err != nil || string(r.Output) != `{"sums":[20],"own":2}` {
		t.Errorf("%s %s %v %v", r.State, r.Output, r.Err(), err)
	}
	if r, err := s.runs.Get(t.Context(), other); err != nil || r.State != durable.Ready {
		t.Errorf("another run is %s, %v", r.State, err)
	}
}

// TestStartedAtOnce starts a run with the same key from two processes at once, and without memory of its answer.
func TestStartedAtOnce(t *testing.T) {
	s, _ := newFamily(t)
	other, err := open(t.Context(), s.dir, s.cacheDir, s.keyDir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.close(); err != nil {
			t.Error(err)
		}
	}()
	for n := range 20 {
		ids := make(chan string, 4)
		for _, of := range []*shop{s.shop, other, s.shop, other} {
			go func() {
				key := fmt.Sprint("k", n)
				id, err := of.starter.Start(t.Context(), "t", []byte(`{"what": "sleep"}`), key)
				if err != nil {
					id = err.Error()
				}
				ids <- id
			}()
		}
		first := <-ids
		for range 3 {
			if id := <-ids; id != first || len(id) != 16 {
				t.Fatalf("one key names %s and %s", first, id)
			}
		}
	}
	if n := s.count(t, `SELECT count(*) FROM run`); n != 20 {
		t.Errorf("there are %d runs", n)
	}
}

// TestStartedLimits starts more runs than code may have at a time, and larger ones.
func TestStartedLimits(t *testing.T) {
	s, spec := newFamily(t)
	start := func(whose, input string) error {
		_, err := s.runs.StartFor(t.Context(), whose, "", []byte(input), func() (durable.Spec, error) { return spec, nil })
		return err
	}
	var text strings.Builder // that does not become smaller
	for text.Len() < 1<<20 {
		text.WriteString(crand.Text())
	}
	err, large := error(nil), 0
	for ; err == nil && large < durable.MaxStarted; large++ {
		err = start("large", `{"what": "sleep", "text": "`+text.String()+`"}`)
	}
	if bytes := s.count(t, `SELECT sum(length(spec)) FROM run`); !errors.Is(err, abi.ErrExhausted) || bytes > durable.MaxStartedBytes || bytes < durable.MaxStartedBytes*9/10 {
		t.Errorf("%d large inputs have %d bytes: %v", large, bytes, err)
	}
	for i := range durable.MaxStarted + 1 {
		if err := start("many", `{"what": "sleep"}`); (err != nil) != (i == durable.MaxStarted) || err != nil && !errors.Is(err, abi.ErrExhausted) {
			t.Errorf("run %d: %v", i, err)
		}
	}
	s.change(t, `UPDATE run SET state = 'parked'`)
	if err := start("many", `{"what": "sleep"}`); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("parked ones do not count: %v", err)
	}
	if err := start("another", `{"what": "sleep"}`); err != nil {
		t.Errorf("those of others count: %v", err)
	}
	if err := start("another", `{`); !errors.Is(err, abi.ErrInvalid) {
		t.Errorf("an input that is not JSON: %v", err)
	}
}

// TestStartedAreKept has code start more runs than are kept. Those of others stay.
func TestStartedAreKept(t *testing.T) {
	s, spec := newFamily(t, func(o *durable.Options) { o.MaxEnded = 30 })
	s.runs.Work()
	ends := func(run string) string {
		t.Helper()
		if r, err := s.runs.Wait(t.Context(), run); err != nil || r.State != durable.Done {
			t.Fatal(r.State, r.Reason, err)
		}
		return run
	}
	var others, started []string
	for range 5 {
		others = append(others, ends(s.start(t, spec, `{"what": "echo"}`)))
	}
	for range 300 {
		run, err := s.runs.StartFor(t.Context(), mine, "", []byte(`{"what": "echo"}`), func() (durable.Spec, error) { return spec, nil })
		if err != nil {
			t.Fatal(err)
		}
		started = append(started, ends(run))
	}
	s.change(t)
	s.runs.Work()
	for s.count(t, `SELECT count(*) FROM run`) != 5+3 {
		<-time.After(5 * time.Millisecond)
	}
	for _, run := range append(others, started[297:]...) {
		if _, err := s.runs.Get(t.Context(), run); err != nil {
			t.Error(err)
		}
	}
}
