package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// operations are those that a run has, all or the latest, as text.
func operations(t *testing.T, runs *durable.Runs, run string) (all []durable.Operation) {
	t.Helper()
	for o, err := range runs.Operations(t.Context(), run, durable.Operation{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	latest, err := runs.Latest(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range all {
		if text := o.Call() + o.Answer + o.Code; printable.OneLine(text) != text || len(text) > 1000 {
			t.Errorf("%q is not safe", text)
		}
		if i > 0 && !o.After(all[i-1]) {
			t.Errorf("%+v comes after %+v", o, all[i-1])
		}
	}
	for i, o := range latest {
		want := all[len(all)-len(latest)+i]
		if o.Number != want.Number || o.Attempt != want.Attempt || o.Function != want.Function || o.State != want.State {
			t.Errorf("the latest have %+v, all have %+v", o, want)
		}
	}
	return all
}

func texts(all []durable.Operation) (list []string) {
	for _, o := range all {
		list = append(list, fmt.Sprintf("%d.%d %s %s %s %s", o.Attempt, o.Number, o.Call(), o.State, o.Code, o.Answer))
	}
	return list
}

// TestOperations looks at what a run did: while it sleeps, when it has ended, and in another attempt. Its log is cut each time.
func TestOperations(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		const n = await env.store.increment("\u001b[31mn\n<script>", 1);
		await env.store.set("k", "v".repeat(5000));
		await env.clock.sleep(60);
		if (n == 1) throw new Error("no");
		await env.signals.url("not a name").catch(() => {});
		await env.signals.receive("approved");
		return n;`)
	begun := time.Now().Add(-time.Second)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Failed)
	all := operations(t, s.runs, run.Name)
	got := strings.Join(texts(all), "\n")
	for _, want := range []string{
		`1.3 store.increment("\x1b[31mn\n<script>", 1) answered  1`, `store.set((5005 bytes)) answered`, `clock.subscribe(60000000) answered`, `1.2 env.get("store") answered`, `1.7 clock.wait() answered`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	for i, o := range all {
		if o.Number != uint64(i+1) || o.Attempt != 1 || o.Time.Before(begun) || o.Time.After(time.Now().Add(time.Second)) {
			t.Errorf("operation %d is %+v", i+1, o)
		}
	}
	if _, err := s.runs.Retry(t.Context(), run.Name); err != nil {
		t.Fatal(err)
	}
	for s.until(t, run.Name, durable.Asleep).Mailboxes == nil {
		<-time.After(time.Millisecond)
	}
	second := operations(t, s.runs, run.Name)
	if len(second) <= len(all) || !slices.Equal(texts(second[:len(all)]), texts(all)) || second[len(all)].Attempt != 2 || second[len(all)].Number != 1 {
		t.Errorf("got\n%s", strings.Join(texts(second), "\n"))
	}
	if got := strings.Join(texts(second), "\n"); !strings.Contains(got, `signals.url("not a name") failed invalid "\"not a name\" cannot name`) {
		t.Errorf("got\n%s", got)
	}
	for o, err := range s.runs.Operations(t.Context(), run.Name, second[len(second)-3]) {
		if err != nil || !o.After(second[len(second)-3]) {
			t.Errorf("got %+v, %v", o, err)
		}
	}
	s.change(t, flip("history", "body", "TRUE"))
	for _, err := range s.runs.Operations(t.Context(), run.Name, durable.Operation{}) {
		if err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := s.runs.Latest(t.Context(), run.Name); err == nil {
		t.Error("an altered history is read")
	}
	if _, err := s.runs.Latest(t.Context(), "nothing"); !errors.As(err, new(*durable.UnknownError)) {
		t.Errorf("got %v", err)
	}
	if _, err := s.runs.Signal(t.Context(), run.Name, "approved", durable.Message{Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Done) // without its history
	operations(t, s.runs, run.Name)
	if _, err := s.runs.Remove(t.Context(), run.Name); err != nil {
		t.Fatal(err)
	}
	if n := s.count(t, `SELECT count(*) FROM history`); n != 0 {
		t.Errorf("%d histories are left", n)
	}
}

// TestManyOperations reads a long log while the run writes it, from another process's view of the file, and what is left of it when the run sleeps.
func TestManyOperations(t *testing.T) {
	s := newStored(t)
	const most = 20_000
	spec := program(t, s.shop, s.cacheDir, s.keyDir, fmt.Sprintf(`
		await env.store.set("big", "x".repeat(200000));
		for (let i = 0; i < %d; i++) await env.store.get(i == 5 ? "big" : "k");
		await env.signals.receive("approved");`, most))
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	other, err := open(t.Context(), s.dir, s.cacheDir, s.keyDir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.close(); err != nil {
			t.Error(err)
		}
	}()
	s.runs.Work()
	var last durable.Operation
	seen := 0
	for over := false; !over; {
		r, err := other.runs.Result(t.Context(), run.Name)
		if err != nil {
			t.Fatal(err)
		}
		over = r.State == durable.Asleep
		for o, err := range other.runs.Operations(t.Context(), run.Name, last) {
			if err != nil {
				t.Fatal(err)
			}
			if !o.After(last) {
				t.Fatalf("%+v comes after %+v", o, last)
			}
			last, seen = o, seen+1
			if o.State == durable.Pending {
				break
			}
		}
	}
	if last.Number < most || seen < durable.KeptOperations {
		t.Errorf("it saw %d operations, up to %+v", seen, last)
	}
	kept := operations(t, s.runs, run.Name)
	if len(kept) != durable.KeptOperations || kept[len(kept)-1].Number != last.Number {
		t.Errorf("%d are kept, up to %+v; want %+v", len(kept), kept[len(kept)-1], last)
	}
}

// TestDamagedLog reads the log of a parked run up to where it was altered.
func TestDamagedLog(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		for (let i = 0; i < 20; i++) await env.store.increment("n", 1);
		await env.signals.receive("approved");`)
	s.options = append(s.options, func(o *durable.Options) { o.Idle = time.Hour })
	s.change(t)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	for s.count(t, `SELECT count(*) FROM log`) < 20 {
		<-time.After(time.Millisecond)
	}
	s.change(t, flip("log", "body", "n = 12"))
	n, damage := 0, error(nil)
	for _, err := range s.runs.Operations(t.Context(), run.Name, durable.Operation{}) {
		if damage = err; err == nil {
			n++
		}
	}
	if n < 5 || n > 15 || damage == nil || !strings.Contains(damage.Error(), "cannot be read") {
		t.Errorf("got %d operations, then %v", n, damage)
	}
	if list, err := s.runs.Latest(t.Context(), run.Name); len(list) != n || err == nil {
		t.Errorf("got %d of the latest operations, then %v", len(list), err)
	}
	s.change(t, `DELETE FROM log WHERE n = 12`)
	damage = nil
	for _, err := range s.runs.Operations(t.Context(), run.Name, durable.Operation{}) {
		damage = err
	}
	if damage == nil {
		t.Error("a log with a hole is read")
	}
}

// TestStepOperations looks at the steps of Go code, some of them at the same time.
func TestStepOperations(t *testing.T) {
	goes := make(chan struct{})
	runs := function(t, func(ctx context.Context, _ string) (string, error) {
		first := durable.Go(ctx, "first\n\x1b[31m", func(context.Context) (string, error) {
			<-goes
			return "<b>one</b>", nil
		})
		if _, err := durable.Step(ctx, "second", func(context.Context) (int, error) { return 0, errors.New("sold out") }); err == nil {
			return "", errors.New("no error")
		}
		if _, err := first(); err != nil {
			return "", err
		}
		_, _, err := durable.Receive[string](ctx, "approved", 0)
		return "", err
	})
	name := start(t, runs, durable.Spec{Input: []byte(`""`)})
	for {
		latest, err := runs.Latest(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if len(latest) == 2 && latest[1].State == "failed" {
			if got := texts(operations(t, runs, name)); got[0] != `1.1 step("first\n\x1b[31m") pending  ` || got[1] != `1.2 step("second") failed error sold out` {
				t.Errorf("got %q", got)
			}
			break
		}
		<-time.After(time.Millisecond)
	}
	close(goes)
	reach(t, runs, name, durable.Asleep)
	if got := texts(operations(t, runs, name)); len(got) != 3 || got[0] != `1.1 step("first\n\x1b[31m") answered  "\u003cb\u003eone\u003c/b\u003e"` || got[2] != `1.3 receive("approved") pending  ` {
		t.Errorf("got %q", got)
	}
	if _, err := runs.Signal(t.Context(), name, "approved", durable.Message{Data: []byte(`"hi"`)}); err != nil {
		t.Fatal(err)
	}
	result(t, runs, name)
	if got := texts(operations(t, runs, name)); len(got) != 3 || got[2] != `1.3 receive("approved") answered  "hi"` {
		t.Errorf("got %q", got)
	}
}

// TestHugeOperations has a run whose log takes little room in the file and much in memory. Only its end is read when the run falls asleep, and has the right numbers.
func TestHugeOperations(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		await env.store.set("big", "x".repeat(200000));
		for (let i = 0; i < 50; i++) await env.store.get("big");
		for (let i = 0; i < 3; i++) await env.store.increment("n", 1);
		await env.signals.receive("approved");`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Asleep)
	all := operations(t, s.runs, run.Name)
	var numbers []uint64
	for i, o := range all {
		if o.Function == "increment" {
			numbers = append(numbers, o.Number)
		}
		if i > 0 && o.Number != all[i-1].Number+1 {
			t.Errorf("operation %d comes after %d", o.Number, all[i-1].Number)
		}
	}
	if len(all) > 20 || !slices.Equal(numbers, []uint64{54, 55, 56}) {
		t.Errorf("%d operations are kept, with the increments %v", len(all), numbers)
	}
}

// TestOthersWriteMeanwhile has another run's message come while what is kept of a log is made.
func TestOthersWriteMeanwhile(t *testing.T) {
	var armed atomic.Bool
	entered, goes := make(chan struct{}), make(chan struct{})
	hook := func(text []byte) []byte {
		if bytes.Contains(text, []byte("marked")) && armed.CompareAndSwap(true, false) {
			close(entered)
			<-goes
		}
		return text
	}
	s := newStored(t)
	h, err := host.New(t.Context(), host.Options{CacheDir: s.cacheDir, KeyDir: s.keyDir, Redact: hook})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	s.options = append(s.options, func(o *durable.Options) { o.Host = h })
	s.change(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `
		await env.store.set("marked", "v");
		await env.signals.receive("approved");`)
	other, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	s.runs.Work(run.Name)
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = s.runs.Signal(ctx, other.Name, "approved", durable.Message{Data: []byte("1")})
	close(goes)
	if err != nil {
		t.Error(err)
	}
	s.until(t, run.Name, durable.Asleep)
	if err := s.close(); err != nil { // before the host
		t.Error(err)
	}
	s.options = nil
	s.reopen(t)
}
