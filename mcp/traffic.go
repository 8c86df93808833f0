package mcp

import (
	"errors"
	"io"
	"sync"
)

// traffic is what an agent has under way over HTTP: requests, and the bytes of their bodies. A body counts from its first byte, so one that
// never comes whole counts too, until the request is over.
type traffic struct {
	mu       sync.Mutex
	requests int
	bytes    int64
}

// taken is the part of one request.
type taken struct {
	*traffic
	counted bool
	size    int64
}

func (t *taken) request(most int) (ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests >= most {
		return false
	}
	t.requests++
	t.counted = true
	return true
}

func (t *taken) body(n, most int64) (ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes+n > most {
		return false
	}
	t.bytes += n
	t.size += n
	return true
}

func (t *taken) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes -= t.size
	if t.counted {
		t.requests--
	}
}

var errBodies = errors.New("the bodies under way are too large together")

// bodyReader counts a body while it comes.
type bodyReader struct {
	body  io.Reader
	under *taken
	most  int64
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if !b.under.body(int64(n), b.most) {
		return n, errBodies
	}
	return n, err
}
