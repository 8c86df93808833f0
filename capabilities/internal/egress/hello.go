package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
)

// maxHello is the largest start of a TLS connection that readHello reads, in bytes.
const maxHello = 64 << 10

var (
	errHello  = errors.New("the first bytes are not a TLS ClientHello")
	errListen = errors.New("the ClientHello was read")
)

// readHello reads a TLS ClientHello, in any number of records and pieces, and returns the server name in it, or "", and all bytes that it
// has read. The parser is that of crypto/tls.
func readHello(from net.Conn) (name string, read []byte, err error) {
	var seen bytes.Buffer
	heard := false
	config := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name, heard = hello.ServerName, true
		return nil, errListen
	}}
	client := listening{from, io.TeeReader(io.LimitReader(from, maxHello), &seen)}
	err = tls.Server(client, config).Handshake() //nolint:noctx // the connection has a deadline
	if heard {
		return name, seen.Bytes(), nil
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "", nil, err
	}
	return "", nil, errHello
}

// listening is a connection that sends nothing.
type listening struct {
	net.Conn
	from io.Reader
}

// Read reads what the handshake is given.
func (l listening) Read(p []byte) (int, error) { return l.from.Read(p) }

// Write drops the alert with which the handshake ends.
func (listening) Write(p []byte) (int, error) { return len(p), nil }
