package mcp

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxCalls is how many calls a session may have under way, maxAgentCalls how many an agent may have in all its sessions, and maxServerCalls
// how many all agents may have, which they divide: an agent has no more than remain for others.
const (
	maxCalls       = 64
	maxAgentCalls  = 256
	maxServerCalls = 1000
)

var (
	errSessionOver = fmt.Errorf("the session is over: %w", context.Canceled)
	errClientGone  = fmt.Errorf("the client is gone: %w", context.Canceled)
)

// session is our state for a client, in addition to the SDK's session.
type session struct {
	*peer
	sdk   *sdk.ServerSession
	ctx   context.Context // ends with the session
	end   context.CancelFunc
	owner string      // hash of the client's token over HTTP
	ready atomic.Bool // the client is initialized
}

// peer is the state of a client across requests. Over HTTP without sessions, where the SDK makes a session for each request, it
// belongs to a token.
type peer struct {
	calls  *running
	asking *shelf[question]
	inputs *shelf[*inputQuestion]
	open   atomic.Int64 // until when a form for input is open, in nanoseconds since 1970; 0 if none is
	paused atomic.Int64 // until when the person is not asked for input, in nanoseconds since 1970
}

func newPeer() *peer {
	return &peer{calls: &running{whose: "a client", most: maxCalls}, asking: newShelf[question](maxAsking), inputs: newShelf[*inputQuestion](maxAsking)}
}

// session returns our state for a session of the SDK.
func (e *endpoint) session(connection *sdk.ServerSession, extra *sdk.RequestExtra) *session {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sessions[connection]
	if s == nil {
		s = &session{sdk: connection}
		if extra != nil && extra.TokenInfo != nil {
			s.owner = extra.TokenInfo.UserID
		}
		if s.owner != "" && connection.ID() == "" {
			if e.peers[s.owner] == nil {
				e.peers[s.owner] = newPeer()
			}
			s.peer = e.peers[s.owner]
		} else {
			s.peer = newPeer()
		}
		s.ctx, s.end = context.WithCancel(context.Background())
		e.sessions[connection] = s
		e.wait.Go(func() {
			_ = connection.Wait() // the function that serves the session gets the reason
			s.close()             // or the SDK keeps the session and its requests when an answer cannot be sent
			e.mu.Lock()
			delete(e.sessions, connection)
			e.mu.Unlock()
		})
	}
	return s
}

// isReady reports whether a client is known to be initialized.
func (e *endpoint) isReady(connection *sdk.ServerSession) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sessions[connection]
	return s != nil && s.ready.Load()
}

// close ends the running calls, for which the SDK would wait, and then the session.
func (s *session) close() {
	s.end()
	_ = s.sdk.Close() // the connection may be gone already
}

// find returns the owner's session with this number, if it made any call.
func (e *endpoint) find(id, owner string) *session {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.sessions[e.connection(id)]; s != nil && s.owner == owner {
		return s
	}
	return nil
}

// use says how a session over HTTP is used.
type use struct {
	requests int       // under way; an open stream is one
	last     time.Time // when the last one ended
}

// use counts a request of a session, until the function that it returns is called. Numbers of no session are not counted.
func (e *endpoint) use(id string) (done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.connection(id) == nil {
		return func() {}
	}
	u := e.uses[id]
	if u == nil {
		maps.DeleteFunc(e.uses, func(id string, _ *use) bool { return e.connection(id) == nil })
		u = &use{}
		e.uses[id] = u
	}
	u.requests++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		u.requests--
		u.last = time.Now()
	}
}

// endIdle ends the session over HTTP that has had no request for longest, and reports whether there was one: many clients leave
// without ending theirs.
func (e *endpoint) endIdle() bool {
	e.mu.Lock()
	longest := ""
	var connection *sdk.ServerSession
	for id, u := range e.uses {
		if u.requests > 0 || longest != "" && !u.last.Before(e.uses[longest].last) {
			continue
		}
		if c := e.connection(id); c != nil {
			longest, connection = id, c
		}
	}
	delete(e.uses, longest)
	s := e.sessions[connection]
	e.mu.Unlock()
	if connection == nil {
		return false
	}
	if s != nil {
		s.end() // or the SDK waits for a call that has come meanwhile
	}
	_ = connection.Close()
	return true
}

// connection returns the SDK's session with this number, or nil.
func (e *endpoint) connection(id string) *sdk.ServerSession {
	for s := range e.sdk.Sessions() {
		if id != "" && s.ID() == id {
			return s
		}
	}
	return nil
}

// connections counts the sessions of the SDK.
func (e *endpoint) connections() (n int) {
	for range e.sdk.Sessions() {
		n++
	}
	return n
}

// within returns the context of a call. It ends when the client cancels the call or leaves, with the session, and with the HTTP
// request that started the call, because nobody else can receive the result. The cause is always context.Canceled.
func (s *session) within(call context.Context, extra *sdk.RequestExtra) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(call))
	stops := []func() bool{
		context.AfterFunc(call, func() { cancel(nil) }),
		context.AfterFunc(s.ctx, func() { cancel(errSessionOver) }),
	}
	if request := requestContext(extra); request != nil {
		stops = append(stops, context.AfterFunc(request, func() { cancel(errClientGone) }))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}
