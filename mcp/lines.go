package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine is the largest message, in bytes. Over HTTP, it is the default.
const maxLine = 16 << 20

// Lines is a transport over in and out, such as stdin and stdout. Each line is a message of at most 16 MiB. A line that is not a
// message is answered with an error. When in ends, Lines answers earlier requests for as long as finish, and then cancels the rest.
// At most 256 requests, of 32 MiB together, are under way: Lines stops reading while there are more, and answers a request that
// would exceed the size with an error. A line counts as it arrives toward the memory that this process has for messages, and is answered
// with an error if there is no room, or if it takes more than 30 s to arrive. Lines closes in and leaves out open.
func Lines(in io.ReadCloser, out io.Writer, finish time.Duration) sdk.Transport {
	return &lines{in, out, finish}
}

type lines struct {
	in     io.ReadCloser
	out    io.Writer
	finish time.Duration
}

// Connect implements [sdk.Transport].
func (l *lines) Connect(ctx context.Context) (sdk.Connection, error) {
	w := &lineWriter{out: l.out}
	c := &lineConnection{
		out: w, finish: l.finish, closeIn: sync.OnceValue(l.in.Close), arrived: make(chan arrival),
		writing: make(chan struct{}, 1), wrote: make(chan struct{}, 1), closed: make(chan struct{}),
		open: map[jsonrpc.ID]*openRequest{}, asked: map[jsonrpc.ID]bool{}, traffic: newTraffic(), passed: taken{traffic: &traffic{}},
	}
	go c.receive(context.WithoutCancel(ctx), &lineReader{lines: bufio.NewReaderSize(l.in, 64<<10), refuse: w})
	return c, nil
}

// arrival is a message, the arguments that were taken out of it, and its share of the process's bodies.
type arrival struct {
	message jsonrpc.Message
	stowed  map[string]json.RawMessage
	shared  *body
	err     error
}

// lineConnection reports the end of input only after everything is answered, because the SDK would take it for the end of the
// client. A write waits for a slow client until its context ends.
type lineConnection struct {
	out     io.Writer
	finish  time.Duration
	closeIn func() error
	arrived chan arrival
	late    <-chan time.Time // since input ended
	cut     []jsonrpc.ID     // requests that were unanswered by then and are cancelled
	cutting bool
	writing chan struct{} // holds one element during a write
	wrote   chan struct{} // gets one element after each write
	closed  chan struct{}
	once    sync.Once

	traffic *traffic

	mu     sync.Mutex
	open   map[jsonrpc.ID]*openRequest // requests that are not answered yet
	asked  map[jsonrpc.ID]bool         // questions to the client
	passed taken                       // messages other than requests, since the SDK was last known to have room for them
}

type openRequest struct {
	taken
	answered bool // its answer is being written
}

// SessionID implements [sdk.Connection].
func (*lineConnection) SessionID() string { return "" }

// receive reads messages until the connection or its input ends.
func (c *lineConnection) receive(ctx context.Context, r *lineReader) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		a := r.next(ctx)
		select {
		case c.arrived <- a:
		case <-c.closed:
			a.shared.giveBack()
			return
		}
		if a.err != nil {
			return
		}
	}
}

// Read implements [sdk.Connection].
func (c *lineConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for c.late == nil {
		var a arrival
		select {
		case a = <-c.arrived:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		}
		switch {
		case errors.Is(a.err, io.EOF):
			c.late = time.After(c.finish)
		case a.err != nil:
			return nil, a.err
		default:
			if ok, err := c.take(ctx, a); ok || err != nil {
				return a.message, err
			}
		}
	}
	for {
		c.mu.Lock()
		open := len(c.open)
		for id := range c.asked {
			delete(c.asked, id)
			c.mu.Unlock()
			return &jsonrpc.Response{ID: id, Error: errClientGone}, nil // nothing else answers it
		}
		c.mu.Unlock()
		if open == 0 {
			return nil, io.EOF
		}
		if len(c.cut) > 0 { // their answers must say so
			id := c.cut[0]
			c.cut = c.cut[1:]
			return cancelled(id)
		}
		select {
		case <-c.wrote:
		case <-c.late:
			if c.cutting {
				c.end()
				continue
			}
			c.cutting, c.late = true, time.After(closeTime)
			c.mu.Lock()
			c.cut = slices.Collect(maps.Keys(c.open))
			c.mu.Unlock()
		case <-c.closed:
			return nil, io.EOF
		}
	}
}

// cancelled is the notification by which a client cancels a request.
func cancelled(id jsonrpc.ID) (jsonrpc.Message, error) {
	params, err := json.Marshal(sdk.CancelledParams{RequestID: id.Raw(), Reason: "the end of input"})
	return &jsonrpc.Request{Method: "notifications/cancelled", Params: params}, err
}

// take returns true when there is room for a message, and false if the message was answered here. It waits until the client reads,
// because the SDK keeps what it gets.
func (c *lineConnection) take(ctx context.Context, a arrival) (ok bool, err error) {
	m := a.message
	r, isRequest := m.(*jsonrpc.Request)
	if !isRequest || !r.IsCall() {
		defer a.shared.giveBack()
		if a, ok := m.(*jsonrpc.Response); ok {
			c.mu.Lock()
			delete(c.asked, a.ID)
			c.mu.Unlock()
		}
		return true, c.wait(ctx, func() bool { return c.pass(m, a.shared) })
	}
	under := &openRequest{taken: taken{traffic: c.traffic, shared: *a.shared, stowed: a.stowed}}
	size := sizeOf(m)
	for _, arguments := range a.stowed {
		size += int64(len(arguments))
		r.Extra = stowedIn(&under.taken)
	}
	var before *openRequest
	err = c.wait(ctx, func() bool {
		c.mu.Lock()
		before = c.open[r.ID]
		late := before != nil && before.answered // the client has not read the answer, or has only just read it
		c.mu.Unlock()
		return before != nil && !late || !late && (!largeAnswers[r.Method] || under.tryAnswer()) && under.request(maxRequests)
	})
	switch {
	case err == nil && before != nil: // each id is answered once
		under.giveBack()
		return false, nil
	case err != nil:
		under.giveBack()
		return false, err
	case !under.body(size, maxBodies):
		err = fmt.Errorf("the requests under way have more than %d MiB together; wait for answers", maxBodies>>20)
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		select {
		case <-c.closed:
			under.giveBack()
			return false, io.EOF
		default:
			c.open[r.ID] = under
			return true, nil
		}
	}
	under.giveBack()
	return false, c.send(ctx, &jsonrpc.Response{ID: r.ID, Error: invalid("%v", err)})
}

// wait returns when there is room. Writing makes room.
func (c *lineConnection) wait(ctx context.Context, room func() bool) error {
	for !room() {
		select {
		case <-c.wrote:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.closed:
			return io.EOF
		}
	}
	return nil
}

// pass reports whether a message other than a request may pass. The SDK handles these messages one after the other, and sends pending
// refusals first: while it does, the message keeps its share.
func (c *lineConnection) pass(m jsonrpc.Message, shared *body) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	writing := len(c.writing) > 0
	if !writing {
		c.passed.giveBack()
		c.passed = taken{traffic: &traffic{}}
	}
	if c.passed.requests >= maxRequests || !c.passed.body(sizeOf(m), maxBodies) || !c.passed.request(maxRequests) {
		return false
	}
	select {
	case <-c.closed:
	default:
		if writing {
			c.passed.shared.add(shared)
		}
	}
	return true
}

// sizeOf estimates the bytes that a message keeps.
func sizeOf(m jsonrpc.Message) int64 {
	switch m := m.(type) {
	case *jsonrpc.Request:
		id, _ := m.ID.Raw().(string)
		return int64(len(m.Method) + len(m.Params) + len(id))
	case *jsonrpc.Response:
		return int64(len(m.Result))
	default:
		return 0
	}
}

// Write implements [sdk.Connection]. It finishes a message that it began to write even if nobody waits for it.
func (c *lineConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	question, _ := m.(*jsonrpc.Request)
	answer, _ := m.(*jsonrpc.Response)
	c.mu.Lock()
	switch {
	case question != nil && question.IsCall():
		c.asked[question.ID] = true
	case answer != nil && c.open[answer.ID] != nil:
		c.open[answer.ID].answered = true
	}
	c.mu.Unlock()
	if answer != nil {
		answer.Error = coded(answer.Error)
	}
	err := c.send(ctx, m)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case question != nil && err != nil:
		delete(c.asked, question.ID)
	case answer != nil && c.open[answer.ID] != nil:
		c.open[answer.ID].giveBack()
		delete(c.open, answer.ID)
		select {
		case c.wrote <- struct{}{}:
		default:
		}
	}
	return err
}

// coded adds the JSON-RPC code to the one error of the SDK that lacks it: the refusal of a request that came too early.
func coded(err error) error {
	switch {
	case err == nil || errors.As(err, new(*jsonrpc.Error)):
		return err
	case strings.HasSuffix(err.Error(), "is invalid during session initialization"):
		return invalid("%v; send initialize first", err)
	default:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
}

// send writes a message when it is its turn.
func (c *lineConnection) send(ctx context.Context, m jsonrpc.Message) error {
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.closed:
		return io.ErrClosedPipe
	}
	done := make(chan error, 1)
	go func() {
		err := c.write(m)
		<-c.writing
		c.mu.Lock()
		c.passed.shared.giveBack()
		c.mu.Unlock()
		done <- err
	}()
	select {
	case err := <-done:
		select {
		case c.wrote <- struct{}{}:
		default:
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

func (c *lineConnection) write(m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	_, err = c.out.Write(append(text, '\n'))
	return err
}

// end gives back what the requests take that nobody answers any more.
func (c *lineConnection) end() {
	c.once.Do(func() {
		close(c.closed)
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, under := range c.open {
			under.giveBack()
		}
		c.passed.shared.giveBack()
	})
}

// Close implements [sdk.Connection].
func (c *lineConnection) Close() error {
	c.end()
	return c.closeIn()
}

// lineWriter keeps the messages of several writers apart. Each message is one Write.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}
