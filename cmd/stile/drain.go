package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// gate lets requests through until it drains. The zero value is open.
type gate struct {
	mu      sync.Mutex
	closed  bool
	count   int
	drained chan struct{} // closed when no request is left after closed was set
}

// ending is the answer to a request that arrives too late.
const ending = "this server is shutting down; connect again later"

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.count++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count--; g.closed && g.count == 0 {
		close(g.drained)
	}
}

func (g *gate) running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

// drain lets no more requests through, and waits at most for most until running ones finish. Then it calls end to end the rest, and
// waits until their senders have been told, at most a second. Call it once.
func (g *gate) drain(most time.Duration, end func()) {
	g.mu.Lock()
	g.closed, g.drained = true, make(chan struct{})
	if g.count == 0 {
		close(g.drained)
	}
	g.mu.Unlock()
	if !g.wait(most) {
		end()
		g.wait(time.Second)
	}
}

// wait waits until no request is under way, or for most.
func (g *gate) wait(most time.Duration) (out bool) {
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	select {
	case <-g.drained:
		return true
	case <-timeout.C:
		return false
	}
}

// handler makes POST requests pass the gate. A stream of notifications does not pass it, because it stays open as long as its
// session.
func (g *gate) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if !g.enter() {
				w.Header().Set("Retry-After", "5")
				http.Error(w, ending, http.StatusServiceUnavailable)
				return
			}
			defer g.leave()
			defer func() { _ = http.NewResponseController(w).Flush() }() // a client that has left needs no answer
		}
		next.ServeHTTP(w, r)
	})
}

// gatedTransport makes the requests of its connection pass a gate.
type gatedTransport struct {
	sdk.Transport
	gate *gate
}

// Connect implements [sdk.Transport].
func (t gatedTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	return &gatedConnection{c, t.gate}, err
}

type gatedConnection struct {
	sdk.Connection
	gate *gate
}

// Read implements [sdk.Connection].
func (c *gatedConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		r, ok := m.(*jsonrpc.Request)
		if err != nil || !ok || !r.IsCall() || c.gate.enter() {
			return m, err
		}
		refusal := &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: ending}}
		if err := c.Connection.Write(ctx, refusal); err != nil {
			return nil, err
		}
	}
}

// Write implements [sdk.Connection].
func (c *gatedConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if _, ok := m.(*jsonrpc.Response); ok {
		c.gate.leave()
	}
	return err
}
