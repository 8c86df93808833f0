package lifecycle

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/fair"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

// memoryOf estimates the memory of a loaded component: twice its bytes, because the content of its memory is kept in its code and in a
// file in memory, and what its tools say of themselves.
func memoryOf(wasm []byte, tools []abi.Definition) int64 {
	n := 2 * int64(len(wasm))
	for _, t := range tools {
		n += int64(len(t.Description)) + jsonform.DecodedSize([]byte(t.InputSchema))
		if t.OutputSchema != nil {
			n += jsonform.DecodedSize([]byte(*t.OutputSchema))
		}
	}
	return n
}

// ownShare is the part of the bytes of loaded components that the calls of one agent may use at a time, if they use more than one component.
const ownShare = 4

// loadedSet holds loaded components. Beyond a maximum of components or bytes, it closes the least recently used ones. If all are in use, it
// refuses to load more.
type loadedSet struct {
	max      int
	maxBytes int64

	mu     sync.Mutex
	bytes  int64              // of all
	uses   fair.Uses[*loaded] // of each agent
	all    map[string]*loaded
	order  *list.List // of *loaded, those used last at the front
	err    error      // errors of closing components
	closed bool
}

type loaded struct {
	digest  string
	element *list.Element
	users   int
	begun   bool          // a load has begun
	ready   chan struct{} // closed when component or err is set
	// component and err are written before ready is closed. Until the load begins, component is the one from put.
	component *host.Component
	err       error
	bytes     int64
	gaveUp    bool // err concerns only the caller that loaded
}

func newLoadedSet(size int, bytes int64) *loadedSet {
	return &loadedSet{max: size, maxBytes: bytes, all: map[string]*loaded{}, order: list.New()}
}

// put provides a loaded component for the first caller of get, unless there is one already. The set closes it. bytes is from
// memoryOf.
func (s *loadedSet) put(digest string, c *host.Component, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.all[digest] != nil {
		s.err = errors.Join(s.err, c.Close())
		return
	}
	l := s.add(digest)
	l.component, l.bytes = c, bytes
	s.bytes += bytes
	s.trim()
}

func (s *loadedSet) add(digest string) *loaded {
	l := &loaded{digest: digest, ready: make(chan struct{})}
	l.element = s.order.PushFront(l)
	s.all[digest] = l
	return l
}

// get returns the component. load makes it, from the component of put if there is one. If several callers ask at once, one of them
// loads it. done releases it. The error is a *[host.LimitError] if calls use too much, those of the agent who or all.
func (s *loadedSet) get(ctx context.Context, who, digest string, load func(given *host.Component) (*host.Component, int64, error)) (c *host.Component, done func(), err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, nil, host.ErrClosed
	}
	l := s.all[digest]
	if l == nil {
		l = s.add(digest)
	} else {
		s.order.MoveToFront(l.element)
	}
	first := !l.begun
	l.begun = true
	l.users++
	s.mu.Unlock()
	if first {
		var bytes int64
		l.component, bytes, l.err = load(l.component)
		s.mu.Lock()
		if l.err != nil {
			l.gaveUp = ctx.Err() != nil
			s.remove(l) // the next caller tries again
		} else if l.bytes == 0 {
			l.bytes = bytes
			s.bytes += bytes
			s.trim()
			if s.bytes > s.maxBytes && s.bytes > bytes {
				l.err = s.full("calls")
				s.remove(l)
				s.err = errors.Join(s.err, l.component.Close())
			}
		}
		s.mu.Unlock()
		close(l.ready)
	}
	select {
	case <-l.ready:
	case <-ctx.Done():
		s.done(l)
		return nil, nil, context.Cause(ctx)
	}
	if l.err != nil {
		s.done(l)
		if !first && l.gaveUp && ctx.Err() == nil {
			return s.get(ctx, who, digest, load)
		}
		return nil, nil, l.err
	}
	if err := s.use(l, who); err != nil {
		s.done(l)
		return nil, nil, err
	}
	return l.component, func() {
		s.unuse(l, who)
		s.done(l)
	}, nil
}

// full is the error of a component that has no room beside those that somebody's calls use.
func (s *loadedSet) full(whose string) error {
	return &host.LimitError{Limit: "engine", Value: printable.Size(s.maxBytes), Detail: "of loaded extensions, which other " + whose + " use; try again when they have ended"}
}

// use counts a component for an agent.
func (s *loadedSet) use(l *loaded, who string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.uses.Begin(who, l, l.bytes, s.maxBytes/ownShare) {
		return s.full("calls of " + who)
	}
	return nil
}

func (s *loadedSet) unuse(l *loaded, who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses.End(who, l, l.bytes)
}

// done releases what get returned, and closes surplus components.
func (s *loadedSet) done(l *loaded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users--
	s.trim()
}

// trim closes surplus components.
func (s *loadedSet) trim() {
	for e := s.order.Back(); e != nil && (s.order.Len() > s.max || s.bytes > s.maxBytes); {
		oldest, before := e.Value.(*loaded), e.Prev()
		if oldest.users == 0 {
			s.drop(oldest)
		}
		e = before
	}
}

func (s *loadedSet) remove(l *loaded) {
	s.order.Remove(l.element)
	delete(s.all, l.digest)
	s.bytes -= l.bytes
}

// drop closes a component that nobody uses.
func (s *loadedSet) drop(l *loaded) {
	s.remove(l)
	if l.component != nil {
		s.err = errors.Join(s.err, l.component.Close())
	}
}

// closeAll closes all components. Their calls have ended.
func (s *loadedSet) closeAll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.all {
		s.drop(l)
	}
	err := s.err
	s.err = nil
	return err
}
