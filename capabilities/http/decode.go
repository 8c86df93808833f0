package http

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/fair"
)

// encodings lists the encodings that requests accept if the host decodes the response, and smallEncodings those whose decoders take little
// memory.
const (
	encodings      = "gzip, br, zstd"
	smallEncodings = "gzip"
)

// maxLarge is how many exchanges of the process may have responses in encodings whose decoders take up to 13 MiB. Each user has a share of
// them. Others do not wait: they do not accept these encodings.
const maxLarge = 16

var large = fair.NewBudget(maxLarge)

// largePlace is a place among those exchanges. It is not safe for concurrent use.
type largePlace struct {
	user  string
	taken bool
}

// take returns without a place if there is none.
func (p *largePlace) take() { p.taken = large.Take(p.user, 1) }

func (p *largePlace) give() {
	if p.taken {
		p.taken = false
		large.Give(p.user, 1)
	}
}

// accepts returns the encodings that the exchange accepts.
func (p *largePlace) accepts() string {
	if p.taken {
		return encodings
	}
	return smallEncodings
}

// encodingOf returns the encoding of the body, and removes the headers that state it.
func encodingOf(response *nethttp.Response) string {
	encoding := strings.ToLower(response.Header.Get("Content-Encoding"))
	switch encoding {
	case "x-gzip":
		encoding = "gzip"
	case "gzip", "br", "zstd":
	default:
		return ""
	}
	if !strings.Contains(response.Request.Header.Get("Accept-Encoding"), encoding) {
		return ""
	}
	response.Header.Del("Content-Encoding")
	response.Header.Del("Content-Length")
	return encoding
}

// maxWindow is how far back zstd may refer, as RFC 9659 says for HTTP. br never needs more than twice that.
const maxWindow = 8 << 20

// decode decompresses body. It also limits the compressed bytes, because a stream of empty blocks decodes to nothing for ever.
// Closing the result leaves body open.
func decode(body io.Reader, encoding string, limit int64) (io.ReadCloser, error) {
	compressed := bufio.NewReader(&limitedReader{body, limit + limit/8 + 64<<10, limit})
	if _, err := compressed.Peek(1); errors.Is(err, io.EOF) {
		return io.NopCloser(compressed), nil
	} else if err != nil {
		return nil, err // readers report it only once
	}
	switch encoding {
	case "gzip":
		return gzip.NewReader(compressed)
	case "br":
		return io.NopCloser(guarded{brotli.NewReader(compressed)}), nil
	default:
		decoder, err := zstd.NewReader(compressed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{guarded{decoder}, decoder.IOReadCloser()}, nil
	}
}

// guarded converts a panic into an error. Third-party decoders read untrusted bytes, and a panic in a goroutine ends the whole
// program.
type guarded struct{ io.Reader }

func (g guarded) Read(p []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("the decoder failed: %v", r)
		}
	}()
	return g.Reader.Read(p)
}

// limitedReader fails where io.LimitedReader would return EOF.
type limitedReader struct {
	r    io.Reader
	left int64
	size int64 // the size for the error
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, tooLarge(uint64(l.size), l.size)
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// working is processor time of this thread, for which a call is charged.
type working struct {
	ctx   context.Context
	since time.Duration // the thread's time at the last charge
}

func (w *working) charge() error {
	now := threadTime()
	took := now - w.since
	w.since = now
	if refused := abi.Work(w.ctx, took); refused != nil {
		return abi.Errorf(abi.CodeExhausted, "processor time of the call, to decompress the response: %v", refused)
	}
	return nil
}

// workingReader charges processor time after each read. It sits before and after the decoder, because a body can take much work and decode
// to nothing. After a read that fails, nothing is left to stop: who reads charges that once, however many readers it passes.
type workingReader struct {
	work *working
	r    io.Reader
}

func (w workingReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil {
		return n, err
	}
	if err := w.work.charge(); err != nil {
		return 0, err
	}
	return n, nil
}

// chargedReader charges the bytes that it reads to the call. Nothing is given back.
type chargedReader struct {
	r     io.Reader
	quota *blob.Quota
}

func (c chargedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if refused := c.quota.Reserve(int64(n)); refused != nil {
		return 0, refused
	}
	return n, err
}
