package tools

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/wit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is what the host passes for a handle of an env.
type env map[string]abi.Capability

func (e env) Capabilities() map[string]abi.Capability { return e }
func (e env) Origin(name string) string               { return name }

// newBox returns an opened toolbox of one tool, "t".
func newBox(t *testing.T, o Options, run func(context.Context, string, []byte, map[string]abi.Capability) ([]byte, error)) *Toolbox {
	t.Helper()
	o.Resolve = func(name string) (Func, error) {
		if name != "t" {
			return nil, abi.Errorf(abi.CodeNotFound, "tool %s", name)
		}
		return func(ctx context.Context, name string, input []byte, env map[string]abi.Capability, done func([]byte, error)) {
			done(run(ctx, name, input, env))
		}, nil
	}
	box, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := box.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return opened.(*Toolbox)
}

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, []string{"toolbox.search", "toolbox.describe", "pending.take"}, reflect.TypeFor[*Toolbox](), reflect.TypeFor[*Call]())
}

// A call has at most 1,000 tools at once, and all calls together have a bound besides. An ended tool makes room for another.
func TestToolsAtOnce(t *testing.T) {
	wait := func(ctx context.Context, _ string, _ []byte, _ map[string]abi.Capability) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var exhausted *abi.Error
	started := 0
	for range 12 { // calls
		box := newBox(t, Options{}, wait)
		var open []*Call
		for {
			c, err := box.Start(t.Context(), "t", "{}", env{})
			if err != nil {
				if !errors.As(err, &exhausted) || exhausted.Code != abi.CodeExhausted {
					t.Fatal(err)
				}
				break
			}
			open = append(open, c)
			t.Cleanup(func() { _ = c.Close() })
		}
		if n := len(open); n > 1000 || started < 9000 && n < 1000 || n < 16 {
			t.Fatalf("a call starts %d tools beside %d of others", n, started)
		}
		if err := open[0].Close(); err != nil {
			t.Fatal(err)
		}
		c, err := box.Start(t.Context(), "t", "{}", env{})
		if err != nil {
			t.Fatalf("after another has ended: %v", err)
		}
		t.Cleanup(func() { _ = c.Close() })
		started += len(open)
	}
	if most := 10_000 + 12*16; started > most {
		t.Errorf("%d tools at once, want at most %d", started, most)
	}
}

// A binding that is passed to a tool counts as bytes of its input, and so does what is behind it.
func TestBindingsCount(t *testing.T) {
	wait := func(ctx context.Context, _ string, _ []byte, _ map[string]abi.Capability) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	many, one := env{}, env{"large": large{}}
	for i := range 1000 {
		many[strconv.Itoa(i)] = nil
	}
	for _, passed := range []env{many, one} {
		box := newBox(t, Options{Held: 1 << 20}, wait)
		first, err := box.Start(t.Context(), "t", "{}", passed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Start(t.Context(), "t", strings.Repeat("x", 600_000), env{}); !errors.Is(err, abi.ErrExhausted) {
			t.Errorf("beside %d bindings: %v", len(passed), err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

type large struct{}

func (large) Interface() string { return "test" }
func (large) Size() int         { return 512_000 }

// TestFailuresTakeLittle has the tools of several calls fail at length, and nobody take the errors. Those that are too many are short.
func TestFailuresTakeLittle(t *testing.T) {
	const size = 100 << 10
	cause := &os.PathError{Op: "open", Path: "/host", Err: os.ErrNotExist}
	fail := func(context.Context, string, []byte, map[string]abi.Capability) ([]byte, error) {
		text := strings.Repeat("x", size/2)
		denied := abi.Deny(abi.Denial{Binding: "b", Operation: text, Reason: text})
		return nil, errors.Join(denied, cause)
	}
	var open []*Call
	start := func(box *Toolbox) (length int) {
		c, err := box.Start(t.Context(), "t", "{}", env{})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		_, err = c.Take(t.Context())
		if !errors.Is(err, abi.ErrDenied) || errors.Is(err, os.ErrNotExist) {
			t.Fatalf("got %.100v", err)
		}
		return len(err.Error())
	}
	kept := 0
	for range 40 { // calls
		box := newBox(t, Options{}, fail)
		for range 50 {
			kept += start(box)
		}
	}
	if kept < 16<<20 || kept > 40<<20 {
		t.Errorf("%d bytes of errors are kept", kept)
	}
	for _, c := range open {
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	}
	if n := start(newBox(t, Options{}, fail)); n < size {
		t.Errorf("after the others were dropped, %d bytes of an error are kept", n)
	}
	if err := open[len(open)-1].Close(); err != nil {
		t.Error(err)
	}
}

func TestSearch(t *testing.T) {
	box := newBox(t, Options{Finder: NewCatalog([]Description{
		{Name: "notes_find", Description: "Finds issues in notes"}, {Name: "github_list_issues", Description: "Lists them"}, {Name: "x", Description: "Issues"},
	})}, nil)
	for _, c := range []struct {
		query string
		limit uint32
		want  string
	}{
		{"issues", 9, "github_list_issues x notes_find"},
		{"ISSUES  list", 1, "github_list_issues"},
		{"issue", 9, "github_list_issues x notes_find"},
		{"", 2, "notes_find github_list_issues"},
		{"issues", 0, ""},
		{"none", 9, ""},
		{strings.Repeat("x ", 512), 9, "x"},
		{strings.Repeat("x ", 5<<20), 9, ""}, // which would take seconds
	} {
		var names []string
		for _, d := range box.Search(t.Context(), c.query, c.limit) {
			names = append(names, d.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%.20q: got %s, want %s", c.query, got, c.want)
		}
	}
}

func TestCalls(t *testing.T) {
	passed := env{"a": nil}
	box := newBox(t, Options{Held: 11}, func(_ context.Context, name string, input []byte, env map[string]abi.Capability) ([]byte, error) {
		switch string(input) {
		case "fail":
			return nil, errors.New("secret path")
		case "big":
			return make([]byte, 8), nil
		}
		if _, ok := env["a"]; !ok || name != "t" {
			t.Errorf("got %s, %v", name, env)
		}
		return input, nil
	})
	if _, err := box.Start(t.Context(), "u", "1", passed); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := box.Start(t.Context(), "t", strings.Repeat("1", 12), passed); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("got %v", err)
	}
	for _, c := range []struct{ input, want string }{{"1", "1"}, {"fail", "secret path"}, {"big", "\x00\x00\x00\x00\x00\x00\x00\x00"}, {"big", "\x00\x00\x00\x00\x00\x00\x00\x00"}} {
		call, err := box.Start(t.Context(), "t", c.input, passed)
		if err != nil {
			t.Fatal(err)
		}
		<-call.Subscribe(t.Context()).Done()
		got, err := call.Take(t.Context())
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q", c.input, got)
		}
		for range 2 { // what is held is given back once
			if err := call.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestClose ends a tool that would run forever, and returns when it has ended.
func TestClose(t *testing.T) {
	ended := false
	box := newBox(t, Options{}, func(ctx context.Context, _ string, _ []byte, _ map[string]abi.Capability) ([]byte, error) {
		<-ctx.Done()
		ended = true
		return nil, ctx.Err()
	})
	call, err := box.Start(t.Context(), "t", "1", env{})
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := call.Take(over); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := call.Close(); err != nil || !ended {
		t.Errorf("got %v, ended: %v", err, ended)
	}
}

// TestPanic has a tool's panic reach the caller that takes its result, where the host recovers it.
func TestPanic(t *testing.T) {
	box := newBox(t, Options{}, func(context.Context, string, []byte, map[string]abi.Capability) ([]byte, error) { panic("a bug") })
	call, err := box.Start(t.Context(), "t", "1", env{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if p := recover(); p != "a bug" {
			t.Errorf("got %v", p)
		}
		_ = call.Close()
	}()
	_, _ = call.Take(t.Context())
}

func TestBytesAreCharged(t *testing.T) {
	box := newBox(t, Options{}, func(_ context.Context, _ string, input []byte, _ map[string]abi.Capability) ([]byte, error) {
		return input, nil
	})
	ctx := abi.WithMeter(t.Context(), &captest.Meter{Left: 5})
	call, err := box.Start(ctx, "t", "123", env{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = call.Close() }()
	if _, err := call.Take(ctx); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("got %v", err)
	}
}

// TestStartsAreCharged has a call start tools that do nothing, until its processor time is used up.
func TestStartsAreCharged(t *testing.T) {
	ran := 0
	box := newBox(t, Options{}, func(context.Context, string, []byte, map[string]abi.Capability) ([]byte, error) {
		ran++
		return []byte("1"), nil
	})
	left, spent := time.Second, errors.New("nothing is left")
	ctx := abi.WithWork(t.Context(), func(took time.Duration) error {
		if left -= took; left < 0 {
			return spent
		}
		return nil
	})
	const most = 10_000
	for range most + 1 {
		c, err := box.Start(ctx, "t", "{}", env{})
		if errors.Is(err, spent) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Take(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if ran < 1000 || ran > most {
		t.Errorf("a second was enough for %d tools", ran)
	}
}

// TestBindingsShareHeld gives one call two toolboxes, and another call one.
func TestBindingsShareHeld(t *testing.T) {
	call := abi.WithCall(t.Context())
	toolbox := newBox(t, Options{Held: 10}, func(ctx context.Context, _ string, _ []byte, _ map[string]abi.Capability) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	full := func(ctx context.Context) error {
		t.Helper()
		box, err := toolbox.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		started, err := box.(*Toolbox).Start(ctx, "t", "123456", env{})
		if err == nil {
			t.Cleanup(func() { _ = started.Close() })
		}
		return err
	}
	if err := full(call); err != nil {
		t.Error(err)
	}
	if err := full(call); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("another toolbox of the call: %v", err)
	}
	if err := full(abi.WithCall(call)); err != nil {
		t.Errorf("another call: %v", err)
	}
}
