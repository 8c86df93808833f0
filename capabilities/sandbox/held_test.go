package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/internal/turns"
)

// closing is a machine that counts how often it is closed.
type closing struct {
	machine
	closed *int
}

func (c closing) close() error { *c.closed++; return nil }

func (closing) tree() tree                                         { return memory{} }
func (closing) still(f func() error) error                         { return f() }
func (closing) run(context.Context, box.Process) (box.Exit, error) { return box.Exit{}, nil }
func (closing) verified() []box.Check                              { return nil }
func lastingGrant(places *turns.Kept, made, closed *int) *Grant {
	g := &Grant{limits: defaults, log: slog.New(slog.DiscardHandler)}
	g.make = func(ctx context.Context) (machine, *turns.Seat, error) {
		seat, err := places.Take(ctx)
		if err != nil {
			return nil, nil, err
		}
		*made++
		return counted{closing{nil, closed}, seat.Give}, seat, nil
	}
	return g.Lasting()
}

func begin(t *testing.T, ctx context.Context, g *Grant) *Sandbox {
	t.Helper()
	s, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*Sandbox)
}

// TestIdleWhileUsed ends an idle container when a call begins to use it.
func TestIdleWhileUsed(t *testing.T) {
	var made, closed int
	g := lastingGrant(turns.NewKept(1), &made, &closed)
	s := begin(t, t.Context(), g)
	if _, err := s.Limits(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ended, err := s.held.closeIdle(wasIdle); err != nil || ended || closed != 0 {
		t.Errorf("the container of a call has ended, %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if ended, err := s.held.closeIdle(wasIdle); err != nil || !ended || closed != 1 {
		t.Errorf("it goes on, %v", err)
	}
	if err := g.Close(); err != nil || closed != 1 {
		t.Errorf("%d, %v", closed, err)
	}
}

// TestIdleGivesItsPlace has one agent's idle containers take all places. Another one gets a place at once, of the container that has been idle
// for the longest time and no call uses, and the owner of that is told.
func TestIdleGivesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := turns.NewKept(3)
		var made, closed [4]int
		var grants []*Grant
		greedy, other := turns.For(t.Context(), "agent:greedy"), turns.For(t.Context(), "agent:other")
		for i := range 4 {
			grants = append(grants, lastingGrant(places, &made[i], &closed[i]))
		}
		defer func() {
			for _, g := range grants {
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			}
		}()
		used := begin(t, greedy, grants[0])
		if _, err := used.Limits(greedy); err != nil {
			t.Fatal(err)
		}
		for _, g := range grants[1:3] {
			s := begin(t, greedy, g)
			if _, err := s.Limits(greedy); err != nil {
				t.Fatal(err)
			}
			if g == grants[1] {
				p, err := s.Start(greedy, Command{Argv: []string{"true"}})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.Take(greedy); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s := begin(t, other, grants[3])
		if _, err := s.Limits(other); err != nil {
			t.Fatal(err)
		}
		if closed != [4]int{0, 1, 0, 0} {
			t.Fatalf("these ended: %v", closed)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		// What the command changed is lost, so the owner is told, once. Then there is a new container.
		back := begin(t, greedy, grants[1])
		for n, want := range []string{"is lost", ""} {
			_, err := back.Limits(greedy)
			if got := fmt.Sprint(err); (err != nil) != (want != "") || !strings.Contains(got, want) || err != nil && (!errors.Is(err, abi.ErrUnavailable) || !strings.Contains(got, "others waited")) {
				t.Errorf("call %d: %v", n, err)
			}
		}
		if made[1] != 2 {
			t.Errorf("%d containers were made", made[1])
		}
		// The greedy agent has had the most places, so its own other container had to give way, although the other agent's was idle for longer.
		if closed != [4]int{0, 1, 1, 0} {
			t.Errorf("these ended: %v", closed)
		}
		for _, one := range []*Sandbox{back, used} {
			if err := one.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestTold says what the owner of a container that ended is told.
func TestTold(t *testing.T) {
	for name, c := range map[string]struct {
		before func(h *held)
		push   bool
		want   string
	}{
		"a push":                       {func(*held) {}, true, ""},
		"a command":                    {func(*held) {}, false, "its files are gone"},
		"a push after changes":         {func(h *held) { h.run(1); h.run(-1) }, true, "is lost"},
		"a push after they were saved": {func(h *held) { h.run(1); h.run(-1); h.saved("") }, true, ""},
		"a push after some were":       {func(h *held) { h.run(1); h.run(-1); h.saved("dist") }, true, "is lost"},
		"a pull beside a command":      {func(h *held) { h.run(1); h.saved(""); h.run(-1) }, true, "is lost"},
	} {
		h := newHeld()
		c.before(h)
		h.gone = wasIdle
		err := h.told(c.push)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := h.told(false); err != nil {
			t.Errorf("%s: told again: %v", name, err)
		}
	}
}
