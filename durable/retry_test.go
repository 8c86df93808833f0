package durable_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/durable"
)

// TestRetry has a tool that fails in its first attempts. Each of them makes its own changes, and its log and its memory are its own.
func TestRetry(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		const n = await env.store.increment("n", 1);
		await env.clock.sleep(60);
		if (await env.store.increment("n", 1) < 6) throw new Error("attempt with " + n);
		return n;`)
	spec.Retry = durable.Retry{Attempts: 5, Delay: 10 * time.Millisecond}
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	r := s.until(t, run.Name, durable.Done)
	if string(r.Output) != "5" || len(r.Attempts) != 2 {
		t.Fatalf("got %s after %v", r.Output, r.Attempts)
	}
	for i, a := range r.Attempts {
		if a.Number != i+1 || a.Outcome.Message != fmt.Sprint("tool failed: attempt with ", 2*i+1) {
			t.Errorf("attempt %d: %+v", i, a)
		}
	}
}

// TestOlderAttempt puts what an earlier attempt of a run was about to do back into the file.
func TestOlderAttempt(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		const n = await env.store.increment("n", 1);
		if (n == 1) await env.clock.sleep(500);
		throw new Error("no");`)
	spec.Retry = durable.Retry{Attempts: 3, Delay: time.Hour}
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Asleep)
	s.change(t, `CREATE TABLE copy AS SELECT * FROM snapshot`)
	s.runs.Work()
	for len(s.until(t, run.Name, durable.Asleep).Attempts) == 0 {
		<-time.After(5 * time.Millisecond)
	}
	s.change(t, `UPDATE snapshot SET body = (SELECT body FROM copy)`, `DROP TABLE copy`, `UPDATE run SET wake = 0`)
	s.runs.Work()
	if r := s.until(t, run.Name, durable.Parked); !strings.Contains(r.Reason, "cannot be read") {
		t.Errorf("it is parked because %s", r.Reason)
	}
	s.change(t, flip("attempt", "body", "n = 1"))
	if _, err := s.runs.Result(t.Context(), run.Name); err == nil || !strings.Contains(err.Error(), "read the attempts") {
		t.Errorf("got %v", err)
	}
}

// TestRetried says what is retried and what is not.
func TestRetried(t *testing.T) {
	w := &watch{}
	always := durable.Retry{Attempts: 3, Delay: time.Millisecond, Factor: 1, On: durable.RetryOutcomes()}
	for name, c := range map[string]struct {
		f        func(context.Context, string) (string, error)
		retry    durable.Retry
		deadline time.Duration
		attempts int32
		state    durable.State
	}{
		"no policy":     {retry: durable.Retry{}, attempts: 1, state: durable.Failed},
		"failed":        {retry: durable.Retry{Attempts: 3, Delay: time.Millisecond}, attempts: 3, state: durable.Failed},
		"another":       {retry: durable.Retry{Attempts: 3, On: []string{"trap"}}, attempts: 1, state: durable.Failed},
		"past deadline": {retry: durable.Retry{Attempts: 3, Delay: time.Hour}, deadline: time.Minute, attempts: 1, state: durable.Failed},
		"parked":        {f: func(context.Context, string) (string, error) { panic("no") }, retry: always, attempts: 1, state: durable.Parked},
		"limit": {f: func(ctx context.Context, _ string) (string, error) {
			for {
				_ = durable.Sleep(ctx, 0)
			}
		}, retry: durable.Retry{Attempts: 2, Delay: time.Millisecond, On: []string{"limit"}}, attempts: 2, state: durable.Failed},
		"deadline": {f: func(ctx context.Context, _ string) (string, error) {
			w.set(w.now().Add(time.Hour))
			return "", durable.Sleep(ctx, time.Hour)
		}, retry: always, deadline: time.Minute, attempts: 1, state: durable.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			change := func(*durable.Options) {}
			if name == "deadline" {
				change = func(o *durable.Options) { o.Now = w.now }
			}
			runs := functions(t, t.TempDir(), map[string]durable.Function{"f": durable.Func(func(ctx context.Context, in string) (string, error) {
				calls.Add(1)
				if c.f != nil {
					return c.f(ctx, in)
				}
				return "", errors.New("no")
			})}, change)
			t.Cleanup(func() {
				if err := runs.Close(); err != nil {
					t.Error(err)
				}
			})
			r := result(t, runs, start(t, runs, durable.Spec{Input: []byte(`""`), Retry: c.retry, Deadline: c.deadline}))
			if r.State != c.state || len(r.Attempts) != int(c.attempts)-1 || calls.Load() < c.attempts {
				t.Errorf("it is %s (%s) after %d calls, with %v before", r.State, r.Outcome, calls.Load(), r.Attempts)
			}
		})
	}
	runs := function(t, func(context.Context, int) (string, error) { return "", nil })
	if r := result(t, runs, start(t, runs, durable.Spec{Input: []byte(`"text"`), Retry: always})); len(r.Attempts) != 0 {
		t.Errorf("an input that does not fit is retried: %v", r.Attempts)
	}
}

// watch is a wall clock that stands still unless it is set.
type watch struct{ ms atomic.Int64 }

func (w *watch) now() time.Time { return time.UnixMilli(w.ms.Load()) }

func (w *watch) set(at time.Time) { w.ms.Store(at.UnixMilli()) }

// TestRetryTimes waits between attempts without memory, and can be cancelled there.
func TestRetryTimes(t *testing.T) {
	w := &watch{}
	runs := functions(t, t.TempDir(), map[string]durable.Function{"f": durable.Func(func(context.Context, string) (string, error) { return "", errors.New("no") })}, func(o *durable.Options) { o.Now = w.now })
	t.Cleanup(func() {
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		retry durable.Retry
		want  time.Duration // after two attempts
	}{
		{durable.Retry{Attempts: 3, Delay: 10 * time.Millisecond, Factor: 100}, time.Second},
		{durable.Retry{Attempts: 3, Delay: 500 * time.Millisecond}, time.Second},
		{durable.Retry{Attempts: 3}, 2 * time.Second},
		{durable.Retry{Attempts: 3, Delay: 300 * time.Millisecond, Factor: 100, Maximum: time.Second}, time.Second},
		{durable.Retry{Attempts: 3, Delay: 100 * time.Millisecond, Factor: 99}, 9900 * time.Millisecond},
	} {
		name := start(t, runs, durable.Spec{Input: []byte(`""`), Retry: c.retry})
		for {
			r, err := runs.Result(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Attempts) == 2 {
				if r.State != durable.Asleep {
					t.Errorf("it is %s", r.State)
				}
				if got := r.Wake.Sub(w.now()); got != c.want {
					t.Errorf("%+v: it waits for %v", c.retry, got)
				}
				break
			}
			if len(r.Attempts) == 1 && r.State == durable.Asleep {
				w.set(r.Wake)
			}
			<-time.After(time.Millisecond)
		}
		if ok, err := runs.Cancel(t.Context(), name); err != nil || !ok {
			t.Error(err)
		}
		if r := result(t, runs, name); r.State != durable.Cancelled {
			t.Errorf("it is %s", r.State)
		}
	}
	for _, wrong := range []durable.Retry{
		{Attempts: -1},
		{Attempts: durable.MaxAttempts + 1},
		{Delay: -1},
		{Delay: 31 * 24 * time.Hour},
		{Maximum: -1},
		{Maximum: math.MaxInt64},
		{Factor: 0.5},
		{Factor: -1},
		{Factor: 101},
		{Factor: math.Inf(1)},
		{Factor: math.NaN()},
		{On: []string{"cancelled"}},
		{On: []string{"failed", ""}},
	} {
		if _, _, err := runs.Start(t.Context(), durable.Spec{Function: "f", Retry: wrong}); err == nil {
			t.Errorf("%+v is no error", wrong)
		}
	}
	if _, _, err := runs.Start(t.Context(), durable.Spec{Function: "f", Retry: durable.Retry{Attempts: durable.MaxAttempts, Delay: 30 * 24 * time.Hour, Factor: 100}}); err != nil {
		t.Error(err)
	}
}

// TestRetryInterrupted has a step that was interrupted. Its run begins again only if the policy says so.
func TestRetryInterrupted(t *testing.T) {
	for _, on := range [][]string{{"failed"}, {"failed", "interrupted"}} {
		dir := t.TempDir()
		begun := make(chan string, 2)
		var again atomic.Bool
		all := map[string]durable.Function{"f": durable.Func(func(ctx context.Context, _ struct{}) (string, error) {
			return durable.Step(ctx, "effect", func(ctx context.Context) (string, error) {
				begun <- durable.StepKey(ctx)
				if !again.Load() {
					<-ctx.Done()
				}
				return "made", ctx.Err()
			})
		})}
		runs := functions(t, dir, all)
		name := start(t, runs, durable.Spec{Retry: durable.Retry{Attempts: 2, Delay: time.Millisecond, On: on}})
		first := <-begun
		if err := runs.Close(); err != nil {
			t.Fatal(err)
		}
		again.Store(true)
		runs = functions(t, dir, all)
		r := result(t, runs, name)
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
		if len(on) == 1 && (r.State != durable.Failed || len(r.Attempts) != 0 || !strings.Contains(r.Outcome.Message, "may have happened")) {
			t.Errorf("it is %s: %v, %v", r.State, r.Outcome, r.Attempts)
		}
		if len(on) == 2 {
			if second := <-begun; second == first || r.State != durable.Done || len(r.Attempts) != 1 {
				t.Errorf("it is %s: %v, %v; keys %s and %s", r.State, r.Outcome, r.Attempts, first, second)
			}
		}
	}
	if errors.Is(&durable.StepError{}, abi.ErrInterrupted) {
		t.Error("each error of a step is an interruption")
	}
}

// TestBeginAgain has somebody retry a run that failed, and one that was cancelled: other attempts, whose operations are others.
func TestBeginAgain(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		const n = await env.store.increment("n", 1);
		if (n < 3) throw new Error("attempt " + n);
		if (n == 3) await env.clock.sleep(3600_000);
		return n;`)
	spec.Key, spec.Deadline = "again", 2*time.Hour
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	again := func() {
		t.Helper()
		if ok, err := s.runs.Retry(t.Context(), run.Name); err != nil || !ok {
			t.Fatalf("got %v, %v", ok, err)
		}
	}
	first := s.until(t, run.Name, durable.Failed)
	s.set(time.Hour)
	again()
	for len(s.until(t, run.Name, durable.Failed).Attempts) == 0 {
		<-time.After(time.Millisecond)
	}
	again()
	s.until(t, run.Name, durable.Asleep)
	if ok, err := s.runs.Retry(t.Context(), run.Name); err != nil || ok {
		t.Errorf("a run that sleeps begins again: %v", err)
	}
	if _, err := s.runs.Cancel(t.Context(), run.Name); err != nil {
		t.Fatal(err)
	}
	again()
	r := s.until(t, run.Name, durable.Done)
	if string(r.Output) != "4" || len(r.Attempts) != 3 || r.Attempts[1].Outcome.Message != "tool failed: attempt 2" || r.Attempts[2].Outcome.Kind != "cancelled" || r.Key != "again" {
		t.Errorf("got %+v", r)
	}
	if later := r.Deadline.Sub(first.Deadline); later < time.Hour || later > time.Hour+time.Minute {
		t.Errorf("the deadline is %v later", later)
	}
	if ok, err := s.runs.Retry(t.Context(), run.Name); err != nil || ok {
		t.Errorf("a run with a result begins again: %v", err)
	}
	if found, existed, err := s.runs.Start(t.Context(), spec); err != nil || !existed || found.Name != run.Name {
		t.Errorf("the key finds %+v, %v", found, err)
	}
}

// TestBeginAgainAltered refuses another attempt where nobody can tell which it would be.
func TestBeginAgainAltered(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		await env.store.increment("n", 1);
		throw new Error("no");`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Failed)
	refused := func(says string, statements ...string) {
		t.Helper()
		s.change(t, statements...)
		ok, err := s.runs.Retry(t.Context(), run.Name)
		if wrong, is := errors.AsType[*durable.RetryError](err); ok || !is || !strings.Contains(wrong.Error(), says) {
			t.Errorf("got %v, %v", ok, err)
		}
	}
	refused("cannot be read", `CREATE TABLE copy AS SELECT * FROM outcome`, flip("outcome", "body", "TRUE"))
	s.change(t, `UPDATE outcome SET body = (SELECT body FROM copy)`)
	if ok, err := s.runs.Retry(t.Context(), run.Name); err != nil || !ok {
		t.Fatalf("got %v, %v", ok, err)
	}
	s.runs.Work()
	for len(s.until(t, run.Name, durable.Failed).Attempts) == 0 {
		<-time.After(time.Millisecond)
	}
	refused("cannot be read", `UPDATE outcome SET body = (SELECT body FROM copy)`) // that of the first attempt
	refused("cannot be read", `DELETE FROM outcome`)
}

// TestBeginAgainOften bounds the attempts that somebody asks for.
func TestBeginAgainOften(t *testing.T) {
	runs := function(t, func(context.Context, string) (string, error) { return "", errors.New("no") })
	name := start(t, runs, durable.Spec{Input: []byte(`""`)})
	for range durable.MaxAttempts - 1 {
		result(t, runs, name)
		if ok, err := runs.Retry(t.Context(), name); err != nil || !ok {
			t.Fatalf("got %v, %v", ok, err)
		}
	}
	if r := result(t, runs, name); len(r.Attempts) != durable.MaxAttempts-1 {
		t.Errorf("got %d attempts", len(r.Attempts))
	}
	if _, err := runs.Retry(t.Context(), name); !errors.As(err, new(*durable.RetryError)) {
		t.Errorf("got %v", err)
	}
}
