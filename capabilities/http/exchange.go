package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/turns"
)

// Head is the record `head`: the start of a response.
type Head struct {
	Status     uint16
	URL        string
	Redirected bool
	// Headers have lower-case names and are sorted by them.
	Headers []Header
}

// Exchange is one request and its response: the resource `exchange`. It runs by itself until the body has arrived, it fails, it is
// closed, or the call or the context of its Start ends. It is safe for concurrent use. Its holder closes it.
type Exchange struct {
	client *Client
	stop   context.CancelCauseFunc
	// headed is ready when head or err is set, done when the exchange has ended.
	headed, done abi.Pollable
	head         Head
	err          error

	mu       sync.Mutex
	headSize int64         // held until Close
	arriving *blob.Builder // while the body arrives
	more     *abi.Pollable // ready when more of the body arrives or the body ends; nil if no caller waits for it
	ended    bool          // then body or bodyErr is set
	body     *blob.Blob    // nil after it was taken
	bodyErr  error

	arrivedBytes int64
	read         int64         // a reader of parts has got to here
	gone         int64         // the first bytes of the body, which were read and dropped
	wholly       bool          // somebody wants the whole body
	resume       chan struct{} // closed when read or wholly changes; nil if the body is not waiting for that
}

// start runs q in a separate goroutine, which then owns the content. It ends with the operation's context, which may depend on more
// than the client, such as the grant of a blob that is sent. It charges the context's meter.
func (c *Client) start(operation context.Context, q *request, timeout *uint32) (*Exchange, error) {
	held := q.content.held()
	if err := c.call.reserve(held); err != nil {
		return nil, err
	}
	select {
	case c.call.pending <- struct{}{}:
	default:
		c.call.memory.Release(held)
		return nil, abi.Errorf(abi.CodeExhausted, "http exchanges in progress: %d", cap(c.call.pending))
	}
	place, err := exchanges.ask(turns.User(operation), c.call.budget)
	if err != nil {
		c.call.memory.Release(held)
		<-c.call.pending
		return nil, err
	}
	limit := c.grant.options.Timeout
	if timeout != nil {
		limit = min(limit, time.Duration(*timeout)*time.Millisecond)
	}
	ctx, stop := context.WithCancelCause(c.call.ctx)
	ctx, cancel := context.WithTimeout(ctx, limit)
	forget := context.AfterFunc(operation, func() { stop(context.Cause(operation)) })
	e := &Exchange{client: c, stop: stop}
	go func() {
		defer e.done.SetReady()
		exchanging, end := withExchange(abi.WithMeter(ctx, abi.MeterOf(operation)), c.call, stop)
		defer func() {
			end()
			forget()
			cancel()
			stop(nil)
			q.content.close()
			c.call.memory.Release(held)
			place.leave()
			<-c.call.pending
		}()
		if err := place.wait(exchanging); err != nil {
			e.fail(explain(exchanging, q.target, err))
			return
		}
		e.run(exchanging, c, q)
	}()
	return e, nil
}

func (e *Exchange) run(ctx context.Context, c *Client, q *request) {
	place := largePlace{user: turns.User(ctx)}
	place.take()
	defer place.give()
	q.accepts = place.accepts()
	response, q, err := c.follow(ctx, q)
	if err != nil {
		e.fail(q.secrets.hush(explain(ctx, q.target, err)))
		return
	}
	defer func() { _ = response.Body.Close() }()
	response.Body = newStallReader(response.Body, c.grant.options.Timeouts.Stall, func() { e.stop(context.DeadlineExceeded) })
	encoding := encodingOf(response)
	if encoding == "" || encoding == smallEncodings {
		place.give()
	}
	head := Head{
		Status: uint16(response.StatusCode), URL: q.target.String(), Redirected: q.from != "",
		Headers: q.secrets.responseHeader(response.Header),
	}
	if err := c.call.reserve(head.size()); err != nil {
		e.fail(err)
		return
	}
	e.mu.Lock()
	e.head, e.headSize = head, head.size()
	e.mu.Unlock()
	e.headed.SetReady()
	if err := e.receive(ctx, c, response, encoding, q); err != nil {
		e.finish(q.secrets.hush(explain(ctx, q.target, err)))
		return
	}
	e.finish(nil)
}

func (e *Exchange) fail(err error) {
	e.err = err
	e.headed.SetReady()
	e.finish(err)
}

// size is roughly the largest number of bytes that h takes.
func (h Head) size() int64 {
	const perHeader = 64
	size := len(h.URL)
	for _, header := range h.Headers {
		size += perHeader + len(header.Name) + len(header.Value)
	}
	return int64(size)
}

// explain converts a failure into an error for the guest, with the server's name and port, and without details of the host's network.
func explain(ctx context.Context, t *target, err error) *abi.Error {
	if known, ok := errors.AsType[*abi.Error](err); ok {
		return known
	}
	if refused, ok := errors.AsType[*abi.Error](context.Cause(ctx)); ok {
		return refused
	}
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded), isNet && timeout.Timeout():
		return abi.ErrTimedOut
	case ctx.Err() != nil:
		return abi.Errorf(abi.CodeUnavailable, "the exchange was closed")
	}
	unavailable := func(format string, args ...any) *abi.Error {
		return abi.Errorf(abi.CodeUnavailable, "%s:%d: %s", t.host, t.port, fmt.Sprintf(format, args...))
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		if lookup.IsNotFound {
			return unavailable("the name has no address")
		}
		return unavailable("the name could not be looked up")
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return unavailable("%v", errno)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return unavailable("the server closed the connection before the response was complete")
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return unavailable("%s: %v", operation.Op, operation.Err)
	}
	return unavailable("%v", err)
}

// Stage is the variant `stage`: how far an exchange has come. Body is set if Case says so.
type Stage struct {
	Case StageCase
	Body *uint64
}

// StageCase is a case of [Stage].
type StageCase uint8

// The cases of the variant `stage`, in its order.
const (
	StageHead StageCase = iota
	StageBody
	StageWhole
)

// Quick implements [abi.Quick].
func (*Exchange) Quick() []string { return []string{"exchange.subscribe"} }

// Repeat implements [abi.Repeatable]: what has arrived is only read.
func (*Exchange) Repeat(string, []abi.Value) abi.Repeat { return abi.Reads }

// Lists implements [abi.Bounded].
func (*Exchange) Lists() map[string]int {
	return map[string]int{"exchange.head.result.headers": 20_000} // of 64 KiB together
}

// Subscribe returns a pollable that is ready when the exchange has reached the stage, or has failed. The methods of the stage then
// answer without waiting: Head, Blob of a part, or Text and Blob of the whole body. For [StageBody], an offset beyond the bytes
// that have arrived means their end.
func (e *Exchange) Subscribe(ctx context.Context, s Stage) *abi.Pollable {
	switch {
	case s.Case == StageHead:
		return &e.headed
	case s.Case != StageBody || s.Body == nil:
		if e.wantWhole() != nil {
			return abi.Ready()
		}
		return &e.done
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reach(*s.Body)
	data, ended, err := e.part(ctx, Part{*s.Body, 1})
	if len(data) > 0 || ended || err != nil {
		return abi.Ready()
	}
	return e.wakeUp()
}

// Head waits for the start of the response and returns it. It fails with the error of the exchange: abi.ErrDenied after a redirect
// or for an address, abi.ErrTimedOut, or abi.ErrUnavailable.
func (e *Exchange) Head(ctx context.Context) (Head, error) {
	if err := wait(ctx, &e.headed); err != nil {
		return Head{}, err
	}
	if e.err != nil {
		return Head{}, e.err
	}
	size := int64(len(e.head.URL))
	for _, h := range e.head.Headers {
		size += perRecord + int64(len(h.Name)+len(h.Value))
	}
	if err := abi.Room(ctx, size); err != nil {
		return Head{}, fmt.Errorf("wait for room: %w", err)
	}
	return e.head, nil
}

// perRecord and perText are what a record and a text of an answer take besides what they hold.
const perRecord, perText = 1000, 60

func wait(ctx context.Context, until *abi.Pollable) error {
	if err := until.Wait(ctx); err != nil {
		return fmt.Errorf("wait for the exchange: %w", err)
	}
	return nil
}

// Close ends the exchange if it still runs, and drops the body unless it was taken. When Close returns, the exchange has no
// goroutine. Closing again does nothing.
func (e *Exchange) Close() error {
	e.stop(nil)
	<-e.done.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.client.call.memory.Release(e.headSize)
	e.headSize = 0
	if e.body == nil {
		return nil
	}
	body := e.body
	e.body = nil
	return body.Close()
}
