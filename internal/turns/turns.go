// Package turns shares a few places fairly among several users. A user who
// requests hundreds of places makes every other user wait for at most one of them, or for as many as the other user requests at once.
package turns

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/gofrs/flock"
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
// Each user is in a round: a new one in the current round, and each request moves its user on by as many rounds as it has places. Places
// go to the user in the earliest round, and within a round to the one who has waited longest (start-time fair queueing).
type Places struct {
	mu      sync.Mutex
	free    int64
	round   int64            // the newest round in which a user got places
	rounds  map[string]int64 // of the users that do not wait, if it is after round
	waiting []*user          // the one that came or was served last is last

	name   string         // of places that processes share
	size   int            // how many there are of these
	shared []*flock.Flock // the ones that this process has
}

// user is a user with requests that wait.
type user struct {
	name       string
	round      int64
	soon, rest *list.List // of *request, in the order in which they came
}

func (u *user) waits() int { return u.soon.Len() + u.rest.Len() }

type request struct {
	n     int64
	taken chan struct{} // closed once the request has its places
	of    *list.List
	at    *list.Element // in of; nil once it has its places
}

// New returns n places.
func New(n int) *Places { return &Places{free: int64(n), rounds: map[string]int64{}} }

// Take waits for a place, for the user of ctx. If ctx ends first, Take returns its cause. Places that processes share can fail for other
// reasons.
func (p *Places) Take(ctx context.Context) error {
	if err := p.TakeFor(ctx, User(ctx), 1); err != nil {
		return err
	}
	err := p.share(ctx)
	if err != nil {
		p.GiveBack(1)
	}
	return err
}

// TakeFor waits for n places, at most as many as there are, for a user. Processes do not share them.
func (p *Places) TakeFor(ctx context.Context, user string, n int64) error {
	return p.take(ctx, user, n, false)
}

// TakeSoon is like TakeFor. Among the user's requests, it comes before those of Take and TakeFor.
func (p *Places) TakeSoon(ctx context.Context, user string, n int64) error {
	return p.take(ctx, user, n, true)
}

// TryTake takes n places for a user if they are free and nobody waits.
func (p *Places) TryTake(user string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 || n > p.free {
		return false
	}
	p.free -= n
	p.rounds[user] = max(p.round, p.rounds[user]) + n
	return true
}

func (p *Places) take(ctx context.Context, name string, n int64, soon bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := &request{n: n, taken: make(chan struct{})}
	p.ask(name, r, soon)
	select {
	case <-r.taken:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.withdraw(name, r) {
		n = 0
	} // else it has just got its places
	p.give(n)
	return context.Cause(ctx)
}

func (p *Places) ask(name string, r *request, soon bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.waiting, func(u *user) bool { return u.name == name })
	if i < 0 {
		i = len(p.waiting)
		p.waiting = append(p.waiting, &user{name, max(p.round, p.rounds[name]), list.New(), list.New()})
		delete(p.rounds, name)
	}
	r.of = p.waiting[i].rest
	if soon {
		r.of = p.waiting[i].soon
	}
	r.at = r.of.PushBack(r)
	p.give(0)
}

// withdraw takes back a request. It reports whether the request was waiting.
func (p *Places) withdraw(name string, r *request) bool {
	if r.at == nil {
		return false
	}
	r.of.Remove(r.at)
	p.rest(slices.IndexFunc(p.waiting, func(u *user) bool { return u.name == name }))
	return true
}

// rest takes a user out of those that wait, if it has no more requests.
func (p *Places) rest(i int) {
	u := p.waiting[i]
	if u.waits() > 0 {
		return
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	if u.round > p.round {
		p.rounds[u.name] = u.round
	}
}

// Give gives a place back.
func (p *Places) Give() {
	p.mu.Lock()
	if last := len(p.shared) - 1; last >= 0 {
		_ = p.shared[last].Close() // its lock ends with the file
		p.shared = p.shared[:last]
	}
	p.mu.Unlock()
	p.GiveBack(1)
}

// GiveBack gives n places back, of those that processes do not share.
func (p *Places) GiveBack(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.give(n)
	if len(p.waiting) == 0 {
		clear(p.rounds) // all users start equal again
	}
}

// Waiting returns how many requests wait for a place.
func (p *Places) Waiting() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.waiting {
		n += u.waits()
	}
	return n
}

// give frees n places, and gives the free ones to the users whose turn it is.
func (p *Places) give(n int64) {
	for p.free += n; len(p.waiting) > 0; {
		at := 0
		for i, u := range p.waiting {
			if u.round < p.waiting[at].round {
				at = i
			}
		}
		u := p.waiting[at]
		first := u.soon.Front()
		if first == nil {
			first = u.rest.Front()
		}
		r := first.Value.(*request)
		if r.n > p.free {
			return
		}
		r.of.Remove(first)
		r.at = nil
		p.free -= r.n
		close(r.taken)
		if u.round > p.round {
			p.round = u.round
			for name, round := range p.rounds {
				if round <= p.round { // like a new user
					delete(p.rounds, name)
				}
			}
		}
		u.round += r.n
		p.waiting = append(slices.Delete(p.waiting, at, at+1), u)
		p.rest(len(p.waiting) - 1)
	}
}
