package http

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/fair"
)

// An exchange in progress takes a connection with its descriptor, and some 100 KiB. So this many of all calls of the process are in progress,
// beside the first of each call, and users divide them. Others wait, up to maxWaiting of each user, for some 6 KiB each.
const (
	maxExchanges = 1024
	maxWaiting   = 2048
)

var exchanges = newCrowd(maxExchanges, maxWaiting)

// crowd divides places among the users of the process. A place goes to the user with the fewest, and there to who came first. It is safe for
// concurrent use.
type crowd struct {
	mostWaiting int
	free        *fair.Budget

	mu    sync.Mutex
	users map[string]*member // those with a place, or waiting for one
}

// member is a user.
type member struct {
	places  int
	waiting *list.List // of *seat
}

// seat is the place of an exchange, or its wait for one.
type seat struct {
	crowd  *crowd
	user   string
	budget *budget
	own    bool          // the place is the call's own
	taken  chan struct{} // closed once it has a place
	at     *list.Element // nil unless it waits
}

func newCrowd(most, mostWaiting int) *crowd {
	return &crowd{mostWaiting: mostWaiting, free: fair.NewBudget(int64(most)), users: map[string]*member{}}
}

// ask asks for a place for an exchange of a user's call. It fails if too many wait.
func (c *crowd) ask(user string, b *budget) (*seat, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &seat{crowd: c, user: user, budget: b, taken: make(chan struct{})}
	m := c.users[s.user]
	if m == nil {
		m = &member{waiting: list.New()}
		c.users[s.user] = m
	}
	switch {
	case !b.busy:
		c.seat(s, true)
	case c.free.Take(s.user, 1):
		c.seat(s, false)
	case m.waiting.Len() >= c.mostWaiting:
		return nil, abi.Errorf(abi.CodeExhausted, "http exchanges that wait until others of this user end: %d", c.mostWaiting)
	default:
		s.at = m.waiting.PushBack(s)
	}
	c.forget(s.user)
	return s, nil
}

// seat gives a place, which is taken, to s, which does not wait any more.
func (c *crowd) seat(s *seat, own bool) {
	m := c.users[s.user]
	if s.at != nil {
		m.waiting.Remove(s.at)
		s.at = nil
	}
	s.own = own
	if own {
		s.budget.busy = true
	} else {
		m.places++
	}
	close(s.taken)
}

// wait waits for the place. If ctx ends first, it returns its cause. Either way, the caller leaves afterwards.
func (s *seat) wait(ctx context.Context) error {
	select {
	case <-s.taken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives the place back, or gives up waiting.
func (s *seat) leave() {
	c := s.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.users[s.user]
	switch {
	case s.at != nil:
		m.waiting.Remove(s.at)
		s.at = nil
	case s.own:
		s.budget.busy = false
		c.pass(m, s.budget)
	default:
		m.places--
		c.free.Give(s.user, 1)
		for c.serve() {
		}
	}
	c.forget(s.user)
}

// pass gives a call's own place, which is free, to an exchange of the call that waits.
func (c *crowd) pass(m *member, b *budget) {
	if m == nil {
		return
	}
	for e := m.waiting.Front(); e != nil; e = e.Next() {
		if next := e.Value.(*seat); next.budget == b {
			c.seat(next, true)
			return
		}
	}
}

// serve gives a free place to the user with the fewest of those that wait and may have one more. It reports whether there was one.
func (c *crowd) serve() (served bool) {
	waiting := make([]string, 0, len(c.users))
	for user, m := range c.users {
		if m.waiting.Len() > 0 {
			waiting = append(waiting, user)
		}
	}
	slices.SortFunc(waiting, func(a, b string) int { return c.users[a].places - c.users[b].places })
	for _, user := range waiting {
		if c.free.Take(user, 1) {
			c.seat(c.users[user].waiting.Front().Value.(*seat), false)
			return true
		}
	}
	return false
}

// forget forgets a user who has nothing here.
func (c *crowd) forget(user string) {
	if m := c.users[user]; m != nil && m.places == 0 && m.waiting.Len() == 0 {
		delete(c.users, user)
	}
}
