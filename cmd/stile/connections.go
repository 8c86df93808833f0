package main

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/stilehost/stile/extension/lifecycle"
)

// connections is a listener with a bound on its open connections. When one more arrives, the client with the most of them loses the one that it
// has not used for the longest time. So no client keeps the others out, and neither do all strangers, who count as one.
type connections struct {
	net.Listener
	most int

	mu   sync.Mutex
	open *list.List // of *connection; the one that was used last is last
}

// maxUnread is how many bytes the system keeps for a connection in each direction. Linux counts twice as much, with its own data.
const maxUnread = 64 << 10

// limitBuffers bounds what the system keeps for a connection, or it keeps tens of megabytes for a client that sends and does not read.
func limitBuffers(c net.Conn) error {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	return errors.Join(tcp.SetReadBuffer(maxUnread), tcp.SetWriteBuffer(maxUnread))
}

// connection belongs to nobody until its first request from somebody who is known.
type connection struct {
	net.Conn
	of     *connections
	at     *list.Element // nil once it is closed; guarded by of.mu, as is client
	client string
}

func newConnections(l net.Listener, most int) *connections {
	return &connections{Listener: l, most: most, open: list.New()}
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	for err == nil && limitBuffers(accepted) != nil {
		_ = accepted.Close() // it is broken
		accepted, err = l.Listener.Accept()
	}
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: accepted, of: l}
	if loser := l.add(c); loser != nil {
		if tcp, ok := loser.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // or the system keeps megabytes that nobody reads
		}
		_ = loser.Close() // nobody can do anything about an error
	}
	return c, nil
}

// add adds a connection, and returns the one that gives way to it.
func (l *connections) add(c *connection) (loser *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.at = l.open.PushBack(c)
	if l.open.Len() <= l.most {
		return nil
	}
	has := map[string]int{}
	for e := l.open.Front(); e != nil; e = e.Next() {
		has[e.Value.(*connection).client]++
	}
	for e := l.open.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*connection); loser == nil || has[c.client] > has[loser.client] {
			loser = c
		}
	}
	return loser
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	if c.at != nil {
		c.of.open.Remove(c.at)
		c.at = nil
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

type connectionKey struct{}

// withConnection is for [http.Server.ConnContext].
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// used says whose request a connection has brought.
func used(r *http.Request, client string) {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.client = client
	if c.at != nil {
		c.of.open.MoveToBack(c.at)
	}
}

// usedByAgents says which requests come from agents.
func usedByAgents(next http.Handler, holder func(token string) (lifecycle.Viewer, bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fields := strings.Fields(r.Header.Get("Authorization")); len(fields) == 2 {
			if v, ok := holder(fields[1]); ok {
				used(r, v.String())
			}
		}
		next.ServeHTTP(w, r)
	})
}
