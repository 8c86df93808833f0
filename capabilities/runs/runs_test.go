package runs

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/wit"
)

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, []string{"control.cancelled", "control.stash", "control.recover", "control.start", "control.ended", "control.outcome", "control.status", "control.signal", "control.cancel"}, reflect.TypeFor[*Control](), reflect.TypeFor[*Awake]())
	captest.Implements(t, wit.Capability(), Interface, []string{"control.cancelled", "control.keep-awake", "control.stash", "control.recover", "control.start", "control.ended", "control.outcome", "control.status", "control.signal", "control.cancel"}, reflect.TypeFor[*scripted](), reflect.TypeFor[*Awake]())
}

// run is a run that somebody may cancel.
type run struct {
	listens, cancelled bool
	ready              func()
	stash              []byte
}

func (r *run) Listen(context.Context) error {
	r.listens = true
	return nil
}

func (r *run) Stash(_ context.Context, value []byte) error {
	r.stash = value
	return nil
}

func (r *run) Stashed(context.Context) ([]byte, bool, error) { return r.stash, r.stash != nil, nil }

func (*run) Take(context.Context, string) (m abi.Message, ok bool, err error) { return m, false, nil }

func (*run) Address(context.Context, string, abi.Verify) (string, error) {
	return "", abi.ErrUnavailable
}

func (r *run) Watch(_ context.Context, mailbox string, ready func()) (func(), error) {
	if mailbox != abi.CancelMailbox {
		return nil, errors.New("another mailbox")
	}
	if r.ready = ready; r.cancelled {
		ready()
	}
	return func() { r.ready = nil }, nil
}

// TestCancelled waits for the end that somebody asks for, asleep and awake.
func TestCancelled(t *testing.T) {
	r := &run{}
	ctx := abi.WithRun(abi.WithMailboxes(t.Context(), r), r)
	ready, err := new(Control).Cancelled(ctx)
	if err != nil || !r.listens || ready.IsReady() {
		t.Fatalf("got %v; listens: %v", err, r.listens)
	}
	w, lasts := ready.Lasting()
	if !lasts || w.Event != abi.CancelMailbox || !w.At.IsZero() || abi.IsMailbox(w.Event) {
		t.Errorf("it waits for %+v", w)
	}
	if r.ready(); !ready.IsReady() {
		t.Error("it does not see that somebody asked")
	}
	if _ = ready.Close(); r.ready != nil {
		t.Error("it still waits")
	}
	r.cancelled = true
	again, err := new(Control).Restore(ctx, "pollable", w.State)
	if err != nil || !again.(*abi.Pollable).IsReady() {
		t.Errorf("got %v", err)
	}
	if _, err := new(Control).Restore(t.Context(), "pollable", w.State); !errors.Is(err, abi.ErrRevoked) {
		t.Errorf("got %v", err)
	}
}

// TestAwake keeps a handle that the log can make again, and with which no call sleeps.
func TestAwake(t *testing.T) {
	state, ok := new(Control).KeepAwake(t.Context()).Save()
	if ok || len(state) == 0 {
		t.Errorf("got %q, %v", state, ok)
	}
	if v, err := new(Control).Restore(t.Context(), "awake", state); err != nil || reflect.TypeOf(v) != reflect.TypeFor[*Awake]() {
		t.Errorf("got %T, %v", v, err)
	}
}

func TestStash(t *testing.T) {
	r := &run{}
	ctx := abi.WithRun(t.Context(), r)
	c := new(Control)
	if v, err := c.Recover(ctx); v != nil || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	if err := c.Stash(ctx, ` {"page": 3} `); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Recover(ctx); err != nil || *v != `{"page":3}` {
		t.Errorf("got %v, %v", v, err)
	}
	if err := c.Stash(ctx, `"`+strings.Repeat("a", abi.MaxStash-2)+`"`); err != nil {
		t.Error(err)
	}
	if err := c.Stash(ctx, `"`+strings.Repeat("a", abi.MaxStash-1)+`"`); !errors.Is(err, abi.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"", "undefined", "{", "1 2", "\"\xff\"", strings.Repeat("[", 60_000)} {
		if err := c.Stash(ctx, text); !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("%.20q: got %v", text, err)
		}
	}
}

// TestNotDurable refuses what only a run has.
func TestNotDurable(t *testing.T) {
	c := new(Control)
	_, cancelled := c.Cancelled(t.Context())
	_, recovered := c.Recover(t.Context())
	for _, err := range []error{cancelled, recovered, c.Stash(t.Context(), "1")} {
		if !errors.Is(err, abi.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	}
}

func TestDouble(t *testing.T) {
	test := &double.Test{Path: "tests[0].env.run", Binding: "run", Clock: double.NewClock()}
	opened, err := newDouble(test, []byte(exampleAnswers))
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*scripted)
	if v, err := s.Recover(t.Context()); err != nil || *v != `{"page":3}` {
		t.Errorf("got %v, %v", v, err)
	}
	if err := s.Stash(t.Context(), "[4]"); err != nil {
		t.Error(err)
	}
	if v, err := s.Recover(t.Context()); err != nil || *v != `[4]` {
		t.Errorf("got %v, %v", v, err)
	}
	begun := test.Clock.Time()
	if ready, err := s.Cancelled(t.Context()); err != nil || ready.IsReady() || !test.Clock.Move() || !ready.IsReady() || test.Clock.Time().Sub(begun) != 72*time.Hour {
		t.Errorf("it is not cancelled after three days: %v", err)
	}
	if ready, err := s.Cancelled(t.Context()); err != nil || !ready.IsReady() {
		t.Errorf("it forgets that it was cancelled: %v", err)
	}
	empty, err := newDouble(test, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := empty.(*scripted).Recover(t.Context()); v != nil || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	if ready, err := empty.(*scripted).Cancelled(t.Context()); err != nil || ready.IsReady() {
		t.Errorf("got %v", err)
	}
	for _, answers := range []string{`[]`, `{"stashed": 1}`, `{"cancelAfter": 3}`, `{"cancelAfter": "soon"}`, `{"cancelAfter": "-1s"}`, `{"stash": "` + strings.Repeat("a", abi.MaxStash) + `"}`} {
		if _, err := newDouble(test, []byte(answers)); err == nil {
			t.Errorf("%.60s is accepted", answers)
		}
	}
}
