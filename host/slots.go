package host

import (
	"container/list"
	"context"
	"sync"
)

// slots are the places of a host for instances. All calls share the common ones. Besides, there is one for each depth of inner calls: a
// call at this depth gets it when no common one is free. So calls cannot come to wait for each other: the deepest ones call nothing, so
// one of them continues and ends, then one of those that wait for it, and so on.
type slots struct {
	mu      sync.Mutex
	common  int                        // how many are free
	taken   [MaxNesting + 1]bool       // the one of each depth; [0] is not used
	waiting [MaxNesting + 1]*list.List // of *waiter, by depth; the first came first
	turn    uint64
	waiters int
}

type waiter struct {
	turn uint64
	got  chan slot
}

// slot is the depth that a slot is kept for, or one of these.
type slot int

const (
	noSlot     slot = -1
	commonSlot slot = 0
)

func newSlots(common int) *slots {
	s := &slots{common: common}
	for depth := range s.waiting {
		s.waiting[depth] = list.New()
	}
	return s
}

// short reports whether calls wait for a slot.
func (s *slots) short() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiters > 0
}

// take waits for a slot for a call at this depth. Those that wait get theirs in turn.
func (s *slots) take(ctx context.Context, depth int) (slot, error) {
	s.mu.Lock()
	switch {
	case s.common > 0:
		s.common--
		s.mu.Unlock()
		return commonSlot, nil
	case depth > 0 && !s.taken[depth]:
		s.taken[depth] = true
		s.mu.Unlock()
		return slot(depth), nil
	}
	s.turn++
	w := &waiter{turn: s.turn, got: make(chan slot, 1)}
	at := s.waiting[depth].PushBack(w)
	s.waiters++
	s.mu.Unlock()
	select {
	case got := <-w.got:
		return got, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case got := <-w.got: // just now
		s.pass(got)
	default:
		s.waiting[depth].Remove(at)
		s.waiters--
	}
	return noSlot, context.Cause(ctx)
}

// give gives a slot back.
func (s *slots) give(got slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(got)
}

// pass gives a slot to the call that has waited longest for such a one.
func (s *slots) pass(got slot) {
	next := s.waiting[got]
	if got == commonSlot {
		for _, l := range s.waiting {
			if next.Len() == 0 || l.Len() > 0 && l.Front().Value.(*waiter).turn < next.Front().Value.(*waiter).turn {
				next = l
			}
		}
	}
	switch {
	case next.Len() > 0:
		next.Remove(next.Front()).(*waiter).got <- got
		s.waiters--
	case got == commonSlot:
		s.common++
	default:
		s.taken[got] = false
	}
}
