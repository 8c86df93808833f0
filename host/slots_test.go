package host

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSlots compares slots with a list of who waits: a free slot goes at once to the user with the fewest who may have it, and none is
// lost.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		common := rapid.IntRange(1, 8).Draw(t, "common")
		most := map[string]int{"": common, "a": common - common/4, "b": common - common/4}
		s := newSlots(common)
		type call struct {
			user   string
			depth  int
			cancel context.CancelFunc
			waits  *waiter
			rung   bool
			slot   slot
		}
		var waiting, live []*call
		has, reserved := map[string]int{}, map[int]bool{}
		all := func() int { return has[""] + has["a"] + has["b"] }
		enter := func(c *call, got slot) {
			switch {
			case got.user == nil || got.user.name != c.user:
				t.Fatalf("a call of %q got %+v", c.user, got)
			case got.depth != 0 && (got.depth != c.depth || reserved[got.depth]):
				t.Fatalf("a call at depth %d got %+v", c.depth, got)
			case got.depth != 0:
				reserved[got.depth] = true
			case all() >= common || has[c.user] >= most[c.user]:
				t.Fatalf("%q has %d of %d", c.user, has[c.user], all())
			default:
				has[c.user]++
			}
			c.slot = got
			live = append(live, c)
		}
		fits := func(c *call, depth int) bool {
			if depth != 0 {
				return c.depth == depth && !reserved[depth]
			}
			return all() < common && has[c.user] < most[c.user]
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				c := &call{user: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "user"), depth: rapid.IntRange(0, 3).Draw(t, "depth")}
				var ctx context.Context
				ctx, c.cancel = context.WithCancel(context.Background())
				free := fits(c, 0) || c.depth > 0 && fits(c, c.depth)
				var got slot
				if got, c.waits = s.ask(ctx, c.user, c.depth); free != (c.waits == nil) {
					t.Fatalf("a slot is free: %v; the call waits: %v", free, !free)
				}
				if free {
					enter(c, got)
					return
				}
				c.waits.arm(func() { c.rung = true })
				waiting = append(waiting, c)
			},
			"give": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "call")
				c := live[i]
				live = slices.Delete(live, i, i+1)
				if c.slot.depth == 0 {
					has[c.user]--
				} else {
					reserved[c.slot.depth] = false
				}
				s.give(c.slot)
				var next *call
				for _, w := range waiting {
					if fits(w, c.slot.depth) && (next == nil || has[w.user] < has[next.user]) {
						next = w
					}
				}
				if next != nil {
					waiting = slices.DeleteFunc(waiting, func(w *call) bool { return w == next })
					got, err := next.waits.settle(context.Background())
					if err != nil || !next.rung {
						t.Fatalf("who is next got %+v, %v; woken: %v", got, err, next.rung)
					}
					enter(next, got)
				}
			},
			"cancel": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "call")
				waiting[i].cancel()
				if got, _ := waiting[i].waits.settle(context.Background()); got.user != nil {
					t.Fatalf("a cancelled call got %+v", got)
				}
				waiting = slices.Delete(waiting, i, i+1)
			},
			"": func(t *rapid.T) {
				if s.short() != (len(waiting) > 0) {
					t.Fatalf("%d wait, short is %v", len(waiting), s.short())
				}
			},
		})
		for _, c := range waiting {
			if got, _ := c.waits.settle(context.Background()); got.user != nil {
				t.Fatalf("at the end, a call that waits got %+v", got)
			}
			c.cancel()
		}
		for _, c := range live {
			s.give(c.slot)
		}
		if s.common != common || s.taken != [MaxNesting + 1]bool{} || s.queued != 0 || len(s.users) != 0 {
			t.Fatalf("%d of %d are free at the end, %v, %d wait, %d users", s.common, common, s.taken, s.queued, len(s.users))
		}
	})
}
