package turns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestKeptIdleAgain has a holder that is told to end begin, and end, some work before it answers. It is idle then.
func TestKeptIdleAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKept(1)
		s, err := k.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Idle(func() bool {
			s.Busy()
			s.Idle(func() bool { s.Give(); return true })
			return false
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := k.Take(ctx); err != nil {
			t.Errorf("the place of an idle holder: %v", err)
		}
	})
}

// TestKept has users keep idle places until others want them.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKept(4)
		greedy, other := For(t.Context(), "greedy"), For(t.Context(), "other")
		var ended []string
		take := func(ctx context.Context, name string) *Seat {
			t.Helper()
			s, err := k.Take(ctx)
			if err != nil {
				t.Fatal(err)
			}
			s.Idle(func() bool {
				ended = append(ended, name)
				s.Give()
				return true
			})
			return s
		}
		// The other user's place is idle for the longest time, and the greedy user has the most.
		take(other, "other 1")
		first := take(greedy, "greedy 1")
		take(greedy, "greedy 2")
		take(greedy, "greedy 3")
		if first.Busy(); len(ended) > 0 {
			t.Fatalf("nobody waits, and these ended: %q", ended)
		}
		take(other, "other 2") // greedy 1 is at work; afterwards, both have two
		take(other, "other 3")
		if want := []string{"greedy 2", "other 1"}; !slices.Equal(ended, want) {
			t.Errorf("ended: %q, want %q", ended, want)
		}
		// One that is at work again when it should end stays.
		for len(k.idle) > 0 {
			k.idle[0].Busy()
		}
		first.Idle(func() bool { return false })
		ctx, cancel := context.WithCancelCause(other)
		enough := errors.New("enough")
		done := make(chan error)
		go func() {
			_, err := k.Take(ctx)
			done <- err
		}()
		synctest.Wait()
		if k.ending != 0 || first.state != seatBusy {
			t.Errorf("%+v", k)
		}
		cancel(enough)
		if err := <-done; !errors.Is(err, enough) || k.waiting != 0 {
			t.Errorf("%v, %d wait", err, k.waiting)
		}
		// A place that becomes idle while somebody waits ends at once.
		got := make(chan *Seat)
		go func() {
			s, err := k.Take(other)
			if err != nil {
				t.Error(err)
			}
			got <- s
		}()
		synctest.Wait()
		first.Idle(func() bool { first.Give(); return true })
		s := <-got
		s.Give()
		s.Give()
		if first.Busy() {
			t.Error("a place that was given back is busy")
		}
		var none *Seat
		none.Idle(nil)
		none.Give()
		if !none.Busy() {
			t.Error("nothing is told to end")
		}
	})
}

// TestKeptCounts has users do anything in any order: never are more places taken than there are, each that waits gets one as long as any
// holder is idle, and in the end all are free.
func TestKeptCounts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 3*4-1), 1, 60).Draw(r, "steps")
		places := rapid.IntRange(1, 3).Draw(r, "places")
		synctest.Test(t, func(t *testing.T) {
			k := NewKept(places)
			var mu sync.Mutex
			var seats []*Seat
			var wait sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			end := func(s *Seat) func() bool {
				return func() bool {
					mu.Lock()
					seats = slices.DeleteFunc(seats, func(o *Seat) bool { return o == s })
					mu.Unlock()
					s.Give()
					return true
				}
			}
			for _, step := range steps {
				user, n := fmt.Sprint("user", step%3), step/3
				mu.Lock()
				var s *Seat
				if len(seats) > 0 {
					s = seats[step%len(seats)]
				}
				mu.Unlock()
				switch {
				case n == 0:
					wait.Go(func() {
						s, err := k.Take(For(ctx, user))
						if err != nil {
							return
						}
						mu.Lock()
						defer mu.Unlock()
						if seats = append(seats, s); len(seats) > places {
							t.Errorf("%d places are taken", len(seats))
						}
					})
				case s == nil:
				case n == 1:
					s.Idle(end(s))
				case n == 2:
					s.Busy()
				default:
					end(s)()
				}
				synctest.Wait()
				k.mu.Lock()
				if k.waiting > 0 && len(k.idle) > 0 || k.ending != 0 || k.free < 0 {
					t.Errorf("%d wait, %d are idle, %d end, %d are free", k.waiting, len(k.idle), k.ending, k.free)
				}
				k.mu.Unlock()
			}
			cancel()
			wait.Wait()
			for _, s := range slices.Clone(seats) {
				s.Give()
			}
			if k.free != places || len(k.held) != 0 || k.waiting != 0 || len(k.idle) != 0 {
				t.Errorf("in the end: %+v", k)
			}
		})
	})
}
