package http

import (
	"bytes"
	"context"
	"io"
	"maps"
	nethttp "net/http"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
)

// Request is the record `request`.
type Request struct {
	Method   string
	URL      string
	Headers  []Header
	Content  Content
	Redirect Redirect
	// Timeout is in milliseconds, for the whole exchange. If it is nil, only the grant's applies.
	Timeout *uint32
}

// Content is the variant `content`: only the field that Case names is set. A blob belongs to the request.
type Content struct {
	Case  ContentCase
	Text  *string
	Bytes *[]byte
	Blob  *blob.Blob
}

// ContentCase is a case of [Content].
type ContentCase uint8

// The cases of the variant `content`, in its order.
const (
	ContentNone ContentCase = iota
	ContentText
	ContentBytes
	ContentBlob
)

// Redirect is the enum `redirect`: how to handle a server's redirect.
type Redirect uint8

// The cases of the enum `redirect`, in its order.
const (
	// RedirectFollow follows up to 10 redirects. The rules must allow each.
	RedirectFollow Redirect = iota
	// RedirectManual answers with the redirect itself.
	RedirectManual
	// RedirectError fails with abi.ErrUnavailable.
	RedirectError
)

// request is a checked request.
type request struct {
	method string
	target *target
	// originOnly is set if only the scheme, host and port of the request are known, or compared.
	originOnly bool
	header     header
	content    Content
	redirect   Redirect
	// key is the idempotency key, if the rule names a header for it.
	key string
	// accepts are the encodings of the response that the host can decode.
	accepts string
	// from is the URL that redirected here. It is empty for the first request.
	from string
	// rule is the rule that allows the request, after authorisation.
	rule *compiled
	// maxResponse is the largest body of the response in bytes, after authorisation.
	maxResponse int64
	// crossed is set once a redirect has led to another origin.
	crossed bool
	// secrets are those sent with the request, and with the requests that were redirected to it.
	secrets secrets
}

// newRequest checks everything that needs no rule.
func newRequest(ctx context.Context, r Request) (*request, error) {
	method, err := normalMethod(r.Method)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "%v", err)
	}
	target, err := parseTarget(r.URL)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "%v", err)
	}
	header, err := requestHeader(r.Headers)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "%v", err)
	}
	if r.Content.Case != ContentNone && (method == "GET" || method == "HEAD") {
		return nil, abi.Errorf(abi.CodeInvalid, "a %s request has no content", method)
	}
	if !r.Content.valid() || r.Redirect > RedirectError {
		return nil, abi.Errorf(abi.CodeInvalid, "content or redirect is not a case of its type")
	}
	if kind := r.Content.mediaType(ctx); kind != "" && header["content-type"] == nil {
		header["content-type"] = []string{kind}
	}
	return &request{method: method, target: target, header: header, content: r.Content, redirect: r.Redirect}, nil
}

func (c Content) valid() bool {
	switch c.Case {
	case ContentNone:
		return true
	case ContentText:
		return c.Text != nil
	case ContentBytes:
		return c.Bytes != nil
	default:
		return c.Case == ContentBlob && c.Blob != nil
	}
}

// mediaType returns the type of the content, as far as it is known without a header.
func (c Content) mediaType(ctx context.Context) string {
	switch c.Case {
	case ContentText:
		return "text/plain;charset=UTF-8"
	case ContentBlob:
		return c.Blob.MediaType(ctx)
	default:
		return ""
	}
}

// open returns the content from its start, and its size.
func (c Content) open() (io.Reader, int64) {
	switch c.Case {
	case ContentText:
		return strings.NewReader(*c.Text), int64(len(*c.Text))
	case ContentBytes:
		return bytes.NewReader(*c.Bytes), int64(len(*c.Bytes))
	case ContentBlob:
		reader := c.Blob.Reader()
		return reader, reader.Size()
	default:
		return nethttp.NoBody, 0
	}
}

// held returns how many bytes of the content's memory are not charged elsewhere.
func (c Content) held() int64 {
	if c.Case == ContentBlob {
		return 0
	}
	_, size := c.open()
	return size
}

// close drops a blob. A failure to close the content of a sent request does not matter.
func (c Content) close() {
	if c.Blob != nil {
		_ = c.Blob.Close()
	}
}

// http returns the request for net/http. The Host header and the address to dial both come from the target.
func (q *request) http(ctx context.Context) *nethttp.Request {
	made := (&nethttp.Request{
		Method: q.method, URL: q.target.url(), Host: q.target.authority(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: nethttp.Header{},
	}).WithContext(ctx)
	for name, values := range q.header {
		for _, value := range values {
			made.Header.Add(name, value)
		}
	}
	if q.header["user-agent"] == nil {
		made.Header.Set("User-Agent", "stile")
	}
	if q.header["range"] == nil && q.method != "HEAD" {
		made.Header.Set("Accept-Encoding", q.accepts)
	}
	reader, size := q.content.open()
	made.ContentLength = size
	if size == 0 {
		return made
	}
	made.Body = io.NopCloser(reader)
	made.GetBody = func() (io.ReadCloser, error) {
		reader, _ := q.content.open()
		return io.NopCloser(reader), nil
	}
	return made
}

// redirected returns the request that follows a redirect with this status, as the Fetch standard says.
func (q *request) redirected(status int, to *target) *request {
	next := *q
	next.target, next.from, next.header = to, q.target.withoutQuery(), maps.Clone(q.header)
	becomesGet := status == nethttp.StatusSeeOther && q.method != "HEAD" ||
		(status == nethttp.StatusMovedPermanently || status == nethttp.StatusFound) && q.method == "POST"
	if becomesGet && q.method != "GET" {
		next.method, next.content = "GET", Content{}
		for _, name := range []string{"content-encoding", "content-language", "content-location", "content-type"} {
			delete(next.header, name)
		}
	}
	if to.origin() != q.target.origin() {
		next.crossed = true
		// Headers for one server must not go to another: authorization, cookies, custom headers with keys.
		for name := range next.header {
			if !safeHeader(name) {
				delete(next.header, name)
			}
		}
	}
	return &next
}
