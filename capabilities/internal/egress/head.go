package egress

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"
)

// Bounds of a request's head.
const (
	maxHead    = 64 << 10 // bytes
	maxFields  = 200
	maxTrailer = 8 << 10 // bytes
)

// headError is the error of a head that is malformed, or that two parsers could read differently.
type headError struct{ why string }

func (e headError) Error() string { return "malformed request: " + e.why }

var errLongHead = errors.New("the head of the request is too long")

// head is the start of a request.
type head struct {
	method, target string
	minor          int // of HTTP/1
	host           string
	hasHost        bool
	header         nethttp.Header // without Host and what says the length
	length         int64          // -1 if the body is chunked
	expects        bool           // Expect: 100-continue
}

// readHead reads a head strictly: what it accepts, no server can read with other fields or another length. It accepts no folded lines, no
// line that ends without CRLF, no repeated Host or Content-Length, and no transfer encoding but "chunked", alone. It does not read beyond
// the head. An EOF before the first byte is io.EOF.
func readHead(in *bufio.Reader) (*head, error) {
	left := maxHead
	line, err := readLine(in, &left)
	if err != nil {
		return nil, err
	}
	h := &head{header: nethttp.Header{}}
	if err := h.start(line); err != nil {
		return nil, err
	}
	for fields := 0; ; fields++ {
		line, err := readLine(in, &left)
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case line == "":
			return h, h.finish()
		case fields == maxFields:
			return nil, errLongHead
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, headError{"a field is not NAME: VALUE"}
		}
		h.header.Add(name, value)
	}
}

// readLine reads a line that ends with CRLF, and returns it without.
func readLine(in *bufio.Reader, left *int) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if *left -= len(part); *left < 0 {
			return "", errLongHead
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return "", io.ErrUnexpectedEOF
		case err != nil:
			return "", err
		}
		text, ok := bytes.CutSuffix(line, []byte("\r\n"))
		if !ok || bytes.ContainsAny(text, "\r\x00") {
			return "", headError{"a line does not end with CRLF"}
		}
		return string(text), nil
	}
}

// start parses the request line.
func (h *head) start(line string) error {
	parts := strings.Split(line, " ")
	if len(parts) != 3 {
		return headError{"the first line is not METHOD TARGET VERSION"}
	}
	h.method, h.target = parts[0], parts[1]
	switch parts[2] {
	case "HTTP/1.1":
		h.minor = 1
	case "HTTP/1.0":
	default:
		return headError{"the version is not HTTP/1.0 or HTTP/1.1"}
	}
	if !httpguts.ValidHeaderFieldName(h.method) { // a method is a token too
		return headError{"the method is not a token"}
	}
	if h.target == "" || strings.ContainsFunc(h.target, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return headError{"the target has a character that is not printable ASCII"}
	}
	return nil
}

// finish takes the host and the length out of the header.
func (h *head) finish() error {
	hosts := h.header["Host"]
	if len(hosts) > 1 || len(hosts) == 0 && h.minor == 1 {
		return headError{"there is not exactly one Host"}
	}
	if len(hosts) == 1 {
		h.host, h.hasHost = hosts[0], true
	}
	lengths, encodings := h.header["Content-Length"], h.header["Transfer-Encoding"]
	switch {
	case len(lengths)+len(encodings) > 1:
		return headError{"the length is stated twice"}
	case len(encodings) == 1:
		if h.minor == 0 || !strings.EqualFold(encodings[0], "chunked") {
			return headError{"the transfer encoding is not chunked"}
		}
		h.length = -1
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 62)
		if err != nil || strings.Trim(lengths[0], "0123456789") != "" {
			return headError{"the length is not a number"}
		}
		h.length = int64(n)
	}
	switch expects := h.header["Expect"]; {
	case len(expects) == 1 && strings.EqualFold(expects[0], "100-continue"):
		h.expects = h.length != 0 && h.minor == 1
	case len(expects) > 0:
		return headError{"it expects something other than 100-continue"}
	}
	return nil
}

// tokens returns the elements of the lists in fields, in lower case.
func tokens(values []string) (all []string) {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.ToLower(strings.Trim(part, " \t")); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

// last reports whether the client wants the connection to end after the response.
func (h *head) last() bool {
	options := tokens(slices.Concat(h.header["Connection"], h.header["Proxy-Connection"]))
	return slices.Contains(options, "close") || h.minor == 0
}

// webSocket reports whether the request asks for a WebSocket.
func (h *head) webSocket() bool {
	return h.method == nethttp.MethodGet && h.minor == 1 && h.length == 0 &&
		slices.Contains(tokens(h.header["Connection"]), "upgrade") && slices.Equal(tokens(h.header["Upgrade"]), []string{"websocket"})
}

// forwarded returns the fields for the server: none of those that concern the connection to the proxy, and no upgrade but to a WebSocket.
func (h *head) forwarded() nethttp.Header {
	kept := h.header.Clone()
	for _, name := range tokens(h.header["Connection"]) {
		kept.Del(name)
	}
	for _, name := range []string{
		"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	} {
		kept.Del(name)
	}
	for name := range kept {
		if strings.HasPrefix(name, "Proxy-") {
			delete(kept, name)
		}
	}
	if h.webSocket() {
		kept.Set("Connection", "Upgrade")
		kept.Set("Upgrade", "websocket")
	}
	return kept
}

// body reads the content of a request, and nothing beyond it. The transport to the server reads it, maybe still when the response has
// arrived. Stop ends that.
type body struct {
	mu      sync.Mutex // locked during a Read
	r       io.Reader
	in      *bufio.Reader
	stopped bool
	ended   atomic.Bool // all of it was read
}

var errStopped = errors.New("the exchange has ended")

func (h *head) body(in *bufio.Reader) *body {
	b := &body{in: in}
	switch {
	case h.length < 0:
		b.r = httputil.NewChunkedReader(in)
	case h.length == 0:
		b.r = nethttp.NoBody
		b.ended.Store(true)
	default:
		b.r = &io.LimitedReader{R: in, N: h.length}
	}
	return b
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended.Load():
		return 0, io.EOF
	case b.stopped:
		return 0, errStopped
	}
	n, err := b.r.Read(p)
	switch limited, ok := b.r.(*io.LimitedReader); {
	case ok && limited.N == 0:
		err = io.EOF
	case ok && errors.Is(err, io.EOF):
		return n, io.ErrUnexpectedEOF
	case !ok && errors.Is(err, io.EOF):
		if err := b.trailer(); err != nil {
			return n, err
		}
	}
	b.ended.Store(errors.Is(err, io.EOF))
	return n, err
}

// trailer drops the fields after the last chunk.
func (b *body) trailer() error {
	left := maxTrailer
	for {
		line, err := readLine(b.in, &left)
		if err != nil {
			return fmt.Errorf("read the trailer: %w", err)
		}
		if line == "" {
			return nil
		}
	}
}

// Close implements io.Closer.
func (b *body) Close() error { return nil }

// stop makes reads fail, and waits for one that is under way, which interrupt must end. It reports whether all was read.
func (b *body) stop(interrupt func()) bool {
	if !b.ended.Load() {
		interrupt()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	return b.ended.Load()
}
