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
		"deadline": {f: func(ctx context.Context, _ string) (string, error) { return "", durable.Sleep(ctx, time.Hour) }, retry: always, deadline: 50 * time.Millisecond, attempts: 1, state: durable.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			runs := function(t, func(ctx context.Context, in string) (string, error) {
				calls.Add(1)
				if c.f != nil {
					return c.f(ctx, in)
				}
				return "", errors.New("no")
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

// TestRetryTimes waits between attempts without memory, and can be cancelled there.
func TestRetryTimes(t *testing.T) {
	runs := function(t, func(context.Context, string) (string, error) { return "", errors.New("no") })
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
				if got := r.Wake.Sub(r.Attempts[1].Ended); got < c.want-5*time.Millisecond || got > c.want+200*time.Millisecond {
					t.Errorf("%+v: it waits for %v", c.retry, got)
				}
				break
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
