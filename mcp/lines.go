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
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine is the most bytes of a message.
const maxLine = 16 << 20

// Lines is a transport over in and out, such as stdin and stdout: each line is a message, of at most 16 MiB. A line that is none
// is answered with an error, and the next one is read. When in ends, what was asked before is answered first, for as long as finish;
// what takes longer is cancelled.
// It closes in; out stays open.
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
		open: map[jsonrpc.ID]bool{}, asked: map[jsonrpc.ID]bool{},
	}, err
}

// lineConnection tells the end of input when all that came is answered: the SDK would take it for the end of the client. What is
// written waits for a client that takes nothing as long as its context lasts.
type lineConnection struct {
	sdk.Connection
	finish  time.Duration
	late    <-chan time.Time // since input ended
	cut     []jsonrpc.ID     // what was not answered by then, and is cancelled
	cutting bool
	writing chan struct{} // holds one while something is written
	wrote   chan struct{} // has one after something was written
	closed  chan struct{}
	once    sync.Once

	mu    sync.Mutex
	open  map[jsonrpc.ID]bool // requests that are not answered yet
	asked map[jsonrpc.ID]bool // what the client is asked
}

// Read implements [sdk.Connection].
func (c *lineConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	if c.late == nil {
		m, err := c.Connection.Read(ctx)
		if !errors.Is(err, io.EOF) {
			c.note(m, c.open, c.asked)
			return m, err
		}
		c.late = time.After(c.finish)
	}
	for {
		c.mu.Lock()
		open := len(c.open)
		for id := range c.asked {
			delete(c.asked, id)
			c.mu.Unlock()
			return &jsonrpc.Response{ID: id, Error: errClientGone}, nil // nobody else answers it
		}
		c.mu.Unlock()
		if open == 0 {
			return nil, io.EOF
		}
		if len(c.cut) > 0 { // so that their answers say so
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

// Write implements [sdk.Connection]. What it began to write is written, even if nobody waits for it.
func (c *lineConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.closed:
		return io.ErrClosedPipe
	}
	done := make(chan error, 1)
	go func() {
		done <- c.Connection.Write(context.WithoutCancel(ctx), m)
		<-c.writing
	}()
	select {
	case err := <-done:
		c.note(m, c.asked, c.open)
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

// note keeps what a message asks among the questions, and takes what it answers from the others.
func (c *lineConnection) note(m jsonrpc.Message, questions, others map[jsonrpc.ID]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case *jsonrpc.Request:
		if m.IsCall() {
			questions[m.ID] = true
		}
	case *jsonrpc.Response:
		delete(others, m.ID)
	}
}

func (c *lineConnection) end() { c.once.Do(func() { close(c.closed) }) }

// Close implements [sdk.Connection].
func (c *lineConnection) Close() error {
	c.end()
	return c.Connection.Close()
}

// lineWriter keeps the messages of several writers apart: each is one Write.
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

// lineReader reads the lines that are messages: anything else would end the SDK's connection.
type lineReader struct {
	in     io.Closer
	lines  *bufio.Reader
	refuse io.Writer
	rest   []byte // of the message that is being read
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

// line reads a line without its end and the space around it; of one that is too long, so much that it is seen.
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

// checkLine says what is wrong with a line, and which id to answer to, if it has one; nil when it is a message.
func checkLine(line []byte) (id json.RawMessage, bad *jsonrpc.Error) {
	switch {
	case len(line) > maxLine:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("a line has more than %d MiB", maxLine>>20)}
	case !json.Valid(line):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "a line is not JSON"}
	case line[0] == '[':
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a line is a list; write one message a line"}
	}
	if id, bad := checkIDs(line); bad != nil {
		return id, bad
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a line is no JSON-RPC message"}
	}
	return nil, nil
}

// answer answers a line that the SDK does not see.
func (r *lineReader) answer(id json.RawMessage, bad *jsonrpc.Error) error {
	text, err := errorMessage(id, bad)
	if err != nil {
		return err
	}
	_, err = r.refuse.Write(append(text, '\n'))
	return err
}
