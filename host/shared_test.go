package host

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
)

// thing counts how often it is closed.
type thing struct{ closed int }

func (x *thing) Close() { x.closed++ }

// TestShares has users come and go while a value is made, and after.
func TestShares(t *testing.T) {
	var (
		s       shares[*thing]
		running sync.WaitGroup
		made    = 0
		begun   = make(chan context.Context)
		finish  = make(chan error)
	)
	create := func(ctx context.Context) (*thing, error) {
		made++
		begun <- ctx
		return &thing{}, <-finish
	}
	type outcome struct {
		x   *share[*thing]
		err error
	}
	use := func(ctx context.Context) chan outcome {
		out := make(chan outcome, 1)
		go func() {
			x, err := s.use(ctx, "key", running.Go, create)
			out <- outcome{x, err}
		}()
		return out
	}
	users := func(n int) { // waits until there are n
		for {
			s.mu.Lock()
			x := s.all["key"]
			ok := x == nil && n == 0 || x != nil && x.users == n
			s.mu.Unlock()
			if ok {
				return
			}
			runtime.Gosched()
		}
	}

	// The first user leaves, and the value is made for the second one.
	ctx, leave := context.WithCancel(t.Context())
	first := use(ctx)
	creating := <-begun
	second := use(t.Context())
	users(2)
	leave()
	if o := <-first; !errors.Is(o.err, context.Canceled) {
		t.Errorf("the first one got %v", o.err)
	}
	if creating.Err() != nil {
		t.Error("making ended with the first user")
	}
	finish <- nil
	got := <-second
	third := <-use(t.Context())
	if got.err != nil || third.x != got.x || made != 1 {
		t.Errorf("%v, made %d times", got.err, made)
	}
	got.x.release()
	if third.x.value.closed != 0 {
		t.Error("closed under its user")
	}
	third.x.release()
	if third.x.value.closed != 1 || len(s.all) != 0 {
		t.Errorf("closed %d times, %d are left", third.x.value.closed, len(s.all))
	}

	// Everybody leaves before it is made.
	ctx, leave = context.WithCancel(t.Context())
	first = use(ctx)
	creating = <-begun
	s.mu.Lock()
	abandoned := s.all["key"]
	s.mu.Unlock()
	leave()
	<-first
	if creating.Err() == nil || len(s.all) != 0 {
		t.Error("making goes on for nobody")
	}
	finish <- nil
	running.Wait()
	if abandoned.value.closed != 1 {
		t.Errorf("closed %d times", abandoned.value.closed)
	}

	// All who wait get the error, and the next one tries again.
	first = use(t.Context())
	<-begun
	second = use(t.Context())
	users(2)
	refused := errors.New("refused")
	finish <- refused
	for _, one := range []chan outcome{first, second} {
		if o := <-one; !errors.Is(o.err, refused) {
			t.Errorf("got %v", o.err)
		}
	}
	first = use(t.Context())
	<-begun
	finish <- nil
	if o := <-first; o.err != nil || made != 4 {
		t.Errorf("%v, made %d times", o.err, made)
	} else {
		o.x.release()
	}
	running.Wait()
}
