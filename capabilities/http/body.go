package http

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"mime"
	nethttp "net/http"
	"runtime"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
)

// tooLarge is the error of a response of so many bytes, or more than so many.
func tooLarge(size uint64, limit int64) error {
	return abi.TooLarge(size, fmt.Sprintf("its rule takes in at most %d of each response: \"maxResponse\" of the rule raises that, and max-response=N of --bind", limit))
}

// receive reads the body to its end.
func (e *Exchange) receive(ctx context.Context, c *Client, response *nethttp.Response, encoding string, q *request) (err error) {
	limit := q.maxResponse
	if encoding == "" && response.ContentLength > limit && response.Request.Method != "HEAD" {
		return tooLarge(uint64(response.ContentLength), limit)
	}
	kind := mediaType(q.secrets.mask(response.Header.Get("Content-Type")))
	e.mu.Lock()
	e.arriving = e.builder(kind, limit)
	e.mu.Unlock()
	c.call.bodies.Store(e, nil)
	defer c.call.bodies.Delete(e)
	turn := turn{ctx: ctx}
	defer turn.give()
	var decoding decoderPlace
	var body io.Reader = chargedReader{waitingReader{&turn, meteredReader{ctx, response.Body}}, c.call.received}
	if encoding != "" {
		decoding.of = c.call.decoding
		if err := decoding.take(ctx); err != nil {
			return err
		}
		defer decoding.give()
		runtime.LockOSThread() // the processor time of this thread is measured
		defer runtime.UnlockOSThread()
		work := &working{ctx, threadTime()}
		defer func() { err = cmp.Or(err, work.charge()) }()
		decoded, err := decode(workingReader{work, body}, encoding, limit)
		if err != nil {
			return err
		}
		defer func() { _ = decoded.Close() }()
		body = workingReader{work, chargedReader{decoded, c.call.received}}
	}
	if q.secrets.forms != nil {
		body = maskedReader{ctx, &maskReader{r: body, secrets: q.secrets}}
	}
	_, err = io.Copy(bodyWriter{ctx, e, &decoding}, turnReader{&turn, body})
	return err
}

// mediaType returns a media type, or nothing if it is not valid or too long for a blob.
func mediaType(kind string) string {
	if !blob.ValidMediaType(kind) { // first, because a server could make parsing take long
		return ""
	}
	if _, _, err := mime.ParseMediaType(kind); err != nil {
		return ""
	}
	return kind
}

// blobs are the options of blobs whose bytes count as held.
func (c *Client) blobs() blob.Options {
	return blob.Options{Dir: c.grant.options.TempDir, Quota: c.call.held, Lasts: true}
}

// Restore implements [abi.Restorer], for the body of a response.
func (c *Client) Restore(_ context.Context, resource string, state []byte) (any, error) {
	return blob.Restore(resource, state, c.blobs())
}

// builder returns a builder whose bytes count as held.
func (e *Exchange) builder(mediaType string, limit int64) *blob.Builder {
	o := e.client.blobs()
	o.MediaType, o.Limit = mediaType, limit
	return blob.NewBuilder(o)
}

// contentWork is the processor time for a byte of a body: to receive it, hash it and keep it.
const contentWork = 2 * time.Nanosecond

// meteredReader charges the bytes that it reads to the meter of the exchange, and processor time for them to the call.
type meteredReader struct {
	ctx context.Context
	r   io.Reader
}

func (m meteredReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	exchangeOf(m.ctx).content(n)
	if refused := abi.Charge(m.ctx, n); refused != nil {
		return 0, refused
	}
	if refused := abi.Work(m.ctx, time.Duration(n)*contentWork); refused != nil {
		return 0, abi.Errorf(abi.CodeExhausted, "processor time of the call, to receive the response: %v", refused)
	}
	return n, err
}

// maskedReader charges processor time for the bytes that it reads from a maskReader.
type maskedReader struct {
	ctx context.Context
	r   *maskReader
}

func (m maskedReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if refused := abi.Work(m.ctx, time.Duration(n)*maskWork); refused != nil {
		return 0, abi.Errorf(abi.CodeExhausted, "processor time of the call, to look for the credential in the response: %v", refused)
	}
	return n, err
}

// bodyWriter keeps the body as it arrives.
type bodyWriter struct {
	ctx      context.Context
	e        *Exchange
	decoding *decoderPlace
}

func (w bodyWriter) Write(p []byte) (n int, err error) {
	if err := w.e.pace(w.ctx, w.decoding); err != nil {
		return 0, err
	}
	err = w.e.client.call.room(func() (err error) {
		w.e.mu.Lock()
		defer w.e.mu.Unlock()
		n, err = w.e.arriving.Write(p)
		w.e.arrivedBytes += int64(n)
		w.e.arrived()
		return err
	})
	return n, err
}

// decoderPlace is a place among the bodies of a call that are decompressed at a time. It is not safe for concurrent use.
type decoderPlace struct {
	of    chan struct{} // nil if the body is not compressed
	taken bool
}

func (p *decoderPlace) take(ctx context.Context) error {
	if p.of == nil || p.taken {
		return nil
	}
	select {
	case p.of <- struct{}{}:
		p.taken = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *decoderPlace) give() {
	if p.taken {
		p.taken = false
		<-p.of
	}
}

// pace waits while the body is far ahead of its reader, by a sixteenth of what the call may hold, and the call has less than a quarter of
// that left. A body that somebody waits for never does: one who wants all of it, or more than has arrived. It waits without its place to be
// decompressed, so that those that somebody waits for are.
func (e *Exchange) pace(ctx context.Context, decoding *decoderPlace) error {
	held := e.client.call.held
	for {
		e.mu.Lock()
		if e.wholly || e.arrivedBytes-e.read < held.Limit()/16 || held.Free() > held.Limit()/4 {
			e.mu.Unlock()
			return decoding.take(ctx)
		}
		if e.resume == nil {
			e.resume = make(chan struct{})
		}
		resume := e.resume
		e.mu.Unlock()
		decoding.give()
		select {
		case <-resume:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reach notes that a reader of parts has got to an offset. The caller holds e.mu.
func (e *Exchange) reach(offset uint64) {
	e.read = max(e.read, int64(min(offset, math.MaxInt64)))
	e.proceed()
}

// wantWhole notes that somebody wants the whole body. It fails if not all of it is there any more.
func (e *Exchange) wantWhole() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone > 0 {
		return e.errGone()
	}
	e.wholly = true
	e.proceed()
	return nil
}

// proceed ends pace. The caller holds e.mu.
func (e *Exchange) proceed() {
	if e.resume != nil {
		close(e.resume)
		e.resume = nil
	}
}

func (e *Exchange) errGone() error {
	return abi.Errorf(abi.CodeExhausted, "bytes held for http: %d bytes, so the first %d of the body were dropped when they had been read", e.client.call.held.Limit(), e.gone)
}

// room takes held bytes. If they are not there, it drops what readers of parts have read of bodies that still arrive, and tries again.
func (b *budget) room(take func() error) error {
	if err := take(); !b.held.IsFull(err) {
		return err
	}
	b.dropping.Lock()
	defer b.dropping.Unlock()
	for {
		err := take() // another may have dropped what there was
		if !b.held.IsFull(err) {
			return err
		}
		dropped := false
		b.bodies.Range(func(e, _ any) bool {
			some, failed := e.(*Exchange).dropRead()
			dropped, err = dropped || some, cmp.Or(failed, err)
			return true
		})
		if !dropped {
			return err
		}
	}
}

// reserve takes held bytes of memory, in the same way.
func (b *budget) reserve(n int64) error {
	return b.room(func() error { return b.memory.Reserve(n) })
}

// dropRead drops what was read in parts, and reports whether that was anything.
func (e *Exchange) dropRead() (some bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.arriving == nil || e.wholly {
		return false, nil
	}
	before := e.gone
	e.gone, err = e.arriving.DropBefore(e.read)
	return e.gone > before, err
}

// finish ends the body, which is complete if err is nil, and dropped otherwise.
func (e *Exchange) finish(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.arriving != nil {
		if err == nil && e.gone > 0 && !e.wholly { // nobody can read it from the start, so what was read is of no use
			e.gone, err = e.arriving.DropBefore(e.read)
		}
		if err == nil {
			e.body, err = e.arriving.Blob()
		}
		_ = e.arriving.Close() // drops bytes that did not become a blob
	}
	e.arriving, e.ended, e.bodyErr = nil, true, err
	e.arrived()
}

// arrived wakes callers that wait for more of the body. The caller holds e.mu.
func (e *Exchange) arrived() {
	if e.more != nil {
		e.more.SetReady()
		e.more = nil
	}
}

// wakeUp returns what is ready when more of the body arrives or the body ends. The caller holds e.mu.
func (e *Exchange) wakeUp() *abi.Pollable {
	if e.more == nil {
		e.more = new(abi.Pollable)
	}
	return e.more
}

// stallReader calls expire if a read takes too long.
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

// Part is the record `part`: a place in a body.
type Part struct {
	Offset uint64
	Len    uint32
}

// part returns the available bytes of a part, and whether the body ends before it has more. The caller holds e.mu.
func (e *Exchange) part(ctx context.Context, p Part) (data []byte, ended bool, err error) {
	n := int(min(p.Len, abi.MaxBytes))
	switch {
	case p.Offset < uint64(e.gone) && (e.arriving != nil || e.body != nil):
		return nil, false, e.errGone()
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

// Text waits for the whole body and returns it as text. In addition to the errors of Head and [blob.Blob.Text], it fails with
// abi.ErrTooLarge if the body is larger than its rule allows, and with abi.ErrExhausted if it is larger than what the host may still
// hold for the call.
func (e *Exchange) Text(ctx context.Context, max uint64) (string, error) {
	body, err := e.wholeBody(ctx)
	if err != nil {
		return "", err
	}
	return body.Text(ctx, max)
}

// Blob waits for the whole body and hands it over; it can be taken once. With a part, Blob
// waits for one byte from the offset on and copies the bytes that have arrived, at most 256
// KiB. An empty blob means the end of the body. The caller closes the blob. Errors are those of
// Text.
//
// A body that is read in parts may be larger than [Options.Held]: when the call has too few bytes left, those before the furthest offset
// that was asked for are dropped, and asking for them, or for the whole body, fails with abi.ErrExhausted.
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
		e.reach(part.Offset)
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

// keep makes a blob that is charged in the same way as the body.
func (e *Exchange) keep(data []byte) (*blob.Blob, error) {
	builder := blob.NewBuilder(blob.Options{Limit: abi.MaxBytes, Dir: e.client.grant.options.TempDir, Quota: e.client.call.held, DigestLater: true})
	defer func() { _ = builder.Close() }() // drops bytes that did not become a blob
	if err := e.client.call.room(func() error { _, err := builder.Write(data); return err }); err != nil {
		return nil, err
	}
	return builder.Blob()
}

var errTaken = abi.Errorf(abi.CodeInvalid, "the body was taken, or the exchange closed")

func (e *Exchange) wholeBody(ctx context.Context) (*blob.Blob, error) {
	if err := e.wantWhole(); err != nil {
		return nil, err
	}
	if err := wait(ctx, &e.done); err != nil {
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
