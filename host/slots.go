package host

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// turn is how long a call has its slot, while others queue, before it gives the slot back at its next wait, however short that is.
const turn = 50 * time.Millisecond

// slots are the places of a host for instances. All calls share the common ones. Besides, there is one for each depth of inner calls: a
// call at this depth gets it when it can get no common one. So calls cannot come to wait for each other: the deepest ones call nothing,
// so one of them continues and ends, then one of those that wait for it, and so on.
//
// A user has at most three quarters of the common slots, and one that is free goes to the user who has the fewest.
type slots struct {
	most int // common ones of a user

	mu     sync.Mutex
	common int                  // how many are free
	taken  [MaxNesting + 1]bool // the one of each depth; [0] is not used
	users  map[string]*slotUser
	turn   uint64
	queued int // calls that wait
}

// slotUser is a user who has or waits for slots.
type slotUser struct {
	name    string
	has     int                // common slots
	waiting map[int]*list.List // of *waiter, by depth; the first came first
}

// waiter is a call that waits for a slot.
type waiter struct {
	alarm
	turn  uint64
	slots *slots
	user  *slotUser
	depth int
	at    *list.Element
	got   slot // none while it waits
}

// slot is a slot of a user. The zero slot is none.
type slot struct {
	depth int // that it is kept for, or 0: a common one
	user  *slotUser
}

func newSlots(common int) *slots {
	return &slots{common: common, most: common - common/4, users: map[string]*slotUser{}}
}

// short reports whether calls wait for a slot.
func (s *slots) short() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued > 0
}

// user returns a user. The caller holds mu.
func (s *slots) user(name string) *slotUser {
	u := s.users[name]
	if u == nil {
		u = &slotUser{name: name, waiting: map[int]*list.List{}}
		s.users[name] = u
	}
	return u
}

// mayShare reports whether a user may have one more common slot. Calls without a user may have all.
func (s *slots) mayShare(u *slotUser) bool { return u.name == "" || u.has < s.most }

// ask takes a slot for a user's call at this depth, or queues for one. Then the waiter's alarm rings when it has one or ctx ends, and
// settle must follow.
func (s *slots) ask(ctx context.Context, user string, depth int) (slot, *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.user(user)
	switch {
	case s.common > 0 && s.mayShare(u):
		s.common--
		u.has++
		return slot{user: u}, nil
	case depth > 0 && !s.taken[depth]:
		s.taken[depth] = true
		return slot{depth, u}, nil
	}
	if u.waiting[depth] == nil {
		u.waiting[depth] = list.New()
	}
	s.turn++
	w := &waiter{turn: s.turn, slots: s, user: u, depth: depth}
	w.at = u.waiting[depth].PushBack(w)
	s.queued++
	w.stops = []func() bool{context.AfterFunc(ctx, w.ring)}
	return slot{}, w
}

// settle ends a wait, after its alarm.
func (w *waiter) settle(ctx context.Context) (slot, error) {
	w.end()
	s := w.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.got.user == nil {
		s.remove(w.user, w.depth, w.at)
		return slot{}, context.Cause(ctx)
	}
	return w.got, nil
}

// give gives a slot back.
func (s *slots) give(got slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(got)
}

// pass gives a slot to the user with the fewest who waits for such a one, and there to the call that has waited longest.
func (s *slots) pass(got slot) {
	if got.depth == 0 {
		got.user.has--
	}
	s.forget(got.user)
	var to *slotUser
	var depth int
	var first *list.Element
	for _, u := range s.users {
		if got.depth == 0 && !s.mayShare(u) {
			continue
		}
		for d, l := range u.waiting {
			if got.depth != 0 && got.depth != d {
				continue
			}
			if e := l.Front(); to == nil || u.has < to.has || u.has == to.has && e.Value.(*waiter).turn < first.Value.(*waiter).turn {
				to, depth, first = u, d, e
			}
		}
	}
	switch {
	case to != nil:
		if got.depth == 0 {
			to.has++
		}
		s.remove(to, depth, first)
		w := first.Value.(*waiter)
		w.got = slot{got.depth, to}
		w.ring()
	case got.depth == 0:
		s.common++
	default:
		s.taken[got.depth] = false
	}
}

// remove takes a call out of those that wait.
func (s *slots) remove(u *slotUser, depth int, at *list.Element) {
	l := u.waiting[depth]
	l.Remove(at)
	s.queued--
	if l.Len() == 0 {
		delete(u.waiting, depth)
	}
	s.forget(u)
}

// forget drops a user who has and wants nothing.
func (s *slots) forget(u *slotUser) {
	if u.has == 0 && len(u.waiting) == 0 && s.users[u.name] == u {
		delete(s.users, u.name)
	}
}
