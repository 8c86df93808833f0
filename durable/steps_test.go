package durable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
)

// functions opens a store whose runs are of Go code, and works on it.
func functions(t *testing.T, dir string, all map[string]durable.Function, change ...func(*durable.Options)) *durable.Runs {
	t.Helper()
	o := durable.Options{Dir: dir, Key: key, Functions: all, Idle: 10 * time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	runs, err := durable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	runs.Work()
	return runs
}

// function is a store with one function.
func function[I, O any](t *testing.T, f func(context.Context, I) (O, error)) *durable.Runs {
	t.Helper()
	runs := functions(t, t.TempDir(), map[string]durable.Function{"f": durable.Func(f)})
	t.Cleanup(func() {
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
	})
	return runs
}

func start(t *testing.T, runs *durable.Runs, s durable.Spec) string {
	t.Helper()
	s.Function = "f"
	info, _, err := runs.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return info.Name
}

// result waits for the end of a run.
func result(t *testing.T, runs *durable.Runs, name string) durable.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := runs.Wait(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reach waits for a run to be in a state.
func reach(t *testing.T, runs *durable.Runs, name string, state durable.State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		r, err := runs.Result(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if r.State == state {
			return
		}
		if r.State.Final() {
			t.Fatalf("it is %s: %s %s", r.State, r.Reason, r.Outcome)
		}
		<-time.After(time.Millisecond)
	}
}

// TestFunction has steps, of which some fail and some are made at the same time, and sleeps. While it sleeps, it has no goroutine.
func TestFunction(t *testing.T) {
	var calls, deferred, first, failed, many atomic.Int32
	type output struct {
		Sum      int
		Error    string
		Several  []int
		Elapsed  bool
		Distinct int
	}
	runs := function(t, func(ctx context.Context, in struct{ Start int }) (out output, err error) {
		calls.Add(1)
		defer deferred.Add(1)
		keys := map[string]bool{}
		began, err := durable.Step(ctx, "begin", func(ctx context.Context) (time.Time, error) {
			first.Add(1)
			return time.Now(), nil
		})
		if err != nil {
			return out, err
		}
		if out.Sum, err = durable.Step(ctx, "add", func(context.Context) (int, error) { return in.Start + 1, nil }, durable.Repeatable); err != nil {
			return out, err
		}
		if err := durable.Sleep(ctx, 60*time.Millisecond); err != nil {
			return out, err
		}
		_, err = durable.Step(ctx, "fail", func(context.Context) (int, error) {
			failed.Add(1)
			return 7, errors.New("no luck")
		})
		if step, ok := errors.AsType[*durable.StepError](err); !ok || step.Interrupted || errors.Is(err, abi.ErrInterrupted) {
			return out, fmt.Errorf("got %w", err)
		}
		out.Error = err.Error()
		var waits []func() (int, error)
		for i := range 5 {
			waits = append(waits, durable.Go(ctx, fmt.Sprint("part ", i), func(context.Context) (int, error) {
				many.Add(1)
				return i * i, nil
			}))
		}
		if err := durable.Sleep(ctx, 60*time.Millisecond); err != nil {
			return out, err
		}
		for _, wait := range waits {
			n, err := wait()
			if err != nil {
				return out, err
			}
			out.Several = append(out.Several, n)
			key, err := durable.Step(ctx, "key", func(ctx context.Context) (string, error) {
				if err := durable.Sleep(ctx, time.Nanosecond); err != nil { // it is a part of the step
					return "", err
				}
				return durable.Step(ctx, "within", func(ctx context.Context) (string, error) { return durable.StepKey(ctx), nil })
			})
			if err != nil {
				return out, err
			}
			keys[key] = true
		}
		out.Elapsed, out.Distinct = time.Since(began) >= 120*time.Millisecond, len(keys)
		return out, nil
	})
	r := result(t, runs, start(t, runs, durable.Spec{Input: []byte(`{"Start": 41}`)}))
	if want := `{"Sum":42,"Error":"step \"fail\": no luck","Several":[0,1,4,9,16],"Elapsed":true,"Distinct":5}`; string(r.Output) != want {
		t.Errorf("got %s %s, %v", r.State, r.Output, r.Err())
	}
	if calls.Load() != 3 || deferred.Load() != 3 || first.Load() != 1 || failed.Load() != 1 || many.Load() != 5 {
		t.Errorf("it was called %d times and left %d times; its steps were made %d, %d and %d times", calls.Load(), deferred.Load(), first.Load(), failed.Load(), many.Load())
	}
}

// TestSleepingFunctions has many runs that sleep: none has a goroutine.
func TestSleepingFunctions(t *testing.T) {
	runs := function(t, func(ctx context.Context, _ struct{}) (string, error) {
		return "", durable.Sleep(ctx, time.Hour)
	})
	before := runtime.NumGoroutine()
	var names []string
	for range 200 {
		names = append(names, start(t, runs, durable.Spec{}))
	}
	for _, name := range names {
		reach(t, runs, name, durable.Asleep)
	}
	for began := time.Now(); runtime.NumGoroutine() > before+20; { // the last ones are about to end
		if time.Since(began) > time.Minute {
			t.Fatalf("there are %d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		<-time.After(time.Millisecond)
	}
}

// TestReceive delivers messages before and while a function waits for them.
func TestReceive(t *testing.T) {
	runs := function(t, func(ctx context.Context, _ struct{}) (out []any, err error) {
		if _, _, err := durable.Receive[string](ctx, "no/name", 0); !errors.As(err, new(*durable.MessageError)) {
			return nil, fmt.Errorf("got %w", err)
		}
		if _, err := durable.Step(ctx, "step", func(ctx context.Context) (string, error) {
			_, _, err := durable.Receive[string](ctx, "go", 0)
			return "", err
		}); err == nil || !strings.Contains(err.Error(), durable.ErrNotDurable.Error()) {
			return nil, fmt.Errorf("got %w", err)
		}
		for range 2 {
			text, ok, err := durable.Receive[string](ctx, "go", 0)
			if err != nil {
				return nil, err
			}
			out = append(out, text, ok)
		}
		_, ok, err := durable.Receive[string](ctx, "never", 30*time.Millisecond)
		if err != nil {
			return nil, err
		}
		out = append(out, ok)
		_, _, err = durable.Receive[int](ctx, "go", time.Hour)
		return append(out, err != nil), nil
	})
	name := start(t, runs, durable.Spec{})
	send := func(data string) {
		t.Helper()
		if _, err := runs.Signal(t.Context(), name, "go", durable.Message{Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	send(`"first"`)
	reach(t, runs, name, durable.Asleep)
	send(`"second"`)
	send(`"no number"`)
	if r := result(t, runs, name); string(r.Output) != `["first",true,"second",true,false,true]` {
		t.Errorf("got %s %s, %v", r.State, r.Output, r.Err())
	}
}

// TestChangedFunction changes the code of a run that sleeps, so that it does not fit its log.
func TestChangedFunction(t *testing.T) {
	step := func(ctx context.Context, name string) {
		_, _ = durable.Step(ctx, name, func(context.Context) (int, error) { return 1, nil })
	}
	for name, c := range map[string]struct {
		changed func(context.Context, struct{}) (int, error)
		want    string
	}{
		"a step of another name": {func(ctx context.Context, _ struct{}) (int, error) {
			step(ctx, "b")
			return 0, nil
		}, `operation 1 was step "a", and it is step "b" now`},
		"no step": {func(context.Context, struct{}) (int, error) { return 0, nil }, `operation 1 was step "a", and it is the end of the function now`},
		"a sleep": {func(ctx context.Context, _ struct{}) (int, error) { return 0, durable.Sleep(ctx, time.Hour) }, `operation 1 was step "a", and it is a sleep now`},
		"another result": {func(ctx context.Context, _ struct{}) (int, error) {
			_, err := durable.Step(ctx, "a", func(context.Context) (string, error) { return "", nil })
			return 0, err
		}, `operation 1 was step "a" with the result 1, and it is one that returns a string now`},
		"recovered": {func(ctx context.Context, _ struct{}) (int, error) {
			defer func() {
				_ = recover()
				step(ctx, "a")
			}()
			step(ctx, "b")
			return 0, nil
		}, `operation 1 was step "a", and it is step "b" now`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			runs := functions(t, dir, map[string]durable.Function{"f": durable.Func(func(ctx context.Context, _ struct{}) (int, error) {
				step(ctx, "a")
				return 0, durable.Sleep(ctx, 100*time.Millisecond)
			})})
			run := start(t, runs, durable.Spec{})
			reach(t, runs, run, durable.Asleep)
			if err := runs.Close(); err != nil {
				t.Fatal(err)
			}
			runs = functions(t, dir, map[string]durable.Function{"f": durable.Func(c.changed)})
			defer func() {
				if err := runs.Close(); err != nil {
					t.Error(err)
				}
			}()
			if r := result(t, runs, run); r.State != durable.Parked || !strings.Contains(r.Reason, c.want) {
				t.Errorf("got %s %s", r.State, r.Reason)
			}
		})
	}
}

// TestFaultyFunction has functions that panic, end their goroutine and return too much. The process stays, and the run says why it does not go on.
func TestFaultyFunction(t *testing.T) {
	large := strings.Repeat("x", 17<<20)
	for name, c := range map[string]struct {
		f    func(context.Context, struct{}) (string, error)
		want string
	}{
		"panic": {func(context.Context, struct{}) (string, error) { panic("no") }, "parked: its function panicked: no"},
		"a step panics": {func(ctx context.Context, _ struct{}) (string, error) {
			return durable.Step(ctx, "bad", func(context.Context) (string, error) { panic("no") })
		}, `parked: step "bad" panicked: no`},
		"a step that nobody waits for panics": {func(ctx context.Context, _ struct{}) (string, error) {
			durable.Go(ctx, "bad", func(context.Context) (string, error) { panic("no") })
			return "", nil
		}, `parked: step "bad" panicked: no`},
		"it ends": {func(context.Context, struct{}) (string, error) { runtime.Goexit(); return "", nil }, "parked: its function ended its goroutine"},
		"a step ends": {func(ctx context.Context, _ struct{}) (string, error) {
			return durable.Step(ctx, "bad", func(context.Context) (string, error) { runtime.Goexit(); return "", nil })
		}, `parked: step "bad" ended its goroutine`},
		"a large result": {func(context.Context, struct{}) (string, error) { return large, nil }, "failed: the result: it has 17825794 bytes of JSON; 16 MiB are allowed"},
		"a large step": {func(ctx context.Context, _ struct{}) (string, error) {
			return durable.Step(ctx, "s", func(context.Context) (string, error) { return large, nil })
		}, `failed: step "s": it has 17825794 bytes of JSON; 16 MiB are allowed`},
		"a large log": {func(ctx context.Context, _ struct{}) (string, error) {
			for {
				if _, err := durable.Step(ctx, "s", func(context.Context) (string, error) { return large[:15<<20], nil }, durable.Repeatable); err != nil {
					return "", err
				}
			}
		}, "limit: "},
		"many steps": {func(ctx context.Context, _ struct{}) (string, error) {
			for {
				if _, err := durable.Step(ctx, "s", func(context.Context) (string, error) { return "", nil }, durable.Repeatable); err != nil {
					return "", err
				}
			}
		}, "limit: "},
		"a long name": {func(ctx context.Context, _ struct{}) (string, error) {
			return durable.Step(ctx, large[:257], func(context.Context) (string, error) { return "", nil })
		}, "parked: the name of step 1 has 257 bytes"},
		"no JSON": {func(ctx context.Context, _ struct{}) (string, error) {
			_, err := durable.Step(ctx, "s", func(context.Context) (func(), error) { return func() {}, nil })
			return "", err
		}, `failed: step "s": json: unsupported type`},
		"an error of a context": {func(context.Context, struct{}) (string, error) { return "", context.Canceled }, "failed: context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			runs := function(t, c.f)
			r := result(t, runs, start(t, runs, durable.Spec{}))
			got := r.Outcome.Kind + ": " + r.Outcome.Message
			if r.State == durable.Parked {
				got = "parked: " + r.Reason
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s", got)
			}
		})
	}
	runs := function(t, func(context.Context, int) (string, error) { return "", nil })
	if r := result(t, runs, start(t, runs, durable.Spec{Input: []byte(`"text"`)})); r.Outcome.Kind != "input" {
		t.Errorf("got %v", r.Outcome)
	}
	if _, _, err := runs.Start(t.Context(), durable.Spec{Function: "f", Input: []byte(`"` + large + `"`)}); err == nil {
		t.Error("a large input is no error")
	}
}

// TestEndedFunction cancels runs in a step and as they fall asleep, and has others reach their deadline. Deferred calls run, and no step is made any more.
func TestEndedFunction(t *testing.T) {
	var runs *durable.Runs
	steps, left := make(chan string, 10), make(chan error, 10)
	runs = function(t, func(ctx context.Context, how string) (string, error) {
		defer func() { left <- context.Cause(ctx) }()
		name, err := durable.Step(ctx, "wait", func(ctx context.Context) (string, error) {
			switch how {
			case "step":
				steps <- "begun"
				<-ctx.Done()
				left <- context.Cause(ctx)
				return "", ctx.Err()
			case "falls asleep":
				list, err := runs.List(ctx, "", 1)
				if err != nil {
					return "", err
				}
				_, err = runs.Cancel(ctx, list[0].Name)
				return "", err
			}
			return "", nil
		})
		if err != nil {
			return name, err
		}
		return "", durable.Sleep(ctx, time.Hour)
	})
	in := start(t, runs, durable.Spec{Input: []byte(`"step"`)})
	<-steps
	if ok, err := runs.Cancel(t.Context(), in); err != nil || !ok {
		t.Fatal(err)
	}
	if r := result(t, runs, in); r.State != durable.Cancelled {
		t.Errorf("got %s %v", r.State, r.Outcome)
	}
	for _, of := range []string{"step", "function"} {
		if err := <-left; !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("the context of the %s ended with %v", of, err)
		}
	}
	if r := result(t, runs, start(t, runs, durable.Spec{Input: []byte(`"step"`), Deadline: 100 * time.Millisecond})); r.Outcome.Limit != "deadline" {
		t.Errorf("got %s %v", r.State, r.Outcome)
	}
	if err := <-left; !errors.Is(err, durable.ErrLate) {
		t.Errorf("the context of the step ended with %v", err)
	}
	if r := result(t, runs, start(t, runs, durable.Spec{Input: []byte(`"falls asleep"`)})); r.State != durable.Cancelled {
		t.Errorf("got %s %v", r.State, r.Outcome)
	}
	if r := result(t, runs, start(t, runs, durable.Spec{Input: []byte(`"sleep"`), Deadline: 100 * time.Millisecond})); r.State != durable.Failed || r.Outcome.Limit != "deadline" {
		t.Errorf("got %s %v", r.State, r.Outcome)
	}
}

// TestClosed closes a store while a step is made. The run goes on in the next, where the step was interrupted, unless it may be repeated.
func TestClosed(t *testing.T) {
	dir := t.TempDir()
	var again atomic.Bool
	begun := make(chan bool, 2)
	all := map[string]durable.Function{"f": durable.Func(func(ctx context.Context, _ struct{}) (list []string, err error) {
		once, err := durable.Step(ctx, "before", func(context.Context) (bool, error) { return again.Load(), nil }, durable.Repeatable)
		if err != nil || once {
			return nil, fmt.Errorf("a step was made twice, %w", err)
		}
		wait := func(ctx context.Context) (string, error) {
			if again.Load() {
				return "made again", nil
			}
			begun <- true
			<-ctx.Done()
			return "", ctx.Err()
		}
		effect, reading := durable.Go(ctx, "effect", wait), durable.Go(ctx, "reading", wait, durable.Repeatable)
		_, err = effect()
		text, other := reading()
		return []string{fmt.Sprint(errors.Is(err, abi.ErrInterrupted)), text, fmt.Sprint(other)}, nil
	})}
	runs := functions(t, dir, all)
	name := start(t, runs, durable.Spec{})
	<-begun
	<-begun
	if err := runs.Close(); err != nil {
		t.Fatal(err)
	}
	again.Store(true)
	runs = functions(t, dir, nil) // a process that does not have the function leaves the run alone
	component, _, err := runs.Start(t.Context(), durable.Spec{Component: durable.CodeOf([]byte("no component")), Tool: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
	}()
	other := functions(t, dir, all)
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	if r := result(t, other, name); string(r.Output) != `["true","made again","\u003cnil\u003e"]` {
		t.Errorf("got %s %s, %v", r.State, r.Output, r.Err())
	}
	if r, err := other.Get(t.Context(), component.Name); err != nil || r.State != durable.Ready { // no process here has a host
		t.Errorf("got %s, %v", r.State, err)
	}
}

// lines is the function of TestKilledFunction. Each of its steps writes a line, some two at a time, and it says which of them were interrupted.
func lines(ctx context.Context, file string) (interrupted []int, err error) {
	write := func(i int) func() (int, error) {
		return durable.Go(ctx, fmt.Sprint("line ", i), func(context.Context) (int, error) {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return 0, err
			}
			_, err = fmt.Fprintln(f, i)
			return i, errors.Join(err, f.Close())
		})
	}
	note := func(i int, wait func() (int, error)) error {
		n, err := wait()
		switch {
		case errors.Is(err, abi.ErrInterrupted):
			interrupted = append(interrupted, i)
		case err != nil:
			return err
		case n != i:
			return fmt.Errorf("step %d has the answer of step %d", i, n)
		}
		return nil
	}
	for i := 0; i < 60; i += 2 {
		first, second := write(i), write(i+1)
		if err := errors.Join(note(i, first), note(i+1, second)); err != nil {
			return nil, err
		}
		if i%20 == 0 {
			if err := durable.Sleep(ctx, 60*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	return interrupted, nil
}

// TestKilledFunction kills the process that works on runs of Go code again and again. No step is made twice, and those that may not have been made at
// all are those that were interrupted.
func TestKilledFunction(t *testing.T) {
	dir := t.TempDir()
	runs, err := durable.Open(t.Context(), durable.Options{Dir: dir, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
	}()
	const all = 10
	var names, files []string
	for i := range all {
		files = append(files, filepath.Join(dir, fmt.Sprint("lines", i)))
		input, err := json.Marshal(files[i])
		if err != nil {
			t.Fatal(err)
		}
		info, _, err := runs.Start(t.Context(), durable.Spec{Function: "lines", Input: input})
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	kills, next := 0, names[0]
	for ended := 0; ended < all; kills++ {
		kill := worker(t, dir, "", "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(60+8*kills))*time.Millisecond)
		_, _ = runs.Wait(ctx, next)
		cancel()
		kill()
		ended = 0
		for _, name := range names {
			r, err := runs.Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if r.State.Final() {
				ended++
			} else {
				next = name
			}
		}
		if kills > 400 {
			t.Fatalf("%d of %d have ended", ended, all)
		}
	}
	var unsure int
	for i, name := range names {
		r, err := runs.Result(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var interrupted []int
		if err := json.Unmarshal(r.Output, &interrupted); err != nil || r.State != durable.Done {
			t.Fatalf("it is %s: %s %s", r.State, r.Reason, r.Outcome)
		}
		unsure += len(interrupted)
		text, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		for n := range 60 {
			count := bytes.Count(append([]byte("\n"), text...), fmt.Appendf(nil, "\n%d\n", n))
			if count > 1 || count == 0 && !slices.Contains(interrupted, n) {
				t.Errorf("run %d has made step %d %d times; interrupted were %d", i, n, count, interrupted)
			}
		}
	}
	t.Logf("killed %d times; %d steps were interrupted", kills, unsure)
}

// TestOutside calls a function that is no run.
func TestOutside(t *testing.T) {
	if key := durable.StepKey(t.Context()); key != "" {
		t.Errorf("got %q", key)
	}
	want := errors.New("as it is")
	var once sync.Once
	wait := durable.Go(t.Context(), "s", func(context.Context) (n int, err error) {
		once.Do(func() { n = 1 })
		return n, want
	})
	for range 2 {
		if n, err := wait(); n != 1 || err != want { //nolint:errorlint // it is returned as it is
			t.Errorf("got %d, %v", n, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := durable.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := durable.Sleep(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
}

// TestStartedHere starts runs in two processes that work on one store with little room, one of which closes meanwhile: each step is made once.
func TestStartedHere(t *testing.T) {
	dir := t.TempDir()
	var steps sync.Map
	count := durable.Func(func(ctx context.Context, n int) (int, error) {
		return durable.Step(ctx, "count", func(context.Context) (int, error) {
			if _, twice := steps.LoadOrStore(n, true); twice {
				t.Errorf("the step of run %d is made twice", n)
			}
			return n, nil
		})
	})
	few := func(o *durable.Options) { o.Live = 3 }
	stays, closes := functions(t, dir, map[string]durable.Function{"f": count}, few), functions(t, dir, map[string]durable.Function{"f": count}, few)
	t.Cleanup(func() {
		if err := stays.Close(); err != nil {
			t.Error(err)
		}
	})
	const runs = 60
	var all sync.WaitGroup
	for n := range runs {
		r := stays
		if n%2 == 0 {
			r = closes
		}
		all.Go(func() {
			_, _, err := r.Start(t.Context(), durable.Spec{Key: fmt.Sprint(n), Function: "f", Input: fmt.Append(nil, n)})
			if err != nil && r == stays {
				t.Error(err)
			}
		})
		if n == runs/2 {
			all.Go(func() {
				if err := closes.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	for n := range runs {
		run, _, err := stays.Start(t.Context(), durable.Spec{Key: fmt.Sprint(n), Function: "f", Input: fmt.Append(nil, n)}) // those that the other could not start
		if err != nil {
			t.Fatal(err)
		}
		if r, err := stays.Wait(t.Context(), run.Name); err != nil || r.State != durable.Done && !strings.Contains(r.Outcome.Message, "may have happened") {
			t.Errorf("run %d: %v, %v, %v", n, r.State, err, r.Err())
		}
	}
}

// TestCodeIsReadOnce starts runs of one component: its bytes are asked for once, and only those of its digest are taken.
func TestCodeIsReadOnce(t *testing.T) {
	runs := functions(t, t.TempDir(), nil)
	t.Cleanup(func() { _ = runs.Close() })
	read := 0
	code := func(text string) durable.Code {
		c := durable.CodeOf([]byte(text))
		return durable.Code{Digest: c.Digest, Read: func(ctx context.Context) ([]byte, error) { read++; return c.Read(ctx) }}
	}
	name := host.ModuleName([]byte("a module"))
	for range 3 {
		if _, _, err := runs.Start(t.Context(), durable.Spec{Component: code("a component"), Modules: durable.Modules{name: code("a module").Read}, Tool: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	if read != 2 {
		t.Errorf("the component and the module are read %d times", read)
	}
	missing := errors.New("it is not there")
	for wrong, spec := range map[string]durable.Spec{
		"has the digest": {Component: durable.Code{Digest: durable.CodeOf([]byte("one")).Digest, Read: code("two").Read}, Tool: "t"},
		missing.Error():  {Component: durable.Code{Digest: durable.CodeOf([]byte("one")).Digest, Read: func(context.Context) ([]byte, error) { return nil, missing }}, Tool: "t"},
		"no name of a m": {Component: code("a component"), Modules: durable.Modules{"engine": code("a module").Read}, Tool: "t"},
		"neither":        {Tool: "t"},
	} {
		if _, _, err := runs.Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: got %v", wrong, err)
		}
	}
}

// TestManyAtOnce has more runs wait for their logs than are written in one transaction, and cancels some of them meanwhile. The others lose no step, and repeat none.
func TestManyAtOnce(t *testing.T) {
	const n, steps = 150, 5
	dir := t.TempDir()
	var made [n][steps]atomic.Int32
	var all sync.WaitGroup
	all.Add(n)
	f := durable.Func(func(ctx context.Context, i int) (sum int, err error) {
		for s := range steps {
			one, err := durable.Step(ctx, "step", func(context.Context) (int, error) {
				if made[i][s].Add(1); s == 0 {
					all.Done()
					all.Wait() // so that all write their answers at once
				}
				return i, nil
			})
			if err != nil {
				return 0, err
			}
			sum += one
		}
		return sum, nil
	})
	runs := functions(t, dir, map[string]durable.Function{"f": f}, func(o *durable.Options) { o.Live = n })
	defer func() {
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
	}()
	names := make([]string, n)
	for i := range names {
		names[i] = start(t, runs, durable.Spec{Input: fmt.Append(nil, i)})
	}
	all.Wait()
	for i := 0; i < n; i += 10 {
		if _, err := runs.Cancel(t.Context(), names[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range names {
		r := result(t, runs, name)
		if cancelled := r.State == durable.Cancelled; cancelled && i%10 != 0 || !cancelled && string(r.Output) != fmt.Sprint(i*steps) {
			t.Errorf("run %d is %s with %s: %s", i, r.State, r.Output, r.Outcome)
		}
		for s := range made[i] {
			if made[i][s].Load() > 1 {
				t.Errorf("run %d made step %d again", i, s)
			}
		}
	}
}
