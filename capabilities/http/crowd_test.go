package http

import (
	"context"
	"io"
	nethttp "net/http"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/turns"
)

// TestExchangesOfAllCalls has a user with several calls send to a server that never answers. Few of the requests reach the server at once, and
// the requests of another user do not wait for them.
func TestExchangesOfAllCalls(t *testing.T) {
	before := exchanges
	exchanges = newCrowd(4, 8)
	t.Cleanup(func() { exchanges = before })
	arrived := make(chan struct{}, 100)
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.URL.Path == "/quick" {
			_, _ = io.WriteString(w, "ok")
			return
		}
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	grant, err := New(Options{Rules: []Rule{good(at)}, Resolver: resolver(map[string]string{"good.example": "127.0.0.1"}), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(grant.CloseIdleConnections)
	call := func(user string) (*Client, context.Context) {
		t.Helper()
		ctx := turns.For(t.Context(), user)
		opened, err := grant.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return opened.(*Client), ctx
	}
	var open []*Exchange
	var refused error
	for range 3 {
		c, ctx := call("agent:a")
		for range 5 {
			e, err := c.Start(ctx, get(at, "/slow"))
			if err != nil {
				refused = err
				continue
			}
			open = append(open, e)
		}
	}
	// Each call has one, and the user half of four besides. Eight wait.
	if len(open) != 3+2+8 {
		t.Errorf("%d exchanges began", len(open))
	}
	wantError(t, refused, abi.ErrExhausted, "http exchanges that wait")
	for range 3 + 2 {
		<-arrived
	}
	c, ctx := call("agent:b")
	var quick []*Exchange
	for range 3 {
		e, err := c.Start(ctx, get(at, "/quick"))
		if err != nil {
			t.Fatal(err)
		}
		quick = append(quick, e)
	}
	for _, e := range quick {
		if _, err := e.Head(ctx); err != nil {
			t.Fatal(err)
		}
		if text, err := e.Text(ctx, 10); err != nil || text != "ok" {
			t.Errorf("another user: %q, %v", text, err)
		}
		_ = e.Close()
	}
	if len(arrived) > 0 {
		t.Errorf("%d more of the first user's requests arrived", len(arrived))
	}
	_ = open[0].Close() // a place of a call, which passes on to one of the same call
	<-arrived
	for _, e := range open[1:] {
		_ = e.Close()
	}
	for _, e := range open {
		<-e.done.Done()
	}
	exchanges.mu.Lock()
	defer exchanges.mu.Unlock()
	if exchanges.free.Free() != 4 || len(exchanges.users) > 0 {
		t.Errorf("%d places are free after the end, and there are %d users", exchanges.free.Free(), len(exchanges.users))
	}
}

// TestCrowd asks for places and gives them back in any order. Nobody waits for a place that is free, and nobody has too many.
func TestCrowd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(6, 5)
		calls := map[string][]*budget{"": {{}, {}}, "a": {{}, {}}, "b": {{}}}
		var seats []*seat
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if len(seats) > 0 && rapid.Bool().Draw(t, "leave") {
				i := rapid.IntRange(0, len(seats)-1).Draw(t, "which")
				seats[i].leave()
				seats = slices.Delete(seats, i, i+1)
			} else {
				user := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "user")
				b := rapid.SampledFrom(calls[user]).Draw(t, "call")
				if s, err := c.ask(user, b); err == nil {
					seats = append(seats, s)
				}
			}
			places, waiting, own := map[string]int{}, map[string]int{}, map[*budget]int{}
			all := 0
			for _, s := range seats {
				switch {
				case s.at != nil:
					waiting[s.user]++
				case s.own:
					own[s.budget]++
				default:
					places[s.user]++
					all++
				}
			}
			for user, n := range waiting {
				if n > 5 || places[user]+1 <= 6-all-1 || user == "" && all < 6 {
					t.Fatalf("%d of %q wait, which has %d of %d places", n, user, places[user], all)
				}
			}
			for _, s := range seats {
				if s.at != nil && own[s.budget] == 0 {
					t.Fatalf("an exchange waits beside its call's own place")
				}
			}
			if all > 6 || places["a"] > 3 || places["b"] > 3 {
				t.Fatalf("%v of 6 places", places)
			}
			for b, n := range own {
				if n > 1 || !b.busy {
					t.Fatalf("a call has %d places of its own", n)
				}
			}
		}
		for _, s := range seats {
			s.leave()
		}
		if c.free.Free() != 6 || len(c.users) > 0 {
			t.Fatalf("%d places are free after the end, and there are %d users", c.free.Free(), len(c.users))
		}
	})
}
