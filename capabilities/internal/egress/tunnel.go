package egress

import (
	"bufio"
	"crypto/tls"
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

// connect answers CONNECT: it authorises the host and port, and then what the tunnel begins with.
func (s *session) connect(c *stream, h *head) {
	if h.length != 0 || h.expects {
		s.answer(c, nethttp.StatusBadRequest, "malformed request: a CONNECT request has no content")
		return
	}
	if !hasPort(h.target) {
		s.answer(c, nethttp.StatusBadRequest, "malformed request: the target of a CONNECT request is not HOST:PORT")
		return
	}
	secure, noSecure := s.proxy.gateway.Origin("https", h.target)
	plain, noPlain := s.proxy.gateway.Origin("http", h.target)
	if noSecure != nil && noPlain != nil {
		err := noSecure
		if strings.HasSuffix(h.target, ":80") {
			err = noPlain
		}
		s.refuse(c, err)
		return
	}
	if h.hasHost && !h.names(secure, plain) {
		s.answer(c, nethttp.StatusBadRequest, "malformed request: the Host header names another host than the target")
		return
	}
	var server net.Conn
	if secure != nil && s.proxy.issuer == nil {
		var err error
		if server, err = secure.Dial(s.ctx); err != nil {
			s.refuse(c, err)
			return
		}
		defer func() { _ = server.Close() }()
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(s.proxy.options.Limits.Head))
	first, err := c.in.Peek(1)
	if err != nil {
		return
	}
	switch isTLS := first[0] == tlsHandshake; {
	case isTLS && secure == nil:
		s.proxy.refused(noSecure)
	case isTLS && s.proxy.issuer != nil:
		s.intercept(c, &door{"https", h.target, secure})
	case isTLS:
		s.tunnel(c, server, secure)
	case plain == nil:
		s.proxy.refused(denyPlain(secure))
	default:
		_ = c.SetReadDeadline(time.Time{})
		if server != nil {
			_ = server.Close()
		}
		s.serve(c, &door{"http", h.target, plain})
	}
}

// hasPort reports whether an authority states its port.
func hasPort(authority string) bool {
	return strings.LastIndexByte(authority, ':') > strings.LastIndexByte(authority, ']')
}

// names reports whether the Host header of a CONNECT request, which may leave out the port, names the target.
func (h *head) names(passages ...*http.Passage) bool {
	host := h.host
	if !hasPort(host) {
		host += h.target[strings.LastIndexByte(h.target, ':'):]
	}
	for _, p := range passages {
		if p != nil && p.Serves(host) {
			return true
		}
	}
	return false
}

// tlsHandshake is the first byte of a TLS connection.
const tlsHandshake = 0x16

// denyPlain returns the denial of a tunnel that begins with something else than TLS.
func denyPlain(allowed *http.Passage) error {
	return allowed.Deny("the tunnel does not begin with a TLS handshake, which a rule for https requires")
}

// checkName returns a denial if a ClientHello names another server than the rule allows.
func checkName(allowed *http.Passage, name string) error {
	if name != "" && !allowed.Names(name) {
		return allowed.Deny(fmt.Sprintf("the TLS handshake names the server %.100q", name))
	}
	return nil
}

// tunnel passes on TLS, once the client has named the server that the rule allows. The read deadline for the ClientHello is set.
func (s *session) tunnel(c *stream, server net.Conn, allowed *http.Passage) {
	name, seen, err := readHello(c)
	_ = c.SetReadDeadline(time.Time{})
	switch {
	case errors.Is(err, errHello):
		err = denyPlain(allowed)
	case err == nil:
		err = checkName(allowed, name)
	}
	if err != nil {
		s.proxy.refused(err)
		return
	}
	if _, err := server.Write(seen); err != nil {
		s.proxy.refused(err)
		return
	}
	s.join(c, server)
}

// handshakeWork is the processor time of a handshake with a client, with a certificate for it.
const handshakeWork = 500 * time.Microsecond

// intercept ends TLS, and answers the requests in it. The read deadline for the handshake is set.
func (s *session) intercept(c *stream, at *door) {
	if err := abi.Work(s.ctx, handshakeWork); err != nil {
		s.proxy.refused(err)
		return
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if err := checkName(at.passage, hello.ServerName); err != nil {
				s.proxy.refused(err)
				return nil, err
			}
			return s.proxy.issuer.certificate(at.passage.Name())
		},
	}
	inside := tls.Server(c, config)
	err := inside.HandshakeContext(s.ctx)
	_ = c.SetReadDeadline(time.Time{})
	if err != nil {
		return
	}
	defer func() { _ = inside.Close() }()
	s.serve(&stream{inside, bufio.NewReader(inside)}, at)
}

// copySize is the size of the buffer for one direction of a tunnel, in bytes.
const copySize = 16 << 10

// join passes on bytes in both directions until both have ended, or one fails.
func (s *session) join(client net.Conn, server io.ReadWriteCloser) {
	stop := sync.OnceFunc(func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	var up sync.WaitGroup
	up.Go(func() {
		if s.pass(server, client) != nil {
			stop()
		}
	})
	if s.pass(client, server) != nil {
		stop()
	}
	up.Wait()
}

// pass copies one direction to its end, and passes on the end.
func (s *session) pass(to io.WriteCloser, from io.Reader) error {
	buffer := make([]byte, copySize)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = failed
			}
		}
		if errors.Is(err, io.EOF) {
			return closeWrite(to)
		}
		if err != nil {
			if known, ok := errors.AsType[*abi.Error](err); ok {
				s.proxy.refused(known)
			}
			return err
		}
	}
}
