package turns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// order takes the only place for each user in turn, gives it back as often, and returns who had it.
func order(t *testing.T, users string) string {
	var had strings.Builder
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		_ = p.Take(For(t.Context(), string(users[0])))
		had.WriteByte(users[0])
		var mu sync.Mutex
		for _, user := range users[1:] {
			go func() {
				if p.Take(For(t.Context(), string(user))) == nil {
					mu.Lock()
					defer mu.Unlock()
					had.WriteRune(user)
				}
			}()
			synctest.Wait() // it asks before the next one does
		}
		for range users {
			p.Give()
			synctest.Wait()
		}
	})
	return had.String()
}

func TestOrder(t *testing.T) {
	for asked, want := range map[string]string{
		"aaaa":       "aaaa",
		"abc":        "abc",
		"aaaab":      "abaaa", // b waits for one
		"aaaabb":     "ababaa",
		"aaaabbbccd": "abcdabcaba",
		"abab":       "abab",
	} {
		if got := order(t, asked); got != want {
			t.Errorf("%s: got %s, want %s", asked, got, want)
		}
	}
}

// TestGivenUp has requests end while they wait and while they get their place: no place is lost.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		cause := errors.New("enough")
		over, end := context.WithCancelCause(t.Context())
		end(cause)
		if err := p.Take(over); !errors.Is(err, cause) {
			t.Fatal(err)
		}
		if err := p.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			ctx, end := context.WithCancelCause(For(t.Context(), "a"))
			ended := make(chan error, 1)
			go func() { ended <- p.Take(ctx) }()
			synctest.Wait()
			go end(cause)
			p.Give()
			if err := <-ended; err == nil {
				p.Give()
			} else if !errors.Is(err, cause) {
				t.Fatal(err)
			}
			if err := p.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p.Give()
		if p.free != 1 || len(p.waiting) > 0 || len(p.rounds) > 0 {
			t.Errorf("%+v", p)
		}
	})
}

// TestManyAtOnce has many users take and give: never more than there are, and nothing is kept of them.
func TestManyAtOnce(t *testing.T) {
	p := New(3)
	var under atomic.Int32
	var wait sync.WaitGroup
	for i := range 200 {
		wait.Go(func() {
			for j := range 50 {
				ctx, end := context.WithCancel(For(t.Context(), fmt.Sprint((i+j)%7)))
				if rand.N(4) == 0 {
					go end()
				}
				if p.Take(ctx) == nil {
					if under.Add(1) > 3 {
						t.Error("more than three")
					}
					under.Add(-1)
					p.Give()
				}
				end()
			}
		})
	}
	wait.Wait()
	if p.free != 3 || len(p.waiting) > 0 || len(p.rounds) > 0 {
		t.Errorf("%+v", p)
	}
}

// TestSizes has users take several places at a time, and some of them soon: each user gets as much, and no request is passed over for
// smaller ones.
func TestSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(6)
		if !p.TryTake("a", 6) || p.TryTake("b", 1) {
			t.Fatal("there are six places")
		}
		var mu sync.Mutex
		var had strings.Builder
		for _, r := range []struct {
			name, user string
			n          int64
			soon       bool
		}{{"A", "a", 6, false}, {"B", "a", 6, false}, {"C", "b", 4, false}, {"D", "b", 4, false}, {"E", "b", 4, true}, {"F", "a", 6, true}} {
			take := p.TakeFor
			if r.soon {
				take = p.TakeSoon
			}
			go func() {
				if take(t.Context(), r.user, r.n) == nil {
					mu.Lock()
					had.WriteString(r.name)
					mu.Unlock()
					if r.n < 6 {
						p.GiveBack(r.n) // one after the other
					}
				}
			}()
			synctest.Wait()
		}
		for range 4 {
			p.GiveBack(6)
			synctest.Wait()
		}
		// a had all, so b is next, as often as it takes to have as much. What is soon comes before what else a user asked for.
		if got, want := had.String(), "ECFDAB"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
