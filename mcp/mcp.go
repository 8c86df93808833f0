// Package mcp serves extensions to agents over the Model Context Protocol. It offers the tools with which an agent writes tools, and
// the tools that it wrote, each as soon as it is active. Nothing that a model can call approves anything. The server asks a client's
// person only if the operator's policy says that a person is there.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/ladder"
	"github.com/stilehost/stile/model"
)

// ErrClosed is the error of Serve when the server is closed.
var ErrClosed = errors.New("mcp: the server is closed")

// Options configure a Server. Manager is required.
type Options struct {
	Manager *lifecycle.Manager
	// Ladder has the tools of the ladder, which agents get up to the rung that Manager.Rungs returns. Default: there is no ladder.
	Ladder *ladder.Kit
	// Generate makes a model write an extension and takes it through all stages, as lifecycle.Manager.Write does. Default: there is
	// no extension_generate. The model sees the text of an error.
	Generate func(context.Context, GenerateRequest) (Generated, error)
	// Runs makes calls of durable tools go on after their caller has left. Default: they are calls as any other.
	Runs *Runs
	// Limits replace the host's limits for each call and for code_run where they are not zero. Default: the host's.
	Limits host.Limits
	// MaxOutput is how many bytes of JSON a result shows. A larger result shows a part, and the whole is a resource of the session.
	// Default 32 KiB.
	MaxOutput int
	// PageSize is the maximum number of tools in one answer to tools/list. Default 200.
	PageSize int
	// Version is the version that the server reports. Default "dev".
	Version string
	// Logger receives faults in full; a model learns only that there was one. Default: nothing is logged.
	Logger *slog.Logger

	patience time.Duration                                                   // answerTime, unless a test waits for less
	ticks    func(every time.Duration) (ticks <-chan time.Time, stop func()) // a clock for tests
}

// GenerateRequest is a request to generate an extension, from extension_generate.
type GenerateRequest struct {
	Description string
	// New asks for a new extension, whatever exists already.
	New   bool
	Scope extension.Scope
	// Author is the requester, as in lifecycle.Draft. Via is lifecycle.ViaMCP. Viewer determines which extensions exist for the author.
	Author, Via string
	Viewer      lifecycle.Viewer
	// Progress receives what happens, in a few words. It is never nil.
	Progress func(text string)
}

// Generated is the result of a GenerateRequest: what the model wrote, or existing extensions that seem to fit.
type Generated struct {
	Written  *lifecycle.Written
	Existing []lifecycle.Found
	// Spent is what the model used.
	Spent Spent
}

// Spent is what a model used.
type Spent struct {
	// Rounds are the model's replies, and Tokens their sum.
	Rounds []Round      `json:"rounds"`
	Tokens model.Tokens `json:"tokens"`
}

// Round is one reply of a model.
type Round struct {
	// Stage is the stage at which the draft failed. It is empty if the draft passed.
	Stage  extension.Stage `json:"stage,omitempty"`
	Tokens model.Tokens    `json:"tokens"`
}

// Server serves a manager's extensions. It is safe for concurrent use. Its creator closes it, before the manager.
type Server struct {
	options Options
	stop    context.CancelFunc
	wait    sync.WaitGroup
	places  places

	mu        sync.Mutex
	closed    bool
	endpoints map[lifecycle.Viewer]*endpoint
}

// New returns a server that serves no client yet.
func New(o Options) (*Server, error) {
	if o.Manager == nil {
		return nil, errors.New("mcp: Manager is needed")
	}
	o.MaxOutput = cmp.Or(o.MaxOutput, 32<<10)
	o.PageSize = cmp.Or(o.PageSize, 200)
	o.Version = cmp.Or(o.Version, "dev")
	o.patience = cmp.Or(o.patience, answerTime)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.ticks == nil {
		o.ticks = func(every time.Duration) (<-chan time.Time, func()) {
			ticker := time.NewTicker(every)
			return ticker.C, ticker.Stop
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{options: o, stop: stop, places: newPlaces(), endpoints: map[lifecycle.Viewer]*endpoint{}}
	s.wait.Go(func() { s.watch(ctx) })
	return s, nil
}

// closeTime is how long a client may take to read its pending messages when a session is closed.
const closeTime = time.Second

// Serve serves one client over a transport such as [Lines], until the client leaves, which is not an error, or until ctx ends or the
// server is closed. Running calls end with it. It waits at most a second for a client that does not read.
func (s *Server) Serve(ctx context.Context, v lifecycle.Viewer, t sdk.Transport) error {
	e, err := s.endpoint(v) //nolint:contextcheck // it outlives the client
	if err != nil {
		return err
	}
	connection, err := e.sdk.Connect(ctx, t, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	own := e.session(connection, nil)
	over := make(chan error, 1)
	go func() { over <- connection.Wait() }()
	select {
	case err = <-over:
	case <-ctx.Done():
		within(closeTime, own.close)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.closed:
		return ErrClosed
	case errors.Is(err, io.ErrClosedPipe): // the client left during a write
		return nil
	default:
		return err
	}
}

// Close ends all sessions and the running calls. It waits at most a second for clients that do not read. It is idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	endpoints := s.endpoints
	s.endpoints = nil
	s.mu.Unlock()
	s.stop()
	s.wait.Wait()
	within(closeTime, func() {
		var wait sync.WaitGroup
		for _, e := range endpoints {
			for connection := range e.sdk.Sessions() {
				wait.Go(e.session(connection, nil).close)
			}
		}
		wait.Wait()
		for _, e := range endpoints {
			e.wait.Wait()
		}
	})
	return nil
}

// EndCalls ends the running calls and tells their clients. Sessions accept no calls afterwards.
func (s *Server) EndCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.endpoints {
		for connection := range e.sdk.Sessions() {
			e.session(connection, nil).end()
		}
	}
}

// within runs a function, and continues without waiting if it takes too long.
func within(most time.Duration, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
	}
}

// endpoint returns the endpoint of a viewer.
func (s *Server) endpoint(v lifecycle.Viewer) (*endpoint, error) {
	// Extensions written here need an author and a scope.
	if err := v.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	e := s.endpoints[v]
	if e == nil {
		e = newEndpoint(s.options, s.places, v)
		if err := e.climb(context.Background()); err != nil { // the next list tries again
			s.options.Logger.Error("open the ladder", "agent", v.Agent, "error", err)
		}
		s.endpoints[v] = e
	}
	return e, nil
}

// watch tells every session when tools are added or removed.
func (s *Server) watch(ctx context.Context) {
	for {
		changed := s.options.Manager.Changed()
		s.mu.Lock()
		endpoints := make([]*endpoint, 0, len(s.endpoints))
		for _, e := range s.endpoints {
			endpoints = append(endpoints, e)
		}
		s.mu.Unlock()
		for _, e := range endpoints {
			e.follow(ctx)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
