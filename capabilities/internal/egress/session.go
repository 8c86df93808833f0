package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
)

// session is one connected client.
type session struct {
	proxy  *Proxy
	ctx    context.Context // ends with the client
	cancel context.CancelFunc
	client net.Conn // the socket
	idle   *time.Timer
}

func newSession(p *Proxy, conn net.Conn) *session {
	s := &session{proxy: p, client: conn}
	s.ctx, s.cancel = context.WithCancel(p.ctx)
	return s
}

// Processor time that a client causes, by connecting and by a request. A refused request is the last of its connection.
const (
	connectionWork = 100 * time.Microsecond
	requestWork    = 100 * time.Microsecond
)

// run serves the client to its end. The caller closes the socket.
func (s *session) run() {
	end := func() {
		s.cancel()
		_ = s.client.Close()
	}
	defer end()
	s.idle = time.AfterFunc(s.proxy.options.Limits.Idle, end)
	defer s.idle.Stop()
	defer time.AfterFunc(s.proxy.options.Limits.Total, end).Stop()
	if err := abi.Work(s.ctx, connectionWork); err != nil {
		s.proxy.refused(err)
		return
	}
	conn := watched{s.client, s}
	s.serve(&stream{conn, bufio.NewReader(conn)}, nil)
}

// watched is the client's socket. What it carries keeps the session from being idle.
type watched struct {
	net.Conn
	session *session
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.session.idle.Reset(w.session.proxy.options.Limits.Idle)
	}
	return n, err
}

func (w watched) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if n > 0 {
		w.session.idle.Reset(w.session.proxy.options.Limits.Idle)
	}
	return n, err
}

// CloseWrite tells the client that no more bytes come.
func (w watched) CloseWrite() error { return closeWrite(w.Conn) }

// stream is a connection whose bytes pass a buffer.
type stream struct {
	net.Conn
	in *bufio.Reader
}

func (s *stream) Read(p []byte) (int, error) { return s.in.Read(p) }

// CloseWrite tells the client that no more bytes come.
func (s *stream) CloseWrite() error { return closeWrite(s.Conn) }

// door is where requests arrive in a tunnel: the origin that the tunnel is for.
type door struct {
	scheme, authority string
	passage           *http.Passage
}

// serve answers requests until the connection ends. at is nil outside of tunnels.
func (s *session) serve(c *stream, at *door) {
	for first := true; ; first = false {
		if !first { // a client may wait between requests
			if _, err := c.in.Peek(1); err != nil {
				return
			}
		}
		_ = c.SetReadDeadline(time.Now().Add(s.proxy.options.Limits.Head))
		h, err := readHead(c.in)
		_ = c.SetReadDeadline(time.Time{})
		if err != nil {
			s.answerHead(c, err)
			return
		}
		if err := abi.Work(s.ctx, requestWork); err != nil {
			s.refuse(c, err)
			return
		}
		if s.proxy.left.Load() <= 0 { // otherwise a client could still open connections to servers
			s.refuse(c, s.proxy.errBytes())
			return
		}
		if at == nil && h.method == nethttp.MethodConnect {
			s.connect(c, h)
			return
		}
		if !s.exchange(c, h, at) {
			return
		}
	}
}

// answerHead answers a request that has no valid head.
func (s *session) answerHead(c *stream, err error) {
	timeout, isNet := errors.AsType[net.Error](err)
	malformed, ok := errors.AsType[headError](err)
	switch {
	case ok:
		s.answer(c, nethttp.StatusBadRequest, malformed.Error())
	case errors.Is(err, errLongHead):
		s.answer(c, nethttp.StatusRequestHeaderFieldsTooLarge, err.Error())
	case isNet && timeout.Timeout():
		s.answer(c, nethttp.StatusRequestTimeout, "the head of the request took too long")
	}
}

// refuse reports an error and answers with it.
func (s *session) refuse(c *stream, err error) {
	s.proxy.refused(err)
	status := nethttp.StatusBadGateway
	if known, ok := errors.AsType[*abi.Error](err); ok {
		switch known.Code {
		case abi.CodeDenied:
			status = nethttp.StatusForbidden
		case abi.CodeInvalid:
			status = nethttp.StatusBadRequest
		case abi.CodeTimedOut:
			status = nethttp.StatusGatewayTimeout
		case abi.CodeExhausted:
			status = nethttp.StatusServiceUnavailable
		default:
		}
	}
	s.answer(c, status, err.Error())
}

// Bounds of the end of a connection whose client may still send.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

// answer sends a status of the proxy's own, and ends the connection. It reads a little of what the client still sends, because otherwise
// the client's system could drop the answer.
func (s *session) answer(c *stream, status int, text string) {
	if s.ctx.Err() != nil { // it would be about the end of the session itself
		return
	}
	text = "stile: " + text + "\n"
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, nethttp.StatusText(status), len(text), text)
	if err != nil || c.CloseWrite() != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c, lingerBytes)
}

// exchange sends one request, and reports whether another may follow.
func (s *session) exchange(c *stream, h *head, at *door) bool {
	passage, err := s.authorise(h, at)
	if err != nil {
		s.refuse(c, err)
		return false
	}
	if h.expects {
		if _, err := io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return false
		}
	}
	content := h.body(c.in)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stop := func() {}
	if h.length == 0 {
		stop = s.watch(c, cancel)
	}
	response, err := passage.RoundTrip(ctx, content, h.length)
	if err != nil {
		stop()
		content.stop(s.interrupt)
		_ = s.client.SetReadDeadline(time.Time{})
		s.refuse(c, err)
		return false
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == nethttp.StatusSwitchingProtocols {
		stop()
		s.upgrade(c, h, response)
		return false
	}
	keep := !h.last()
	if response.ContentLength < 0 && h.minor == 1 {
		response.TransferEncoding = []string{"chunked"}
	}
	response.ProtoMajor, response.ProtoMinor, response.Close = 1, 1, !keep
	out := bufio.NewWriter(c)
	response.Body = flushing{response.Body, out}
	err = response.Write(struct{ io.Writer }{out}) // without ReadFrom, which would read into what Read flushes
	if err == nil {
		err = out.Flush()
	}
	stop()
	whole := content.stop(s.interrupt)
	if err != nil {
		s.proxy.refused(err) // if a limit ended the response
	}
	return err == nil && keep && whole
}

// interrupt ends reads from the client.
func (s *session) interrupt() { _ = s.client.SetReadDeadline(time.Unix(1, 0)) }

// watch cancels if the client leaves while it waits for the response. The function that it returns ends that.
func (s *session) watch(c *stream, cancel context.CancelFunc) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := c.in.Peek(1); err != nil {
			if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
				cancel()
			}
		}
	}()
	return sync.OnceFunc(func() {
		s.interrupt()
		<-done
		_ = s.client.SetReadDeadline(time.Time{})
	})
}

// flushing sends what was written before it waits for more to write.
type flushing struct {
	io.ReadCloser
	out *bufio.Writer
}

func (f flushing) Read(p []byte) (int, error) {
	if err := f.out.Flush(); err != nil {
		return 0, err
	}
	return f.ReadCloser.Read(p)
}

// authorise returns the passage of a request. In a tunnel, a request has a path as its target, and is for the origin of the tunnel.
// Otherwise it has an http URL.
func (s *session) authorise(h *head, at *door) (*http.Passage, error) {
	if at != nil {
		if !strings.HasPrefix(h.target, "/") {
			return nil, abi.Errorf(abi.CodeInvalid, "the target of the request is not a path")
		}
		if h.hasHost && !at.passage.Serves(h.host) {
			return nil, at.passage.Deny(fmt.Sprintf("the request in the tunnel names the host %.100q", h.host))
		}
		return s.proxy.gateway.Request(h.method, at.scheme, at.authority, h.target, h.forwarded())
	}
	scheme, rest, _ := strings.Cut(h.target, "://")
	if !strings.EqualFold(scheme, "http") {
		return nil, abi.Errorf(abi.CodeInvalid, "the target of the request is not a URL that starts with http://")
	}
	authority, path := rest, "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
		if path[0] == '?' {
			path = "/" + path
		}
	}
	passage, err := s.proxy.gateway.Request(h.method, "http", authority, path, h.forwarded())
	if err == nil && h.hasHost && !passage.Serves(h.host) {
		return nil, abi.Errorf(abi.CodeInvalid, "the Host header names another host than the URL")
	}
	return passage, err
}

// upgrade passes on the bytes of a WebSocket.
func (s *session) upgrade(c *stream, h *head, response *nethttp.Response) {
	server, ok := response.Body.(io.ReadWriteCloser)
	if !ok || !h.webSocket() || !strings.EqualFold(response.Header.Get("Upgrade"), "websocket") {
		s.answer(c, nethttp.StatusBadGateway, "the server switches to another protocol")
		return
	}
	out := bufio.NewWriter(c)
	_, _ = out.WriteString("HTTP/1.1 101 Switching Protocols\r\n") // Flush returns the error
	_ = response.Header.Write(out)
	_, _ = out.WriteString("\r\n")
	if out.Flush() == nil {
		s.join(c, server)
	}
}
