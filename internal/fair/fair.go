// Package fair divides what a process has of something among its users, so that none of them can have all.
package fair

import "sync"

// Budget is an amount of something, such as bytes of memory. It is safe for concurrent use.
//
// A user gets more only if as much remains free as the user then has. So one user has at most half, the next one at most half of what
// remains, and so on, until one is left. What nobody names a user for has no share: it can be all.
type Budget struct {
	mu    sync.Mutex
	free  int64
	users map[string]int64 // what each has
}

// NewBudget returns a budget of n.
func NewBudget(n int64) *Budget { return &Budget{free: n, users: map[string]int64{}} }

// Take takes n for a user, or nothing and reports false.
func (b *Budget) Take(user string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := b.free - n; left < 0 || n > 0 && user != "" && b.users[user]+n > left {
		return false
	}
	b.add(user, n)
	return true
}

// Give gives n back that was taken for a user.
func (b *Budget) Give(user string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(user, -n)
}

func (b *Budget) add(user string, n int64) {
	b.free -= n
	if user == "" {
		return
	}
	if b.users[user] += n; b.users[user] == 0 {
		delete(b.users, user)
	}
}

// Free is how much is free.
func (b *Budget) Free() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free
}

// Uses counts which things each user uses, any number of times at once, and how large these are together. The zero value has no uses. It is
// not safe for concurrent use.
type Uses[Thing comparable] struct{ users map[string]*use[Thing] }

type use[Thing comparable] struct {
	size  int64
	times map[Thing]int
}

// Begin counts a use of a thing of this size. It reports false, and counts nothing, if the user uses other things already, and all of them
// would be larger than most.
func (u *Uses[Thing]) Begin(user string, thing Thing, size, most int64) bool {
	own := u.users[user]
	if own == nil {
		own = &use[Thing]{times: map[Thing]int{}}
	}
	if own.times[thing] == 0 {
		if len(own.times) > 0 && own.size+size > most {
			return false
		}
		own.size += size
	}
	own.times[thing]++
	if u.users == nil {
		u.users = map[string]*use[Thing]{}
	}
	u.users[user] = own
	return true
}

// End ends a use that Begin counted, of the same size.
func (u *Uses[Thing]) End(user string, thing Thing, size int64) {
	own := u.users[user]
	if own.times[thing]--; own.times[thing] > 0 {
		return
	}
	own.size -= size
	if delete(own.times, thing); len(own.times) == 0 {
		delete(u.users, user)
	}
}

// Size is how large the things are that a user uses.
func (u *Uses[Thing]) Size(user string) int64 {
	if own := u.users[user]; own != nil {
		return own.size
	}
	return 0
}
