package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/chromium"
	"github.com/stilehost/stile/capabilities/internal/egress"
	"github.com/stilehost/stile/internal/turns"
)

const (
	// maxTabs is how many sessions of a site have a page at a time. Others wait, and users take turns. A page that lasts and that nobody uses
	// gives way.
	maxTabs = 8
	// idleTime is how long a browser without a page is kept.
	idleTime = 30 * time.Second
	// maxIdle is how many browsers without a page are kept.
	maxIdle = 2
)

// Engine runs the browsers of a site: one process for each scope, because an exploit of a page can reach all pages of its browser. It
// starts them when they are needed, also after a crash. It is safe for concurrent use. Its creator closes it, after the sessions.
type Engine struct {
	options EngineOptions
	places  *turns.Kept

	tabs sync.WaitGroup

	mu     sync.Mutex
	scopes map[place]*scope
	closed bool
}

// EngineOptions configures an [Engine]. Every field may be zero.
type EngineOptions struct {
	// Program is the path of headless Chromium. Default: where Debian has it, or in PATH.
	Program string
	// Unconfined allows a browser in the network of this process, where the system makes no namespaces. Only its proxy then keeps it
	// from other hosts. Default: sessions fail there.
	Unconfined bool
	// times are shorter in tests.
	times times
	// forceUnconfined is for tests of what the proxy alone prevents.
	forceUnconfined bool
	// Tabs is how many sessions have a page at a time. Others wait. Default 8.
	Tabs int
	// Memory is how many bytes one page may take, and Total a whole browser. Defaults 512 MiB and 1.5 GiB.
	Memory, Total int64
}

// times bound what pages do.
type times struct {
	action time.Duration // bounds an action
	load   time.Duration // after which a page that still loads is taken as it is
	wait   time.Duration // of wait-for
	answer time.Duration // in which a page answers after an action was given up
	events int           // that a page may cause. Each costs the host a few microseconds
}

var usualTimes = times{action: 30 * time.Second, load: 15 * time.Second, wait: 20 * time.Second, answer: 2 * time.Second, events: 100_000}

// NewEngine returns an engine. It starts no browser yet.
func NewEngine(o EngineOptions) *Engine {
	if o.Tabs <= 0 {
		o.Tabs = maxTabs
	}
	o.Memory = cmp.Or(o.Memory, 512<<20)
	if o.times == (times{}) {
		o.times = usualTimes
	}
	return &Engine{options: o, places: turns.NewKept(o.Tabs), scopes: map[place]*scope{}}
}

// place says which sessions share a browser.
type place struct {
	scope string
	// intercept is set if all proxies of the browser end TLS. They verify servers, and the browser verifies nothing: it can reach only them.
	intercept bool
}

// scope is the browser of one place.
type scope struct {
	at place
	// starting is held while a browser starts.
	starting chan struct{}
	// The fields below are guarded by Engine.mu.
	browser *chromium.Browser
	network *egress.Namespace // of the browser; nil if it is not confined
	users   int
	tabs    map[*tab]bool
	idle    *time.Timer
	killed  time.Time // when a page was killed for its memory
}

var errClosed = abi.Errorf(abi.CodeUnavailable, "the host is closing")

// use returns the browser of a scope, which stays until done is called.
func (e *Engine) use(ctx context.Context, at place) (b *chromium.Browser, s *scope, done func(), err error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, nil, nil, errClosed
	}
	s = e.scopes[at]
	if s == nil {
		s = &scope{at: at, starting: make(chan struct{}, 1), tabs: map[*tab]bool{}}
		e.scopes[at] = s
	}
	s.users++
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	e.mu.Unlock()
	done = sync.OnceFunc(func() { e.leave(s) })
	starting := s.starting // an error sets s to nil before the deferred function runs
	select {
	case starting <- struct{}{}:
		defer func() { <-starting }()
	case <-ctx.Done():
		done()
		return nil, nil, nil, context.Cause(ctx)
	}
	if b, err = e.running(ctx, s); err != nil {
		done()
		return nil, nil, nil, err
	}
	return b, s, done, nil
}

// running returns the browser of s, and starts it if necessary. The caller has s.starting.
func (e *Engine) running(ctx context.Context, s *scope) (*chromium.Browser, error) {
	e.mu.Lock()
	b := s.browser
	e.mu.Unlock()
	if b != nil {
		if b.Err() == nil {
			return b, nil
		}
		<-b.Done() // it crashed
	}
	b, network, err := e.start(ctx, s.at)
	if err != nil {
		return nil, explainStart(ctx, err)
	}
	b.OnKill(func(int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		s.killed = time.Now()
	})
	b.OnWork(func(took time.Duration) { e.charge(s, took) })
	b.Handle("", func(event chromium.Event) { e.event(s, b, event) })
	// A page that gets another window all the same has it closed.
	b.Send("", "Target.setDiscoverTargets", map[string]any{"discover": true, "filter": []any{map[string]any{"type": "page"}}})
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		go func() { _ = b.Close() }()
		return nil, errClosed
	}
	s.browser, s.network = b, network
	return b, nil
}

// start starts a browser in an empty network, unless the operator says otherwise and there can be none.
func (e *Engine) start(ctx context.Context, at place) (*chromium.Browser, *egress.Namespace, error) {
	o := chromium.Options{Path: e.options.Program, Memory: e.options.Memory, Total: e.options.Total}
	if at.intercept {
		o.Args = []string{"--ignore-certificate-errors"}
	}
	if e.options.forceUnconfined {
		o.Unconfined = true
		b, err := chromium.Start(ctx, o)
		return b, nil, err
	}
	b, network, err := startConfined(ctx, o)
	if lack := (*chromium.LackError)(nil); errors.As(err, &lack) && e.options.Unconfined {
		o.Unconfined = true
		b, err = chromium.Start(ctx, o)
	}
	return b, network, err
}

func startConfined(ctx context.Context, o chromium.Options) (*chromium.Browser, *egress.Namespace, error) {
	network, err := egress.NewNamespace()
	if err != nil {
		return nil, nil, &chromium.LackError{Reason: err.Error()}
	}
	o.Network = network.Path()
	b, err := chromium.Start(ctx, o)
	if err != nil {
		return nil, nil, errors.Join(err, network.Close())
	}
	go func() {
		<-b.Done()
		_ = network.Close() // nothing is in it any more
	}()
	return b, network, nil
}

// listen opens a listener that only the browser of s can reach, if it is confined.
func (e *Engine) listen(s *scope) (net.Listener, error) {
	e.mu.Lock()
	network := s.network
	e.mu.Unlock()
	if network != nil {
		return network.Listen()
	}
	return net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // it does not wait
}

func explainStart(ctx context.Context, err error) error {
	switch lack := (*chromium.LackError)(nil); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, chromium.ErrMissing):
		return abi.Errorf(abi.CodeUnavailable, "%v", err)
	case errors.As(err, &lack):
		return abi.Errorf(abi.CodeUnavailable, "%v; `stile doctor` says more", lack)
	default:
		return fmt.Errorf("browser: %w", err)
	}
}

func (e *Engine) begin(s *scope, t *tab) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.tabs[t] = true
}

func (e *Engine) end(s *scope, t *tab) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(s.tabs, t)
}

// charge charges the processor time of a browser. Nothing says which page took it, so all pages pay alike: they are of one extension.
func (e *Engine) charge(s *scope, took time.Duration) {
	e.mu.Lock()
	tabs := slices.Collect(maps.Keys(s.tabs))
	e.mu.Unlock()
	for _, t := range tabs {
		t.budget.charge(took / time.Duration(len(tabs)))
	}
}

// leave gives a browser back. It ends some time later, unless somebody else uses it.
func (e *Engine) leave(s *scope) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	idle := 0
	for _, other := range e.scopes {
		if other.users == 0 && other.browser != nil {
			idle++
		}
	}
	after := idleTime
	if idle > maxIdle || e.closed {
		after = 0
	}
	s.idle = time.AfterFunc(after, func() { e.stop(s) })
}

// stop ends the browser of a scope that nobody uses.
func (e *Engine) stop(s *scope) {
	e.mu.Lock()
	if s.users > 0 {
		e.mu.Unlock()
		return
	}
	b := s.browser
	s.browser = nil
	delete(e.scopes, s.at)
	e.mu.Unlock()
	if b != nil {
		_ = b.Close() // it returns no error
	}
}

// Close ends all browsers, and returns when nothing is left of them.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	var all []*chromium.Browser
	for _, s := range e.scopes {
		if s.idle != nil {
			s.idle.Stop()
		}
		if s.browser != nil {
			all = append(all, s.browser)
		}
	}
	e.mu.Unlock()
	var errs []error
	for _, b := range all {
		errs = append(errs, b.Close())
	}
	e.tabs.Wait() // they have ended with their browsers
	return errors.Join(errs...)
}

// event looks at what a browser reports about its pages.
func (e *Engine) event(s *scope, b *chromium.Browser, event chromium.Event) {
	if event.Method != "Target.targetCreated" {
		return
	}
	var made struct {
		TargetInfo struct{ TargetID, Type, OpenerID string }
	}
	if decode(event, &made) && made.TargetInfo.OpenerID != "" {
		b.Send("", "Target.closeTarget", map[string]any{"targetId": made.TargetInfo.TargetID})
	}
}

// tooLarge reports whether a page of s was killed for its memory a moment ago.
func (e *Engine) tooLarge(s *scope) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Since(s.killed) < 2*time.Second
}

// exit is the only way out of a tab.
type exit interface {
	// Address is that of the proxy, as the browser reaches it.
	Address() string
	// Denied returns the newest denials since Forget, the oldest first.
	Denied() []*abi.Error
	// Forget forgets the denials.
	Forget()
	// Close ends its connections.
	Close() error
}

// newExit makes the exit of a tab on a listener that only its browser can reach.
type newExit func(l net.Listener) (exit, error)
