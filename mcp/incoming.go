package mcp

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// incoming are the bodies that are arriving over HTTP, with the bytes that each has of the process's room. Their senders may take long, so they
// give way.
var incoming = struct {
	mu     sync.Mutex
	bodies map[*bodyReader]int64
}{bodies: map[*bodyReader]int64{}}

// bodyReader counts a body as it arrives.
type bodyReader struct {
	ctx     context.Context
	body    io.Reader
	under   *taken
	most    int64
	control *http.ResponseController // ends a Read that waits

	gone bool // it gives way; guarded by incoming.mu
}

// readAll reads the whole body.
func (b *bodyReader) readAll() ([]byte, error) {
	b.count()
	defer func() {
		incoming.mu.Lock()
		defer incoming.mu.Unlock()
		delete(incoming.bodies, b)
	}()
	return io.ReadAll(b)
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if !b.under.body(int64(n), b.most) {
		return n, errBodies
	}
	shared := &b.under.shared
	if !shared.grow(int64(n)) && (shared.first < maxFirst || !b.displace(int64(n)) || !shared.growSoon(b.ctx, int64(n))) {
		return n, errBusy
	}
	if !b.count() {
		return n, errBusy
	}
	return n, err
}

// count says what the body holds, and reports whether it need not give way.
func (b *bodyReader) count() bool {
	incoming.mu.Lock()
	defer incoming.mu.Unlock()
	incoming.bodies[b] = b.under.shared.rest
	return !b.gone
}

// displace makes room for n more bytes of a body: the largest body of the agent whose bodies hold the most gives way, if they would still hold
// more than those of this body's agent.
func (b *bodyReader) displace(n int64) bool {
	incoming.mu.Lock()
	defer incoming.mu.Unlock()
	held := map[*traffic]int64{b.under.traffic: n}
	for other, bytes := range incoming.bodies {
		if !other.gone {
			held[other.under.traffic] += bytes
		}
	}
	greediest := b.under.traffic
	for agent, bytes := range held {
		if bytes > held[greediest] {
			greediest = agent
		}
	}
	if greediest == b.under.traffic {
		return false
	}
	var largest *bodyReader
	for other, bytes := range incoming.bodies {
		if other.under.traffic == greediest && !other.gone && (largest == nil || bytes > incoming.bodies[largest]) {
			largest = other
		}
	}
	largest.gone = true
	return largest.control.SetReadDeadline(time.Now()) == nil
}
