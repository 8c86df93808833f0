package code

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/wit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, []string{"pending.take"}, reflect.TypeFor[*Runner](), reflect.TypeFor[*Pending]())
}

// env is what the host passes for a handle of an env. The value is the origin of a name.
type env map[string]string

func (e env) Capabilities() map[string]abi.Capability {
	all := map[string]abi.Capability{}
	for name := range e {
		all[name] = &log{}
	}
	return all
}

func (e env) Origin(name string) string { return e[name] }

// newRunner returns the runner of a call.
func newRunner(ctx context.Context, t testing.TB, g Rights, evaluate Evaluator) *Runner {
	t.Helper()
	r, err := New(g, evaluate).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r.(*Runner)
}

// returns is an evaluator whose code returns its own text.
func returns(_ context.Context, p Program, done func([]byte, error)) {
	done(capability.JSON(p.Text), nil)
}

// TestPassesOnlyWhatTheGrantNames passes bindings on, under names that the grant has and under others.
func TestPassesOnlyWhatTheGrantNames(t *testing.T) {
	for _, c := range []struct {
		rights Rights
		env    env
		denied string // the operation
	}{
		{Rights{}, nil, ""},
		{Rights{Env: []string{"notes"}}, nil, ""},
		{Rights{Env: []string{"notes"}}, env{"notes": "notes"}, ""},
		{Rights{Env: []string{"notes"}}, env{"other": "notes", "third": "notes"}, ""},
		{Rights{}, env{"notes": "notes"}, "pass notes on to code"},
		{Rights{Env: []string{"notes"}}, env{"notes": "secret"}, "pass secret on to code"},
		{Rights{Env: []string{"notes"}}, env{"notes": "notes", "a": "b", "c": "b", "d": "a"}, "pass a, b on to code"},
		{Rights{Env: []string{"notes"}}, env{"a": ""}, "pass  on to code"},
	} {
		var got map[string]abi.Capability
		r := newRunner(t.Context(), t, c.rights, func(_ context.Context, p Program, done func([]byte, error)) {
			got = p.Env
			done([]byte("1"), nil)
		})
		run, err := r.Start(t.Context(), "return 1", "code.ts", "null", c.env)
		if c.denied != "" {
			e, ok := errors.AsType[*abi.Error](err)
			if !ok || e.Denial == nil || e.Denial.Operation != c.denied || got != nil {
				t.Errorf("%v with %v: got %v, and it had %v", c.rights, c.env, err, got)
			} else if wanted := e.Denial.Wants.(capability.Wanted).Grant.(Rights); wanted.allows(c.env) != nil || !wanted.Covers(c.rights) {
				t.Errorf("%v with %v: the remedy is %v", c.rights, c.env, wanted)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v with %v: %v", c.rights, c.env, err)
			continue
		}
		if _, err := run.Take(t.Context()); err != nil || len(got) != len(c.env)+1 || got[ConsoleBinding] == nil {
			t.Errorf("%v with %v: it had %v, %v", c.rights, c.env, got, err)
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	r := newRunner(t.Context(), t, Rights{Limits: Limits{Runs: 2, Bytes: 10}}, returns)
	for _, c := range []struct{ text, name, input, want string }{
		{"12345678901", "code.ts", "", "exhausted: bytes of code and input: 10; the option bytes of the binding raises it"},
		{"1234567890", "code.ts", "1", "exhausted: bytes of code and input: 10; the option bytes of the binding raises it"},
		{"1", "", "", "invalid"},
		{"1", "a b.ts", "", "invalid"},
		{"1", "../a.ts", "", "invalid"},
		{"1", "a\n.ts", "", "invalid"},
		{"1", strings.Repeat("a", 65), "", "invalid"},
	} {
		if _, err := r.Start(t.Context(), c.text, c.name, c.input, env{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.20q as %.20q with %q: %v", c.text, c.name, c.input, err)
		}
	}
	for i := range 3 {
		run, err := r.Start(t.Context(), "1", "code.ts", "", env{})
		if i == 2 {
			if err == nil || err.Error() != "exhausted: runs of code: 2; the option runs of the binding raises it" {
				t.Errorf("a third run: %v", err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.Take(t.Context()); err != nil || got != `"1"` {
			t.Errorf("got %s, %v", got, err)
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestManyRuns starts runs that never end by themselves, of one call and of many, and ends them.
func TestManyRuns(t *testing.T) {
	ended := make(chan struct{}, 1<<16)
	forever := func(ctx context.Context, _ Program, done func([]byte, error)) {
		<-ctx.Done()
		ended <- struct{}{}
		done(nil, ctx.Err())
	}
	ctx, cancel := context.WithCancel(t.Context())
	call := abi.WithCall(ctx)
	var runs []*Pending
	for i := range 3 { // bindings of one call share what it may hold
		r := newRunner(call, t, Rights{Limits: Limits{Runs: most.Runs}}, forever)
		for {
			run, err := r.Start(ctx, "1", "code.ts", "", env{})
			if errors.Is(err, abi.ErrExhausted) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		if len(runs) != 1000 {
			t.Fatalf("binding %d: one call has %d runs at once", i, len(runs))
		}
	}
	cancel() // the call ends
	for range runs {
		<-ended
	}
	for _, run := range runs {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLogIsBounded floods the log of a run, of a call and of all calls.
func TestLogIsBounded(t *testing.T) {
	flood := func(lines int, text string) Evaluator {
		return func(ctx context.Context, p Program, done func([]byte, error)) {
			for range lines {
				p.Env[ConsoleBinding].(*log).Log(ctx, capability.Info, text)
			}
			done([]byte("1"), nil)
		}
	}
	run := func(ctx context.Context, e Evaluator) *Pending {
		t.Helper()
		run, err := newRunner(ctx, t, Rights{}, e).Start(ctx, "1", "code.ts", "", env{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Take(ctx); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = run.Close() })
		return run
	}
	for _, c := range []struct {
		lines int
		text  string
		want  int
		full  bool
	}{
		{0, "", 0, false},
		{1, "a", 1, false},
		{499, "", 499, false},
		{500, "", 500, true},
		{100_000, "", 500, true},
		{1, strings.Repeat("a", maxLog), 1, false},
		{1, strings.Repeat("a", maxLog+1), 2, true},
		{1, strings.Repeat("\x1b", maxLog), 2, true},
		{2, strings.Repeat("a", maxLog-1), 2, true},
		{10, strings.Repeat("a", 1<<20), 2, true},
	} {
		p := run(t.Context(), flood(c.lines, c.text))
		lines, _ := p.Log(t.Context())
		bytes := 0
		for _, l := range lines {
			bytes += len(l.Text)
		}
		if len(lines) != c.want || bytes > maxLog+len(truncated) || c.full != (c.want > 0 && lines[c.want-1].Text == truncated) {
			t.Errorf("%d lines of %d bytes: %d lines of %d bytes", c.lines, len(c.text), len(lines), bytes)
		}
		if again, _ := p.Log(t.Context()); again != nil {
			t.Errorf("%d lines again", len(again))
		}
	}
	// Neither do failures that nobody takes.
	failing := abi.WithCall(t.Context())
	failures, short := []*Pending(nil), 0
	for range 100 {
		p := func() *Pending {
			run, err := newRunner(failing, t, Rights{}, func(_ context.Context, _ Program, done func([]byte, error)) {
				done(nil, &ThrownError{abi.Failure{Name: "Error", Message: strings.Repeat("m", 16<<10), Stack: strings.Repeat("s", 16<<10)}})
			}).Start(failing, "1", "code.ts", "", env{})
			if err != nil {
				t.Fatal(err)
			}
			return run
		}()
		if _, err := p.Take(failing); err == nil {
			t.Fatal("it does not fail")
		}
		if f, _ := p.Thrown(failing); f.Stack == "" {
			short++
		}
		failures = append(failures, p)
	}
	if kept := 100 - short; kept*32<<10 > maxLogs || kept < 10 {
		t.Errorf("%d failures are kept whole", kept)
	}
	for _, p := range failures {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	// A call whose logs nobody takes is left with little, and everything is given back at the end.
	ctx := abi.WithCall(t.Context())
	kept, runs := 0, []*Pending(nil)
	for range 1000 {
		p := run(ctx, flood(1, strings.Repeat("a", maxLog)))
		runs = append(runs, p)
		p.written.mu.Lock()
		kept += int(p.written.kept)
		p.written.mu.Unlock()
	}
	if kept > maxLogs || kept < maxLogs/2 {
		t.Errorf("a call keeps %d bytes of logs", kept)
	}
	for _, p := range runs {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		p.written.Log(ctx, capability.Info, "late")
	}
	// The calls of one user leave half, and those of another get half of that.
	runs = nil
	fill := func(user string) (n int) {
		for ; ; n++ {
			if n%32 == 0 { // as much as one call may keep
				ctx = abi.WithCall(turns.For(t.Context(), user))
			}
			p := run(ctx, flood(1, strings.Repeat("a", maxLog)))
			if runs = append(runs, p); p.written.kept == 0 {
				return n
			}
		}
	}
	if busy, other := fill("agent:busy"), fill("agent:other"); busy < sumLogs/maxLog/2-1 || allLogs.Free() < sumLogs/4-2*maxLog || other < sumLogs/maxLog/4-1 {
		t.Errorf("one user keeps %d logs, another one %d, and %d bytes are left", busy, other, allLogs.Free())
	}
	for _, p := range runs {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := allLogs.Free(); n != sumLogs {
		t.Errorf("%d bytes are free afterwards", n)
	}
}

// TestThrown checks what a guest learns about code that throws, and how bugs of an evaluator reach the host.
func TestThrown(t *testing.T) {
	for stack, want := range map[string]string{
		"    at fail (code.ts:4:27)\n    at run (code.ts:7:3)\n": "code.ts:4:27: TypeError: no",
		"    at code.ts:1:2\n":                "code.ts:1:2: TypeError: no",
		"    at f (native)\n  at code.ts:1:2": "TypeError: no",
		"":                                    "TypeError: no",
	} {
		r := newRunner(t.Context(), t, Rights{}, func(_ context.Context, _ Program, done func([]byte, error)) {
			done(nil, &ThrownError{abi.Failure{Name: "TypeError", Message: "no", Stack: stack}})
		})
		run, err := r.Start(t.Context(), "1", "code.ts", "", env{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = run.Take(t.Context())
		thrown, _ := run.Thrown(t.Context())
		if !errors.Is(err, abi.ErrUnavailable) || err.Error() != "unavailable: "+want || thrown.Stack != stack {
			t.Errorf("%q: got %v", stack, err)
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
	r := newRunner(t.Context(), t, Rights{}, func(context.Context, Program, func([]byte, error)) { panic("a bug") })
	run, err := r.Start(t.Context(), "1", "code.ts", "", env{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the panic is lost")
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, _ = run.Take(t.Context())
}

// TestStartsAreCharged gives a call some processor time, which its starts and the bytes of its code use up.
func TestStartsAreCharged(t *testing.T) {
	left := 100 * time.Millisecond
	ctx := abi.WithWork(t.Context(), func(took time.Duration) error {
		if left -= took; left < 0 {
			return abi.Errorf(abi.CodeExhausted, "cpu")
		}
		return nil
	})
	r := newRunner(ctx, t, Rights{Limits: Limits{Runs: most.Runs}}, returns)
	ran := 0
	for ; ; ran++ {
		run, err := r.Start(ctx, strings.Repeat(" ", 100_000), "code.ts", "", env{})
		if errors.Is(err, abi.ErrExhausted) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if ran > 45 {
		t.Errorf("100 ms were enough for %d runs of 100 KB", ran)
	}
}

// TestDouble runs what a test answers for.
func TestDouble(t *testing.T) {
	var missing []string
	test := &double.Test{Path: "tests[0].env.runner", Binding: "runner", Missing: func(_, what, line string) { missing = append(missing, what+" "+line) }}
	c, err := Rights{Limits: Limits{Runs: 6}}.Double(t.Context(), test, []byte(`{
		"return 1": {"result": 1, "log": ["info: one", "warn: a: b"]},
		"throw 1": {"thrown": {"name": "RangeError", "message": "late", "stack": "    at code.ts:1:1\n"}},
		"loop": {"error": "code.ts: limit reached: cpu (1s)"},
		"twice": [{"result": null}, {"result": 2}]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := c.(abi.Opener).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := opened.(doubledRunner)
	for _, c := range []struct{ text, want string }{
		{"return 1", "1 [{info one} {warn a: b}]"},
		{"throw 1", "unavailable: code.ts:1:1: RangeError: late"},
		{"loop", "unavailable: code.ts: limit reached: cpu (1s)"},
		{"twice", "null []"},
		{"twice", "2 []"},
		{"twice", `unavailable: this test gives no answer for run 3 of the code "twice": add to env.runner of the test: "twice": {"result": null}`},
		{"more", "exhausted: runs of code: 6; the option runs of the binding raises it"},
	} {
		run, err := r.Start(t.Context(), c.text, "code.ts", "null", env{})
		var got string
		if err == nil {
			if !run.Subscribe(t.Context()).IsReady() {
				t.Errorf("%s: it goes on", c.text)
			}
			var lines []string
			got, err = run.Take(t.Context())
			logged, _ := run.Log(t.Context())
			for _, l := range logged {
				lines = append(lines, "{"+l.Level.String()+" "+l.Text+"}")
			}
			got += " [" + strings.Join(lines, " ") + "]"
			_ = run.Close()
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
	if len(missing) != 1 {
		t.Errorf("missing: %q", missing)
	}
	if _, err := r.Start(t.Context(), "return 1", "code.ts", "null", env{"a": "a"}); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("a binding that the grant does not name: %v", err)
	}
	for _, text := range []string{
		`[]`, `null`, `{"a": null}`, `{"a": {}}`, `{"a": {"result": 1, "error": "x"}}`, `{"a": {"result": 1, "log": ["x"]}}`, `{"a": {"result": 1, "log": ["loud: x"]}}`,
		`{"a": {"thrown": null}}`, `{"a": {"output": 1}}`, `{"a": [null]}`,
	} {
		if _, err := (Rights{}).Double(t.Context(), test, []byte(text)); !errors.As(err, new(*double.MistakeError)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
