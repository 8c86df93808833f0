package chromium

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	// MaxMessage is the largest message that is read. A larger one is skipped, and the call that it answers fails with [ErrTooLarge].
	MaxMessage = 48 << 20
	// writeTime is how long the browser may take to read a message. One that reads nothing is of no use, and is ended.
	writeTime = 5 * time.Second
)

// ErrTooLarge is the error of a call whose answer is larger than MaxMessage.
var ErrTooLarge = errors.New("the browser's answer is too large")

// CallError is the browser's refusal of a call.
type CallError struct {
	Method  string
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data"`
}

// Error implements error. The text is Chromium's own, and can hold text of a page.
func (e *CallError) Error() string { return fmt.Sprintf("%s: %s %s", e.Method, e.Message, e.Data) }

// Event is what the browser reports about a session.
type Event struct {
	Method string
	Params json.RawMessage
}

// conn is the protocol on a pair of pipes: messages of JSON, each with a NUL at its end.
type conn struct {
	from *os.File
	to   *os.File
	// ended is closed when nothing more is read.
	ended chan struct{}

	writing sync.Mutex

	mu       sync.Mutex
	err      error
	last     int64
	calls    map[int64]*call
	handlers map[string]func(Event)
}

type call struct {
	method string
	result json.RawMessage
	err    error
	done   chan struct{}
}

func newConn(from, to *os.File) *conn {
	c := &conn{from: from, to: to, ended: make(chan struct{}), calls: map[int64]*call{}, handlers: map[string]func(Event){}}
	go c.read()
	return c
}

// fail ends all calls, now and later.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	for id, pending := range c.calls {
		pending.err = err
		close(pending.done)
		delete(c.calls, id)
	}
	_, _ = c.from.Close(), c.to.Close() // the reader ends
}

// Handle has f called for each event of a session ("" is the browser itself), in order, by the goroutine that reads. f must return soon,
// and calls nothing that waits for the browser; [conn.Send] does not. A nil f ends this.
func (c *conn) Handle(session string, f func(Event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f == nil {
		delete(c.handlers, session)
	} else {
		c.handlers[session] = f
	}
}

// Call calls a method and waits for its result, which may be nil to ignore it. Errors are a *[CallError], ErrTooLarge, ErrGone or ctx's.
func (c *conn) Call(ctx context.Context, session, method string, params, result any) error {
	pending, id, err := c.send(session, method, params)
	if err != nil {
		return err
	}
	select {
	case <-pending.done:
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		return context.Cause(ctx)
	}
	switch {
	case pending.err != nil:
		return pending.err
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(pending.result, result); err != nil {
		return fmt.Errorf("%s: the browser's answer: %w", method, err)
	}
	return nil
}

// Send calls a method and waits for nothing. It may drop the call if the browser is gone.
func (c *conn) Send(session, method string, params any) {
	go func() { _, _, _ = c.send(session, method, params) }()
}

func (c *conn) send(session, method string, params any) (*call, int64, error) {
	if params == nil {
		params = struct{}{}
	}
	pending := &call{method: method, done: make(chan struct{})}
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, 0, c.err
	}
	c.last++
	id := c.last
	c.calls[id] = pending
	c.mu.Unlock()
	message, err := json.Marshal(struct {
		ID      int64  `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{id, session, method, params})
	if err != nil {
		c.forget(id)
		return nil, 0, err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.to.SetWriteDeadline(time.Now().Add(writeTime)); err == nil {
		_, err = c.to.Write(append(message, 0))
		if err == nil {
			return pending, id, nil
		}
	}
	c.fail(ErrGone)
	return nil, 0, ErrGone
}

func (c *conn) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

func (c *conn) read() {
	defer close(c.ended)
	in := bufio.NewReaderSize(c.from, 64<<10)
	for {
		message, whole, err := readMessage(in, MaxMessage)
		if err != nil {
			c.fail(ErrGone)
			return
		}
		if !whole {
			c.tooLarge(message)
			continue
		}
		if !c.deliver(message) {
			c.fail(fmt.Errorf("%w: it wrote what is no message", ErrGone))
			return
		}
	}
}

// readMessage reads a message without its NUL. Of one that is larger than most, it returns the beginning, and whole is false.
func readMessage(in *bufio.Reader, most int) (message []byte, whole bool, err error) {
	const beginning = 256
	whole = true
	for {
		part, err := in.ReadSlice(0)
		switch {
		case !whole:
		case len(message)+len(part) > most+1:
			message, whole = bytes.Clone(append(message, part...)[:beginning]), false
		default:
			message = append(message, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, false, errors.Join(err, io.ErrUnexpectedEOF)
		}
		return bytes.TrimSuffix(message, []byte{0}), whole, nil
	}
}

// tooLarge fails the call that a message answers, of which only the beginning was read. An event of that size is dropped.
func (c *conn) tooLarge(start []byte) {
	rest, isAnswer := bytes.CutPrefix(start, []byte(`{"id":`))
	if !isAnswer {
		return
	}
	digits, _, _ := bytes.Cut(rest, []byte(","))
	id, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return
	}
	c.answer(id, nil, ErrTooLarge)
}

func (c *conn) answer(id int64, result json.RawMessage, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pending := c.calls[id]
	if pending == nil { // nobody waits any more
		return
	}
	delete(c.calls, id)
	pending.result, pending.err = result, err
	close(pending.done)
}

func (c *conn) deliver(message []byte) bool {
	var m struct {
		ID      int64           `json:"id"`
		Session string          `json:"sessionId"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   *CallError      `json:"error"`
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return false
	}
	if m.Method == "" {
		var err error
		if m.Error != nil {
			c.mu.Lock()
			if pending := c.calls[m.ID]; pending != nil {
				m.Error.Method = pending.method
			}
			c.mu.Unlock()
			err = m.Error
		}
		c.answer(m.ID, m.Result, err)
		return true
	}
	c.mu.Lock()
	handle := c.handlers[m.Session]
	c.mu.Unlock()
	if handle != nil {
		handle(Event{m.Method, m.Params})
	}
	return true
}
