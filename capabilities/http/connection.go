package http

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
)

// The processor time that a connection takes. net/http spends it in goroutines of its own.
const (
	// readWork and writeWork are for one read and one write of a socket, and wakeWork is for waiting before a read.
	readWork  = 2 * time.Microsecond
	wakeWork  = 10 * time.Microsecond
	writeWork = 5 * time.Microsecond
	// byteWork is for a byte that is not content, at the cost of the smallest
	// chunks and records. frameWork is for a byte of the most expensive frames
	// of HTTP/2, those of compressed headers.
	byteWork  = 50 * time.Nanosecond
	frameWork = 150 * time.Nanosecond
	// handshakeWork is for the keys of a TLS connection and one certificate. What a handshake takes beyond that is measured.
	handshakeWork = time.Millisecond
	// addressWork is for one address of a name.
	addressWork = 10 * time.Microsecond
	// maxIdleWork is how much time a connection that no exchange uses may take.
	maxIdleWork = 5 * time.Millisecond
)

// maxBuffered is how many bytes of a body net/http reads before the exchange does, over HTTP/2.
const maxBuffered = 512 << 10

// connection charges the exchanges that use it for the work that the server causes: frames without content, small chunks, small
// records. It is below TLS, because net/http requires a *tls.Conn.
type connection struct {
	net.Conn

	mu      sync.Mutex
	users   map[*exchanging]bool
	perByte time.Duration
	// owed is the time that was not charged yet. It is negative if content was charged before the exchange read it.
	owed time.Duration

	computing stopwatch // only during the handshake, on its goroutine
}

func (c *connection) Read(p []byte) (int, error) {
	if c.computing.runs {
		c.computed()
		defer c.computing.start()
	}
	n, err := c.Conn.Read(p)
	took := readWork
	if n < len(p) { // no bytes are left, so the next read waits
		took += wakeWork
	}
	if refused := c.work(took, n); refused != nil {
		return 0, refused
	}
	return n, err
}

func (c *connection) Write(p []byte) (int, error) {
	if c.computing.runs {
		c.computed()
		defer c.computing.start()
	}
	if err := c.work(writeWork, 0); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// handshake runs a handshake, and charges the processor time that it takes. A server chooses it: Go checks up to 100 signatures, of
// keys that take 3 ms each.
func (c *connection) handshake(ctx context.Context, secured *tls.Conn) error {
	_ = c.work(handshakeWork, 0) // a refused charge ends the exchange
	c.computing = stopwatch{took: -handshakeWork}
	c.computing.start()
	defer c.computed()
	return secured.HandshakeContext(ctx)
}

// computed charges what the handshake took since it last read or wrote.
func (c *connection) computed() {
	c.computing.stop()
	if over := c.computing.took; over > 0 {
		c.computing.took = 0
		_ = c.work(over, 0)
	}
}

// work adds time, and time for bytes, to owed. It charges owed once that exceeds the cost of content that still waits to be read.
func (c *connection) work(took time.Duration, bytes int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := time.Duration(len(c.users))
	c.owed += took + time.Duration(bytes)*c.perByte*(1+n/64) // a setting of HTTP/2 is applied to each stream
	if n == 0 && c.owed > maxIdleWork {
		return errors.New("the server sends too much over a connection that is not used")
	}
	if n > 0 && c.owed > 2*n*maxBuffered*c.perByte {
		for user := range c.users {
			user.charge(c.owed / n)
		}
		c.owed = 0
	}
	return nil
}

// content records that an exchange has read bytes of a body, which count elsewhere.
func (c *connection) content(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owed -= time.Duration(n) * c.perByte
}

// http2 records that the connection uses HTTP/2 frames.
func (c *connection) http2() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.perByte = frameWork
}

func (c *connection) join(user *exchanging) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users[user] = true
}

// leave charges a user's part of owed.
func (c *connection) leave(user *exchanging) {
	c.mu.Lock()
	defer c.mu.Unlock()
	part := max(0, c.owed/time.Duration(len(c.users)))
	user.charge(part)
	c.owed -= part
	delete(c.users, user)
}

// exchanging is what a connection needs to know about an exchange.
type exchanging struct {
	context.Context // ends with the exchange and its call
	call            *call
	charge          func(time.Duration) // charges the call, or else ends the exchange

	mu sync.Mutex
	on *connection // nil while the exchange has none
}

// exchangeKey is the context key of the exchange that a connection is made for.
type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchanging {
	x, _ := ctx.Value(exchangeKey{}).(*exchanging)
	return x
}

// withExchange returns a context for the requests of an exchange, and a function to call when the exchange ends.
func withExchange(ctx context.Context, c *call, stop context.CancelCauseFunc) (context.Context, func()) {
	x := &exchanging{Context: ctx, call: c}
	x.charge = func(took time.Duration) {
		if err := abi.Work(ctx, took); err != nil {
			stop(abi.Errorf(abi.CodeExhausted, "processor time of the call, to read what the server sends: %v", err))
		}
	}
	requests := context.WithValue(ctx, exchangeKey{}, x)
	return httptrace.WithClientTrace(requests, &httptrace.ClientTrace{GotConn: x.got}), func() { x.use(nil) }
}

// got is httptrace.ClientTrace.GotConn.
func (x *exchanging) got(info httptrace.GotConnInfo) {
	conn := info.Conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if c, ok := conn.(*connection); ok {
		x.use(c)
	}
}

// use replaces the connection of an exchange.
func (x *exchanging) use(c *connection) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.on != nil {
		x.on.leave(x)
	}
	if x.on = c; c != nil {
		c.join(x)
	}
}

// content records that the exchange has read bytes of a body.
func (x *exchanging) content(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.on != nil {
		x.on.content(n)
	}
}
