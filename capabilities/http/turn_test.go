package http

import (
	"bytes"
	"context"
	"io"
	nethttp "net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/turns"
)

// TestBodiesTakeTurns has one user receive many bodies that take long to decompress, or to look through for a credential. Another user's
// body comes after what one of them does at a time. No body waits for a server, and goroutines share one processor, so a body that gives its
// turn up asks for the next one before another body has had one.
func TestBodiesTakeTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	all := processors
	processors = turns.New(1)
	t.Cleanup(func() { processors = all })
	zeros := make([]byte, 1<<20)
	long := packed["gzip"](zeros)
	transport := stubs(func(r *nethttp.Request) (*nethttp.Response, error) {
		response := &nethttp.Response{StatusCode: nethttp.StatusOK, Header: nethttp.Header{}, Request: r, Body: io.NopCloser(bytes.NewReader(zeros)), ContentLength: -1}
		if r.URL.Path == "/packed" {
			response.Header.Set("Content-Encoding", "gzip")
			response.Body = io.NopCloser(bytes.NewReader(long))
		}
		return response, nil
	})
	const many = 16
	for path, rule := range map[string]Rule{"/packed": {Host: "a.example"}, "/masked": {Host: "a.example", Credential: "a-token"}} {
		t.Run(path, func(t *testing.T) {
			var mu sync.Mutex
			var order []string // whose turns were charged
			grant, err := New(Options{Rules: []Rule{rule}, Credentials: vault{"a-token": "a secret that nobody echoes"}, Transport: transport})
			if err != nil {
				t.Fatal(err)
			}
			begin := func(user string) *Exchange {
				ctx := turns.For(t.Context(), user)
				opened, err := grant.Open(abi.WithWork(ctx, func(took time.Duration) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, user)
					return nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				e, err := opened.(*Client).Start(ctx, Request{Method: "GET", URL: "https://a.example" + path})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = e.Close() })
				return e
			}
			if err := processors.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
			var all []*Exchange
			for range many {
				all = append(all, begin("busy"))
			}
			waits(t, many)
			all = append(all, begin("other"))
			waits(t, many+1)
			mu.Lock()
			order = nil
			mu.Unlock()
			processors.Give()
			for _, e := range all {
				if text, err := e.Text(t.Context(), 2<<20); err != nil || text != string(zeros) {
					t.Fatal(len(text), err)
				}
			}
			last := 0 // of what the other one did
			for i, user := range slices.Backward(order) {
				if user == "other" {
					last = i
					break
				}
			}
			busy := 0
			for _, user := range order[:last] {
				if user == "busy" {
					busy++
				}
			}
			// Unless they take turns, the other body ends beside the 16, and what they did before is 16 times as much.
			if other := last + 1 - busy; busy > 2*other {
				t.Errorf("the busy user had %d turns before the last one of %d of the other user", busy, other)
			}
		})
	}
}

// waits returns when n bodies wait for their turn.
func waits(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for processors.Waiting() < n {
		if ctx.Err() != nil {
			t.Fatalf("%d bodies wait, not %d", processors.Waiting(), n)
		}
		runtime.Gosched()
	}
}
