package host_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
)

// promised is a box with a pollable from outside.
type promised struct {
	box
	ready *abi.Pollable
}

func (w *promised) Never(context.Context) *abi.Pollable { return w.ready }

// TestIdle has a guest wait for an event that happens only because the guest waits.
func TestIdle(t *testing.T) {
	h := newHost(t, host.Options{})
	c := guest{uses: "open never block", call: `(call $block (call $never (local.get $box))) ` + returns}.load(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	for _, test := range []struct {
		name string
		// idle receives the number of earlier calls.
		idle  func(n int, ready *abi.Pollable) bool
		calls int
		want  error
	}{
		{"is ready at once", func(_ int, ready *abi.Pollable) bool { ready.SetReady(); return true }, 1, nil},
		{"is ready in the end", func(n int, ready *abi.Pollable) bool {
			if n == 2 {
				ready.SetReady()
			}
			return true
		}, 3, nil},
		{"is ready though it does not say so", func(_ int, ready *abi.Pollable) bool { ready.SetReady(); return false }, 1, nil},
		{"cannot help", func(int, *abi.Pollable) bool { return false }, 1, &host.LimitError{Limit: "wall", Value: "50ms"}},
		{"goes on for ever", func(n int, _ *abi.Pollable) bool {
			if n == 5 {
				cancel()
			}
			return true
		}, 6, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls, ready := 0, new(abi.Pollable)
			var limits host.Limits
			if _, ends := errors.AsType[*host.LimitError](test.want); ends {
				limits.Wall = 50 * time.Millisecond
			}
			_, err := c.Do(ctx, host.Request{
				Tool: "t", Env: host.Env{"box": &promised{ready: ready}}, Limits: limits,
				Idle: func() bool { calls++; return test.idle(calls-1, ready) },
			})
			if limit, ok := errors.AsType[*host.LimitError](err); ok && test.want != nil && limit.Error() == test.want.Error() {
				err = test.want
			}
			if !errors.Is(err, test.want) || calls != test.calls {
				t.Errorf("%d calls of %d; got %v, want %v", calls, test.calls, err, test.want)
			}
		})
	}
}

// refuser is an Opener that denies itself.
type refuser struct{ box }

func (*refuser) Open(context.Context) (any, error) {
	return nil, abi.Deny(abi.Denial{Operation: "use it", Reason: "not today"})
}

// TestDeniedAtOpen checks that a guest can continue after it was denied a binding.
func TestDeniedAtOpen(t *testing.T) {
	h := newHost(t, host.Options{})
	c := guest{uses: "open", data: "two", call: `(call $open (local.get $env) (i32.const 2048) (i32.const 3) (i32.const 256))
		(if (i32.ne (i32.load8_u (i32.const 256)) (i32.const 1)) (then unreachable))
		(if (i32.ne (i32.load8_u (i32.const 264)) (i32.const 0)) (then unreachable)) ` + returns}.load(t, h)
	r, err := c.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &box{}, "two": &refuser{}}})
	if err != nil || len(r.Usage.Denials) != 1 || r.Usage.Denials[0] != (abi.Denial{Binding: "two", Operation: "use it", Reason: "not today"}) {
		t.Errorf("got %+v, %v", r.Usage.Denials, err)
	}
}

// TestUnbound has a guest request a binding that its call lacks. The embedder explains what is missing: not at all, briefly, or at too great length.
func TestUnbound(t *testing.T) {
	for _, c := range []struct {
		name  string
		wants func(iface string) abi.Wants
		want  string
	}{
		{"nobody says", nil, ""},
		{"nothing would do", func(string) abi.Wants { return nil }, ""},
		{"said", func(iface string) abi.Wants { return grant(strconv.Quote(iface)) }, `"bindings": { "two": "test:cap/box@1.0.0" }`},
		{"too long", func(string) abi.Wants { return grant(strings.Repeat("x", 4<<10)) }, ""},
	} {
		h := newHost(t, host.Options{Wants: c.wants})
		open := guest{uses: "open", data: "two", call: `(call $open (local.get $env) (i32.const 2048) (i32.const 3) (i32.const 256)) ` + returns}.load(t, h)
		r, err := open.Do(t.Context(), host.Request{Tool: "t", Env: host.Env{"box": &box{}}})
		if err != nil || len(r.Usage.Denials) != 1 {
			t.Fatalf("%s: %+v, %v", c.name, r.Usage.Denials, err)
		}
		got := r.Usage.Denials[0]
		if (got.Wants != nil) != (c.want != "") {
			t.Errorf("%s: it wants %v", c.name, got.Wants)
		}
		got.Wants = nil
		if want := (abi.Denial{Binding: "two", Operation: "use test:cap/box@1.0.0", Reason: "the call has no binding of that name", Remedy: c.want}); got != want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
}

// sharing records the value that its call shares with other bindings.
type sharing struct {
	box
	saw []*int
}

func (s *sharing) Open(ctx context.Context) (any, error) {
	s.saw = append(s.saw, abi.OfCall(ctx, "number", func() *int { return new(int) }))
	return &s.box, nil
}

// TestOfCall has two bindings of a call share a value, one of them inside a grant. The next call does not see it.
func TestOfCall(t *testing.T) {
	h := newHost(t, host.Options{})
	c := guest{uses: "open", data: "two", call: `(call $open (local.get $env) (i32.const 2048) (i32.const 3) (i32.const 256)) ` + returns}.load(t, h)
	one := &sharing{}
	for range 2 {
		if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": one, "two": host.NewGrant(one, host.GrantOptions{})}); err != nil {
			t.Fatal(err)
		}
	}
	if len(one.saw) != 4 || one.saw[0] != one.saw[1] || one.saw[2] != one.saw[3] || one.saw[0] == one.saw[2] {
		t.Errorf("got %p", one.saw)
	}
}
