package host

import (
	"context"
	"testing"

	"pgregory.net/rapid"
)

// TestSlots compares slots with a list of who waits: each call gets the first slot that fits it, in turn, and none is lost.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		common := rapid.IntRange(1, 3).Draw(t, "common")
		s := newSlots(common)
		type call struct {
			depth  int
			cancel context.CancelFunc
			got    chan slot
		}
		var waiting, live []*call
		held := map[slot]int{}
		fits := func(depth int) bool {
			return held[commonSlot] < common || depth > 0 && held[slot(depth)] == 0
		}
		enter := func(c *call, got slot) {
			if held[got]++; got == noSlot || got == commonSlot && held[got] > common || got != commonSlot && (held[got] > 1 || got != slot(c.depth)) {
				t.Fatalf("a call at depth %d got slot %d", c.depth, got)
			}
			c.got <- got
			live = append(live, c)
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				ctx, cancel := context.WithCancel(context.Background())
				c := &call{depth: rapid.IntRange(0, 3).Draw(t, "depth"), cancel: cancel, got: make(chan slot, 1)}
				if fits(c.depth) {
					got, err := s.take(ctx, c.depth)
					if err != nil {
						t.Fatal(err)
					}
					enter(c, got)
					return
				}
				before := s.turn
				go func() {
					got, _ := s.take(ctx, c.depth)
					c.got <- got
				}()
				for turn := before; turn == before; {
					s.mu.Lock()
					turn = s.turn
					s.mu.Unlock()
				}
				waiting = append(waiting, c)
			},
			"give": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "call")
				got := <-live[i].got
				live = append(live[:i], live[i+1:]...)
				held[got]--
				s.give(got)
				for i, c := range waiting {
					if got == commonSlot || got == slot(c.depth) {
						waiting = append(waiting[:i], waiting[i+1:]...)
						enter(c, <-c.got)
						break
					}
				}
			},
			"cancel": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "call")
				waiting[i].cancel()
				if got := <-waiting[i].got; got != noSlot {
					t.Fatalf("a cancelled call got slot %d", got)
				}
				waiting = append(waiting[:i], waiting[i+1:]...)
			},
			"": func(t *rapid.T) {
				if s.short() != (len(waiting) > 0) {
					t.Fatalf("%d wait, short is %v", len(waiting), s.short())
				}
			},
		})
		for _, c := range waiting {
			c.cancel()
			<-c.got
		}
		for _, c := range live {
			s.give(<-c.got)
		}
		if s.common != common || s.taken != [MaxNesting + 1]bool{} || s.waiters != 0 {
			t.Fatalf("%d of %d are free at the end, %v, %d wait", s.common, common, s.taken, s.waiters)
		}
	})
}
