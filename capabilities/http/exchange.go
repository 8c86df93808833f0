package http

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	nethttp "net/http"
	"sync"
	"syscall"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
)

// Head is the record `head`: the start of a response.
type Head struct {
	Status     uint16
	URL        string
	Redirected bool
	// Headers have lower-case names and are in their order.
	Headers []Header
}

// Exchange is one request and its response: the resource `exchange`. It goes on by itself until the body is there, it
// fails, it is closed, or the call ends. It is safe for concurrent use; who holds it closes it.
type Exchange struct {
	stop context.CancelCauseFunc
	held *blob.Quota
	// headed is closed when head or err is set, done when the exchange is over.
	headed, done chan struct{}
	head         Head
	err          error

	mu       sync.Mutex
	headSize int64         // charged to held until Close
	arriving *blob.Builder // while the body comes
	more     chan struct{} // closed when something arrives or the body ends; nil when nobody waits for it
	ended    bool          // then body or bodyErr is set
	body     *blob.Blob    // nil once it was taken
	bodyErr  error
}

// start runs q in a goroutine of its own, which owns the content from then on.
func (c *Client) start(q *request, timeout *uint32) (*Exchange, error) {
	held := q.content.held()
	if err := c.call.held.Reserve(held); err != nil {
		return nil, err
	}
	select {
	case c.call.pending <- struct{}{}:
	default:
		c.call.held.Release(held)
		return nil, abi.Errorf(abi.CodeExhausted, "http exchanges in progress: %d", cap(c.call.pending))
	}
	limit := c.grant.options.Timeout
	if timeout != nil {
		limit = min(limit, time.Duration(*timeout)*time.Millisecond)
	}
	ctx, stop := context.WithCancelCause(c.call.ctx)
	ctx, cancel := context.WithTimeout(ctx, limit)
	e := &Exchange{stop: stop, held: c.call.held, headed: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(e.done)
		defer func() {
			cancel()
			stop(nil)
			q.content.close()
			c.call.held.Release(held)
			<-c.call.pending
		}()
		e.run(withExchange(ctx), c, q)
	}()
	return e, nil
}

func (e *Exchange) run(ctx context.Context, c *Client, q *request) {
	response, q, err := c.follow(ctx, q)
	if err != nil {
		e.fail(q.secrets.hush(explain(ctx, err)))
		return
	}
	defer func() { _ = response.Body.Close() }()
	response.Body = newStallReader(response.Body, c.grant.options.Timeouts.Stall, func() { e.stop(context.DeadlineExceeded) })
	encoding := encodingOf(response)
	head := Head{
		Status: uint16(response.StatusCode), URL: q.target.String(), Redirected: q.from != "",
		Headers: q.secrets.responseHeader(response.Header),
	}
	if err := e.held.Reserve(head.size()); err != nil {
		e.fail(err)
		return
	}
	e.mu.Lock()
	e.head, e.headSize = head, head.size()
	e.mu.Unlock()
	close(e.headed)
	if err := e.receive(ctx, c, response, encoding, q); err != nil {
		e.finish(q.secrets.hush(explain(ctx, err)))
		return
	}
	e.finish(nil)
}

// finish ends the body: it is whole, or there is none because of err.
func (e *Exchange) finish(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.arriving != nil {
		if err == nil {
			e.body, err = e.arriving.Blob()
		}
		_ = e.arriving.Close() // drops what did not become a blob
	}
	e.arriving, e.ended, e.bodyErr = nil, true, err
	e.arrived()
}

// arrived wakes who waits for more of the body. It needs e.mu.
func (e *Exchange) arrived() {
	if e.more != nil {
		close(e.more)
		e.more = nil
	}
}

func (e *Exchange) fail(err error) {
	e.err = err
	close(e.headed)
	e.finish(err)
}

// size is about how many bytes h takes, at most.
func (h Head) size() int64 {
	const perHeader = 64
	size := len(h.URL)
	for _, header := range h.Headers {
		size += perHeader + len(header.Name) + len(header.Value)
	}
	return int64(size)
}

// maxRedirects is how many redirects one exchange follows.
const maxRedirects = 10

// follow sends q and goes where redirects lead, as far as q wants and rules allow. It returns the last request, in any
// case, with its response.
func (c *Client) follow(ctx context.Context, q *request) (*nethttp.Response, *request, error) {
	been := map[string]bool{}
	for hops := 0; ; hops++ {
		been[q.step()] = true
		response, err := c.send(ctx, q)
		if err != nil {
			return nil, q, err
		}
		location := response.Header.Get("Location")
		if !isRedirect(response.StatusCode) || location == "" || q.redirect == RedirectManual {
			return response, q, nil
		}
		_ = response.Body.Close()
		if q.redirect == RedirectError {
			return nil, q, abi.Errorf(abi.CodeUnavailable, "%s redirects, and the request wants no redirect", q.target.withoutQuery())
		}
		if hops == maxRedirects {
			return nil, q, abi.Errorf(abi.CodeUnavailable, "more than %d redirects", maxRedirects)
		}
		to, err := q.target.resolve(q.secrets.mask(text(location)))
		if err == nil {
			to, err = q.secrets.clean(to)
		}
		if err != nil {
			return nil, q, abi.Errorf(abi.CodeUnavailable, "%s redirects to a URL that is refused: %v", q.target.withoutQuery(), err)
		}
		q = q.redirected(response.StatusCode, to)
		if been[q.step()] {
			return nil, q, abi.Errorf(abi.CodeUnavailable, "redirects lead in a loop, back to %s", q.target.withoutQuery())
		}
		if err := c.authorise(q); err != nil {
			return nil, q, err
		}
	}
}

// step is the same for two requests of an exchange that a server cannot tell apart: on the way headers only become fewer.
func (q *request) step() string {
	return fmt.Sprintf("%s %s %d %t", q.method, q.target, len(q.header), q.crossed)
}

// send sends q to one server.
func (c *Client) send(ctx context.Context, q *request) (*nethttp.Response, error) {
	sent := q.http(ctx)
	if err := c.authenticate(ctx, q, sent); err != nil {
		return nil, err
	}
	response, err := q.rule.transport.RoundTrip(sent)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return nil, q.refused(refused)
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode == nethttp.StatusSwitchingProtocols {
		_ = response.Body.Close()
		return nil, abi.Errorf(abi.CodeUnavailable, "the server switches to another protocol")
	}
	return response, nil
}

func isRedirect(status int) bool {
	switch status {
	case nethttp.StatusMovedPermanently, nethttp.StatusFound, nethttp.StatusSeeOther, nethttp.StatusTemporaryRedirect,
		nethttp.StatusPermanentRedirect:
		return true
	}
	return false
}

// resolve parses a reference, relative to t.
func (t *target) resolve(reference string) (*target, error) {
	if err := plain(reference); err != nil {
		return nil, err
	}
	absolute, err := t.url().Parse(reference)
	if err != nil {
		return nil, errors.New("it is malformed")
	}
	return parseTarget(absolute.String())
}

// receive reads the body to its end.
func (e *Exchange) receive(ctx context.Context, c *Client, response *nethttp.Response, encoding string, q *request) error {
	limit := q.rule.MaxResponse
	if encoding == "" && response.ContentLength > limit && response.Request.Method != "HEAD" {
		return &abi.Error{Code: abi.CodeTooLarge, Size: uint64(response.ContentLength)}
	}
	kind := q.secrets.mask(response.Header.Get("Content-Type"))
	if _, _, err := mime.ParseMediaType(kind); err != nil || !blob.ValidMediaType(kind) {
		kind = ""
	}
	e.mu.Lock()
	e.arriving = blob.NewBuilder(blob.Options{MediaType: kind, Limit: limit, Dir: c.grant.options.TempDir, Quota: e.held})
	e.mu.Unlock()
	var body io.Reader = chargedReader{response.Body, c.call.received}
	if encoding != "" {
		select {
		case c.call.decoding <- struct{}{}:
			defer func() { <-c.call.decoding }()
		case <-ctx.Done():
			return ctx.Err()
		}
		decoded, err := decode(body, encoding, limit)
		if err != nil {
			return err
		}
		defer func() { _ = decoded.Close() }()
		body = chargedReader{decoded, c.call.received}
	}
	if len(q.secrets) > 0 {
		body = &maskReader{r: body, secrets: q.secrets}
	}
	_, err := io.Copy(bodyWriter{e}, body)
	return err
}

// bodyWriter keeps what arrives.
type bodyWriter struct{ e *Exchange }

func (w bodyWriter) Write(p []byte) (int, error) {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	n, err := w.e.arriving.Write(p)
	w.e.arrived()
	return n, err
}

// stallReader calls expire when a read takes too long.
type stallReader struct {
	io.ReadCloser
	limit time.Duration
	timer *time.Timer
}

func newStallReader(r io.ReadCloser, limit time.Duration, expire func()) stallReader {
	s := stallReader{r, limit, time.AfterFunc(limit, expire)}
	s.timer.Stop() // until something is read
	return s
}

func (s stallReader) Read(p []byte) (int, error) {
	s.timer.Reset(s.limit)
	defer s.timer.Stop()
	return s.ReadCloser.Read(p)
}

// explain makes what the guest is told of a failure. It keeps quiet about what the host's network looks like.
func explain(ctx context.Context, err error) *abi.Error {
	if known, ok := errors.AsType[*abi.Error](err); ok {
		return known
	}
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded), isNet && timeout.Timeout():
		return abi.ErrTimedOut
	case ctx.Err() != nil:
		return abi.Errorf(abi.CodeUnavailable, "the exchange was closed")
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		if lookup.IsNotFound {
			return abi.Errorf(abi.CodeUnavailable, "the name %s has no address", lookup.Name)
		}
		return abi.Errorf(abi.CodeUnavailable, "the name %s could not be looked up", lookup.Name)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return abi.Errorf(abi.CodeUnavailable, "%v", errno)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return abi.Errorf(abi.CodeUnavailable, "the server closed the connection before the response was complete")
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return abi.Errorf(abi.CodeUnavailable, "%s: %v", operation.Op, operation.Err)
	}
	return abi.Errorf(abi.CodeUnavailable, "%v", err)
}

// Stage is the variant `stage`: how far an exchange has come. Body is set when Case says so.
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

// Subscribe returns a pollable that is ready when the exchange has come so far, or has failed. What belongs to the stage
// then answers without waiting: Head, Blob of a part, or Text and Blob of the whole. For [StageBody], more than has
// arrived counts as what has arrived.
func (e *Exchange) Subscribe(ctx context.Context, s Stage) abi.Pollable {
	switch {
	case s.Case == StageHead:
		return e.headed
	case s.Case != StageBody || s.Body == nil:
		return e.done
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	data, ended, err := e.part(ctx, Part{*s.Body, 1})
	if len(data) > 0 || ended || err != nil {
		return abi.Ready()
	}
	return e.wakeUp()
}

// wakeUp returns what is closed when something arrives or the body ends. It needs e.mu.
func (e *Exchange) wakeUp() <-chan struct{} {
	if e.more == nil {
		e.more = make(chan struct{})
	}
	return e.more
}

// Part is the record `part`: a place in a body.
type Part struct {
	Offset uint64
	Len    uint32
}

// part returns what is there of a part, and whether the body ends before it has more. It needs e.mu.
func (e *Exchange) part(ctx context.Context, p Part) (data []byte, ended bool, err error) {
	n := int(min(p.Len, blob.MaxBytes))
	switch {
	case e.arriving != nil:
		if p.Offset <= math.MaxInt64 {
			data, err = e.arriving.Bytes(int64(p.Offset), n)
		}
		return data, false, err
	case e.body != nil:
		data, err = e.body.Bytes(ctx, p.Offset, uint32(n))
		return data, true, err
	}
	if e.ended {
		return nil, true, cmp.Or(e.bodyErr, error(errTaken))
	}
	return nil, false, nil
}

// Head returns the start of the response, and waits for it. It fails with what the exchange failed with: abi.ErrDenied
// after a redirect or for an address, abi.ErrTimedOut, or abi.ErrUnavailable.
func (e *Exchange) Head(ctx context.Context) (Head, error) {
	if err := wait(ctx, e.headed); err != nil {
		return Head{}, err
	}
	return e.head, e.err
}

// Text returns the whole body as text, and waits for it. Beyond the errors of Head and [blob.Blob.Text] it fails with
// abi.ErrTooLarge when the body is larger than its rule allows, and with abi.ErrExhausted when it is larger than what the
// host still holds for the call.
func (e *Exchange) Text(ctx context.Context, max uint64) (string, error) {
	body, err := e.wholeBody(ctx)
	if err != nil {
		return "", err
	}
	return body.Text(ctx, max)
}

// Blob hands the whole body over, and waits for it; it can be taken once. With a part it copies, waits for, at least one
// byte from the offset on and at most 256 KiB; nothing is the end of the body. The caller closes the blob. It fails as Text
// does.
func (e *Exchange) Blob(ctx context.Context, part *Part) (*blob.Blob, error) {
	if part != nil {
		return e.blobOf(ctx, *part)
	}
	body, err := e.wholeBody(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.body == nil {
		return nil, errTaken
	}
	e.body = nil
	return body, nil
}

func (e *Exchange) blobOf(ctx context.Context, part Part) (*blob.Blob, error) {
	if part.Len == 0 {
		return nil, abi.Errorf(abi.CodeInvalid, "a part of no bytes")
	}
	for {
		e.mu.Lock()
		data, ended, err := e.part(ctx, part)
		more := e.wakeUp()
		e.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if len(data) > 0 || ended {
			return e.keep(data)
		}
		if err := wait(ctx, more); err != nil {
			return nil, err
		}
	}
}

// keep makes a blob that is charged as the body itself is.
func (e *Exchange) keep(data []byte) (*blob.Blob, error) {
	builder := blob.NewBuilder(blob.Options{Quota: e.held})
	defer func() { _ = builder.Close() }() // drops what did not become a blob
	if _, err := builder.Write(data); err != nil {
		return nil, err
	}
	return builder.Blob()
}

var errTaken = abi.Errorf(abi.CodeInvalid, "the body was taken, or the exchange closed")

func (e *Exchange) wholeBody(ctx context.Context) (*blob.Blob, error) {
	if err := wait(ctx, e.done); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.bodyErr != nil:
		return nil, e.bodyErr
	case e.body == nil:
		return nil, errTaken
	}
	return e.body, nil
}

func wait(ctx context.Context, until <-chan struct{}) error {
	select {
	case <-until:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the exchange: %w", ctx.Err())
	}
}

// Close ends the exchange if it still goes on and drops the body unless it was taken. When it returns, the exchange has
// no goroutine any more. Closing again does nothing.
func (e *Exchange) Close() error {
	e.stop(nil)
	<-e.done
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held.Release(e.headSize)
	e.headSize = 0
	if e.body == nil {
		return nil
	}
	body := e.body
	e.body = nil
	return body.Close()
}
