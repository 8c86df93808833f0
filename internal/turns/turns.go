// Package turns shares a few places fairly among several users. A user who
// requests hundreds of places makes every other user wait for at most one of them.
package turns

import (
	"context"
	"slices"
	"sync"
)

type userKey struct{}

// For returns a context in which places are taken for a user, such as "agent:claude". Contexts without a user share one anonymous
// user.
func For(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// User returns the user of ctx, or "".
func User(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}

// Places hands out a fixed number of places and takes them back. It is safe for concurrent use.
//
// Each request has a round: the first of a user is in the current round, and each further one is in a round of its own. Places go to
// the earliest round, and within a round in the order of the requests (start-time fair queueing).
type Places struct {
	mu      sync.Mutex
	free    int
	round   int            // the newest round that got a place
	last    map[string]int // the round of each user's newest request, if it is not before round
	waiting []*request     // in the order in which they came
}

type request struct {
	round int
	taken chan struct{} // closed once the request has its place
}

// New returns n places.
func New(n int) *Places { return &Places{free: n, last: map[string]int{}} }

// Take waits for a place. If ctx ends first, Take returns its cause.
func (p *Places) Take(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := p.ask(ctx)
	select {
	case <-r.taken:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, r); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else { // it has just got its place
		p.free++
		p.next()
	}
	return context.Cause(ctx)
}

func (p *Places) ask(ctx context.Context) *request {
	user := User(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &request{round: p.round, taken: make(chan struct{})}
	if last, ok := p.last[user]; ok {
		r.round = max(r.round, last+1)
	}
	p.last[user] = r.round
	p.waiting = append(p.waiting, r)
	p.next()
	return r
}

// Give gives a place back.
func (p *Places) Give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	p.next()
	if len(p.waiting) == 0 {
		clear(p.last) // all users start equal again
	}
}

// Waiting returns how many requests wait for a place.
func (p *Places) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// next gives the free places to the requests whose turn it is.
func (p *Places) next() {
	for ; p.free > 0 && len(p.waiting) > 0; p.free-- {
		first := 0
		for i, r := range p.waiting {
			if r.round < p.waiting[first].round {
				first = i
			}
		}
		r := p.waiting[first]
		p.waiting = slices.Delete(p.waiting, first, first+1)
		close(r.taken)
		if r.round <= p.round {
			continue
		}
		p.round = r.round
		for user, last := range p.last {
			if last < p.round { // like a new user
				delete(p.last, user)
			}
		}
	}
}
