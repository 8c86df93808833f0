package host

import "sync"

// users counts the users of something that is to be freed.
type users struct {
	mu     sync.Mutex
	closed bool
	count  sync.WaitGroup
}

// begin adds a user, which calls end when it is done. It fails once close was called.
func (u *users) begin() (end func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, ErrClosed
	}
	u.count.Add(1)
	return u.count.Done, nil
}

// close prevents further users from beginning. Present users end later; wait for count.
func (u *users) close() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
}
