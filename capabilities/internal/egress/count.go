package egress

import (
	"io"
	"net"

	"github.com/stilehost/stile/abi"
)

// counted returns a new connection to a server whose bytes count.
func (p *Proxy) counted(conn net.Conn) net.Conn {
	c := &countedConn{Conn: conn, proxy: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = conn.Close() // uses fail
	} else {
		p.open[c] = struct{}{}
	}
	return c
}

// countedConn is a connection to a server. What it carries counts, exactly.
type countedConn struct {
	net.Conn
	proxy *Proxy
}

// Read implements io.Reader.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if granted, refused := c.proxy.take(n); refused != nil {
		return granted, refused
	}
	return n, err
}

// Write implements io.Writer.
func (c *countedConn) Write(p []byte) (int, error) {
	granted, refused := c.proxy.take(len(p))
	n, err := c.Conn.Write(p[:granted])
	if err == nil {
		err = refused
	}
	return n, err
}

// CloseWrite tells the server that no more bytes come.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

// Close implements io.Closer.
func (c *countedConn) Close() error {
	c.proxy.mu.Lock()
	delete(c.proxy.open, c)
	c.proxy.mu.Unlock()
	return c.Conn.Close()
}

// take takes bytes from the limit, and charges them. It returns how many may be carried, with an error if that is not all.
func (p *Proxy) take(n int) (int, error) {
	var granted int64
	for {
		left := p.left.Load()
		granted = min(int64(n), left)
		if p.left.CompareAndSwap(left, left-granted) {
			break
		}
	}
	if p.options.Charge != nil && granted > 0 {
		if err := p.options.Charge(int(granted)); err != nil {
			return 0, err
		}
	}
	if granted < int64(n) {
		return int(granted), p.errBytes()
	}
	return n, nil
}

func (p *Proxy) errBytes() error {
	return abi.Errorf(abi.CodeExhausted, "bytes carried by the proxy: %d", p.options.Limits.Bytes)
}

// closeWrite closes one direction of a connection, or all of it if it has no such thing.
func closeWrite(c io.Closer) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
