package mcp

import (
	"bufio"
	"bytes"
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

// maxLine is the largest message, in bytes.
const maxLine = 16 << 20

// Lines is a transport over in and out, such as stdin and stdout. Each line is a message of at most 16 MiB. A line that is not a
// message is answered with an error. When in ends, Lines answers earlier requests for as long as finish, and then cancels the rest.
// At most 256 requests, of 32 MiB together, are under way: Lines stops reading while there are more, and answers a request that
// would exceed the size with an error. It closes in and leaves out open.
func Lines(in io.ReadCloser, out io.Writer, finish time.Duration) sdk.Transport {
	w := &lineWriter{out: out}
	return &lines{
		sdk.IOTransport{Reader: &lineReader{in: in, lines: bufio.NewReaderSize(in, 64<<10), refuse: w}, Writer: w, MaxLineLength: -1}, finish,
	}
}

type lines struct {
	sdk.IOTransport
	finish time.Duration
}

// Connect implements [sdk.Transport].
func (l *lines) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := l.IOTransport.Connect(ctx)
	return &lineConnection{
		Connection: c, finish: l.finish, writing: make(chan struct{}, 1), wrote: make(chan struct{}, 1), closed: make(chan struct{}),
		open: map[jsonrpc.ID]*openRequest{}, asked: map[jsonrpc.ID]bool{}, traffic: newTraffic(), passed: taken{traffic: &traffic{}},
	}, err
}

// lineConnection reports the end of input only after everything is answered, because the SDK would take it for the end of the
// client. A write waits for a slow client until its context ends.
type lineConnection struct {
	sdk.Connection
	finish  time.Duration
	late    <-chan time.Time // since input ended
	cut     []jsonrpc.ID     // requests that were unanswered by then and are cancelled
	cutting bool
	writing chan struct{} // holds one element during a write
	wrote   chan struct{} // gets one element after each write
	closed  chan struct{}
	once    sync.Once

	traffic *traffic
	passed  taken // messages other than requests, since the SDK was last known to have room for them

	mu    sync.Mutex
	open  map[jsonrpc.ID]*openRequest // requests that are not answered yet
	asked map[jsonrpc.ID]bool         // questions to the client
}

type openRequest struct {
	taken
	answered bool // its answer is being written
}

// Read implements [sdk.Connection].
func (c *lineConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for c.late == nil {
		m, err := c.Connection.Read(ctx)
		switch {
		case errors.Is(err, io.EOF):
			c.late = time.After(c.finish)
		case err != nil:
			return m, err
		default:
			if ok, err := c.take(ctx, m); ok || err != nil {
				return m, err
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
func (c *lineConnection) take(ctx context.Context, m jsonrpc.Message) (ok bool, err error) {
	r, isRequest := m.(*jsonrpc.Request)
	if !isRequest || !r.IsCall() {
		if a, ok := m.(*jsonrpc.Response); ok {
			c.mu.Lock()
			delete(c.asked, a.ID)
			c.mu.Unlock()
		}
		return true, c.wait(ctx, func() bool { return c.pass(m) })
	}
	under := &openRequest{taken: taken{traffic: c.traffic}}
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
	case !under.body(sizeOf(m), maxBodies):
		err = fmt.Errorf("the requests under way have more than %d MiB together; wait for answers", maxBodies>>20)
	case !under.shared.grow(sizeOf(m)):
		err = errBusy
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
// refusals first.
func (c *lineConnection) pass(m jsonrpc.Message) bool {
	if len(c.writing) == 0 {
		c.passed = taken{traffic: &traffic{}}
	}
	return c.passed.requests < maxRequests && c.passed.body(sizeOf(m), maxBodies) && c.passed.request(maxRequests)
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
		err := c.Connection.Write(context.WithoutCancel(ctx), m)
		<-c.writing
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

// end gives back what the requests take that nobody answers any more.
func (c *lineConnection) end() {
	c.once.Do(func() {
		close(c.closed)
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, under := range c.open {
			under.giveBack()
		}
	})
}

// Close implements [sdk.Connection].
func (c *lineConnection) Close() error {
	c.end()
	return c.Connection.Close()
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

// Close implements io.Closer.
func (*lineWriter) Close() error { return nil }

// lineReader passes on only lines that are messages, because anything else would end the SDK's connection.
type lineReader struct {
	in     io.Closer
	lines  *bufio.Reader
	refuse io.Writer
	rest   []byte // of the current message
}

// Close implements io.Closer.
func (r *lineReader) Close() error { return r.in.Close() }

// Read implements io.Reader.
func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		if err != nil && len(line) == 0 {
			return 0, err
		}
		if len(line) == 0 {
			continue
		}
		if id, bad := checkLine(line); bad != nil {
			if err := r.answer(id, bad); err != nil {
				return 0, err
			}
			continue
		}
		r.rest = append(line, '\n')
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// line reads a line without its end and surrounding space. If the line is too long, it returns enough of it to show that.
func (r *lineReader) line() (line []byte, err error) {
	for {
		part, err := r.lines.ReadSlice('\n')
		if room := maxLine + 1 - len(line); room > 0 {
			line = append(line, part[:min(room, len(part))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), err
		}
	}
}

// checkLine says what is wrong with a line, and which id to answer to if it has one. It returns nil for a message.
func checkLine(line []byte) (id json.RawMessage, bad *jsonrpc.Error) {
	switch {
	case len(line) > maxLine:
		return nil, invalid("a line has more than %d MiB", maxLine>>20)
	case !json.Valid(line):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "a line is not JSON"}
	case line[0] == '[':
		return nil, invalid("a line is a JSON array; send one message per line")
	}
	if id, bad := checkIDs(line); bad != nil {
		return id, bad
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return nil, invalid("a line is not a JSON-RPC message")
	}
	return nil, nil
}

// answer answers a line that does not reach the SDK.
func (r *lineReader) answer(id json.RawMessage, bad *jsonrpc.Error) error {
	text, err := errorMessage(id, bad)
	if err != nil {
		return err
	}
	_, err = r.refuse.Write(append(text, '\n'))
	return err
}
