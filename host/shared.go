package host

import (
	"context"
	"sync"
)

// shares holds values by key. Those who use a value at the same time share it.
type shares[T interface{ Close() }] struct {
	mu  sync.Mutex
	all map[string]*share[T]
}

// share is a value with its users. The last user closes it.
type share[T interface{ Close() }] struct {
	of    *shares[T]
	key   string
	end   context.CancelFunc // ends the making of the value
	ready chan struct{}      // closed once value or err is set

	value T
	err   error
	users int // guarded by of.mu
}

// use returns the value of a key; its caller releases it. If nobody uses the value, start runs a function that makes it. Making ends with
// the last user who waits for it, not with the context of the first. If it fails, all who wait get the error, and the next user tries again.
func (s *shares[T]) use(ctx context.Context, key string, start func(func()), create func(context.Context) (T, error)) (*share[T], error) {
	s.mu.Lock()
	x := s.all[key]
	if x == nil {
		if s.all == nil {
			s.all = map[string]*share[T]{}
		}
		creating, end := context.WithCancel(context.WithoutCancel(ctx))
		x = &share[T]{of: s, key: key, end: end, ready: make(chan struct{})}
		s.all[key] = x
		start(func() { x.set(create(creating)) })
	}
	x.users++
	s.mu.Unlock()
	select {
	case <-x.ready:
		if x.err == nil {
			return x, nil
		}
		x.release()
		return nil, x.err
	case <-ctx.Done():
		x.release()
		return nil, ctx.Err()
	}
}

func (x *share[T]) set(value T, err error) {
	x.of.mu.Lock()
	x.value, x.err = value, err
	unused := x.users == 0
	if err != nil {
		x.forget()
	}
	close(x.ready)
	x.of.mu.Unlock()
	if unused && err == nil {
		value.Close()
	}
}

func (x *share[T]) release() {
	x.of.mu.Lock()
	x.users--
	last, made := x.users == 0, false
	if last {
		x.end()
		x.forget()
		select {
		case <-x.ready:
			made = x.err == nil
		default: // set closes the value
		}
	}
	x.of.mu.Unlock()
	if made {
		x.value.Close()
	}
}

// forget lets the next user of the key begin anew.
func (x *share[T]) forget() {
	if x.of.all[x.key] == x {
		delete(x.of.all, x.key)
	}
}
