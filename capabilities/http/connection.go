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
	maxIdleWork = 2 * time.Millisecond
	// maxSpent is how much of the time for reads, writes and handshakes is charged late.
	maxSpent = time.Millisecond
	// maxAhead is the same for the bytes of all exchanges of a call.
	maxAhead = 500 * time.Millisecond
)

// maxBuffered is how many bytes of a body net/http reads before the exchange does, over HTTP/2. In records and over HTTP/1, it is bufferedRead.
const (
	maxBuffered  = 256 << 10
	bufferedRead = 32 << 10
)

// connection charges the exchanges that use it for the work that the server causes: frames without content, small chunks, small
// records. It is below TLS, because net/http requires a *tls.Conn.
type connection struct {
	net.Conn

	mu sync.Mutex
	// users are the exchanges, with the time for bytes that each may owe.
	users   map[*exchanging]time.Duration
	ahead   time.Duration // of all users
	perByte time.Duration
	// spent is the time for reads, writes and handshakes that was not charged yet.
	spent time.Duration
	// owed is the time for bytes that was not charged yet, since they may be content. It is negative if content was charged before
	// the exchange read it.
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

// work adds time to spent, and time for bytes to owed. It charges spent at once, and owed once that exceeds the cost of content that
// may still wait to be read.
func (c *connection) work(took time.Duration, bytes int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := time.Duration(len(c.users))
	c.spent += took
	c.owed += time.Duration(bytes) * c.perByte * (1 + n/64) // a setting of HTTP/2 is applied to each stream
	if n == 0 {
		if c.spent+c.owed > maxIdleWork {
			return errors.New("the server sends too much over a connection that is not used")
		}
		return nil
	}
	var due time.Duration
	if c.spent > maxSpent {
		due, c.spent = c.spent, 0
	}
	if c.owed > c.ahead {
		due, c.owed = due+c.owed, 0
	}
	if due > 0 {
		for user := range c.users {
			user.charge(due / n)
		}
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
	bytes := bufferedRead
	if c.perByte == frameWork {
		bytes += maxBuffered
	}
	may := user.call.mayOwe(time.Duration(bytes) * c.perByte)
	c.users[user] = may
	c.ahead += may
}

// leave charges a user's part of what is not charged yet.
func (c *connection) leave(user *exchanging) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := time.Duration(len(c.users))
	spent, owed := c.spent/n, max(0, c.owed/n)
	user.charge(spent + owed)
	c.spent -= spent
	c.owed -= owed
	user.call.ahead.Add(-int64(c.users[user]))
	c.ahead -= c.users[user]
	delete(c.users, user)
}

// mayOwe takes up to want from what the exchanges of a call may owe. It goes back to ahead.
func (b *budget) mayOwe(want time.Duration) time.Duration {
	for {
		have := b.ahead.Load()
		got := min(int64(want), int64(maxAhead)-have)
		if b.ahead.CompareAndSwap(have, have+got) {
			return time.Duration(got)
		}
	}
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
