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
	drained chan struct{} // closed when closed and count is 0
}

// ending is what a request is told that comes too late.
const ending = "this server is about to end"

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

// drain lets nothing more through and waits for what is on its way, but not longer than most. Then it has end end that, and waits until
// whoever asked for it was told, or a second. It is called once.
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

// wait waits until all are out, or for most.
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

// handler has what is posted pass the gate. A stream of notifications does not, which stays open as long as its session.
func (g *gate) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if !g.enter() {
				w.Header().Set("Retry-After", "5")
				http.Error(w, ending, http.StatusServiceUnavailable)
				return
			}
			defer g.leave()
			defer func() { _ = http.NewResponseController(w).Flush() }() // who is gone needs no answer
		}
		next.ServeHTTP(w, r)
	})
}

// gatedTransport has the requests of its connection pass a gate.
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
