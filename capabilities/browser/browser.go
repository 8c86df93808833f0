// Package browser implements the interface stile:capability/browser in Go: a headless Chromium that reaches only the hosts that rules
// name. Each session has a browser context of its own, which ends with its call, and the browsers of two extensions are two processes. A
// browser runs in an empty network. Its only way out is a proxy of this process, one for each context, which applies the rules. No file
// of this machine is uploaded, and a download becomes a blob. See [chromium] for what else confines it.
//
// [chromium]: https://pkg.go.dev/github.com/stilehost/stile/capabilities/internal/chromium
package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/turns"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/browser.wit.
const Interface = "stile:capability/browser@0.1.0"

const (
	viewWidth  = 1280 // pixels
	viewHeight = 800
	windowSize = 16 // of the window's edges, in pixels

	// maxPending is how many actions of a session can be under way, one after the other.
	maxPending = 16

	maxURL       = 8 << 10
	maxSelector  = 4 << 10
	maxFill      = 256 << 10
	maxCode      = 256 << 10
	maxArguments = 1 << 20
	maxText      = 1 << 20 // of text, and of what evaluate returns
	maxHTML      = 4 << 20
	maxMarkdown  = 256 << 10
	maxPixels    = 8 << 20 // of a screenshot
	maxPDF       = 32 << 20
	maxDownload  = 64 << 20
)

// Budget bounds what one call does with a browser. A field that is 0 means its default.
type Budget struct {
	// Pages is how many pages are opened, by links and redirects of scripts too. Default 100.
	Pages int `json:"pages,omitempty"`
	// Seconds is how long pages are open, all together, and how much processor time their browser may take meanwhile. Default 600.
	Seconds int `json:"seconds,omitempty"`
	// Megabytes is how many megabytes (of 1,048,576 bytes) go through the proxy in both directions. Default 200.
	Megabytes int `json:"megabytes,omitempty"`
}

func (b Budget) orDefaults() Budget {
	return Budget{Pages: cmp.Or(b.Pages, 100), Seconds: cmp.Or(b.Seconds, 600), Megabytes: cmp.Or(b.Megabytes, 200)}
}

// budget is what is left of a Budget in one call.
type budget struct {
	most Budget
	held *blob.Quota // bytes of what was made or downloaded

	mu    sync.Mutex
	pages int
	bytes int64
	work  time.Duration // processor time
	spent time.Duration // for which pages were open, until since
	since time.Time
	open  map[*tab]bool
	timer *time.Timer // at which the time is over; nil if no page is open
}

func (b Budget) start() *budget {
	return &budget{most: b.orDefaults(), held: blob.NewQuota("bytes held for the browser", maxHeld), open: map[*tab]bool{}}
}

// maxHeld is how many bytes of texts, pictures and files are held for one call.
const maxHeld = 128 << 20

// page counts a page.
func (b *budget) page() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages++; b.pages > b.most.Pages {
		return abi.Spent("pages of the browser", b.most.Pages, "pages")
	}
	return nil
}

// begin counts the time of a tab from now on. It ends the tab when the time of all is over.
func (b *budget) begin(t *tab) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count()
	b.open[t] = true
	b.wait()
}

// end counts the time of a tab no more.
func (b *budget) end(t *tab) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count()
	delete(b.open, t)
	b.wait()
}

// count adds the time that has passed for each open tab. The caller holds b.mu.
func (b *budget) count() {
	now := time.Now()
	b.spent += time.Duration(len(b.open)) * now.Sub(b.since)
	b.since = now
}

// wait waits for the end of the time. The caller holds b.mu, and has counted.
func (b *budget) wait() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if open := time.Duration(len(b.open)); open > 0 {
		b.timer = time.AfterFunc(max(0, b.limit()-b.spent)/open, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.count(); b.spent >= b.limit() {
				b.endAll()
			}
		})
	}
}

// charge counts processor time.
func (b *budget) charge(took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.work += took; b.work >= b.limit() {
		b.endAll()
	}
}

// workOfProxy is charge for what the proxy of a page does where no call pays for it.
func (b *budget) workOfProxy(took time.Duration) error {
	b.charge(took)
	return b.left()
}

// endAll ends the open tabs. The caller holds b.mu.
func (b *budget) endAll() {
	for t := range b.open {
		t.over.end(b.overtime())
	}
}

func (b *budget) limit() time.Duration { return time.Duration(b.most.Seconds) * time.Second }

// left returns an error if no time is left.
func (b *budget) left() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count(); max(b.spent, b.work) >= b.limit() {
		return b.overtime()
	}
	return nil
}

func (b *budget) overtime() error {
	if b.work >= b.limit() {
		return abi.Spent("seconds of the browser", fmt.Sprintf("%d, of processor time", b.most.Seconds), "seconds")
	}
	return abi.Spent("seconds of the browser", b.most.Seconds, "seconds")
}

// carry counts bytes that go through the proxy.
func (b *budget) carry(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes += n; b.bytes > int64(b.most.Megabytes)<<20 {
		return abi.Spent("megabytes of the browser", b.most.Megabytes, "megabytes")
	}
	return nil
}

// Grant allows pages of the hosts that its rules name. It is an abi.Opener, and each call gets a [Session] of its own. It is immutable and
// safe for concurrent use.
type Grant struct {
	engine *Engine
	place  place
	budget Budget
	// check returns the denial of a URL that no rule allows.
	check func(u target) error
	// open makes the exit of a tab, whose bytes count toward a budget.
	open func(ctx context.Context, l net.Listener, b *budget) (exit, error)
	// answers gives outcomes in place of a browser, in an extension's test. It is nil otherwise.
	answers func(step string) (result, error)
	// lasting is the page of all calls, if it lasts.
	lasting *held
}

// held is a page with its state: that of one call, or the one that lasts.
type held struct {
	ctx context.Context // ends when no page is wanted any more
	end context.CancelCauseFunc
	// turn is held by the action at work.
	turn chan struct{}
	tab  *tab // guarded by turn; nil without a page
	// unsure is set after an action that was given up: the page may hang. It is guarded by turn.
	unsure bool

	mu    sync.Mutex
	users int // sessions that share the page, if it lasts
}

// leave ends a session of a page that lasts. A page without one gives its place up to others.
func (h *held) leave() {
	h.mu.Lock()
	h.users--
	left := h.users
	h.mu.Unlock()
	if left > 0 {
		return
	}
	h.turn <- struct{}{} // at once, unless somebody else has begun to use the page
	defer func() { <-h.turn }()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users > 0 || h.tab == nil {
		return
	}
	t := h.tab
	t.seat.Idle(func() bool {
		t.over.end(errGaveWay)
		return true // the page ends soon
	})
}

func newHeld(ctx context.Context) *held {
	h := &held{turn: make(chan struct{}, 1)}
	h.ctx, h.end = context.WithCancelCause(ctx)
	return h
}

// pageIdle is how long a page lasts that nobody uses, because it takes one of the engine's places.
const pageIdle = 5 * time.Minute

// Lasting returns a grant whose calls share one page, which stays open between them, for at most five minutes without an action, and less if
// others wait for a place. The next action is then told. Each page has a budget of its own. The caller closes the grant.
func (g *Grant) Lasting() *Grant {
	same := *g
	same.lasting = newHeld(context.Background())
	return &same
}

// Close closes the page of a lasting grant. It is idempotent, and does nothing for another grant.
func (g *Grant) Close() error {
	if g.lasting != nil {
		g.lasting.end(errSession)
	}
	return nil
}

// Interface implements abi.Capability.
func (*Grant) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Grant) Quick() []string { return []string{"get"} }

// Open implements abi.Opener: it returns a *[Session]. No browser starts before its first action.
func (g *Grant) Open(ctx context.Context) (any, error) {
	b := abi.OfCall(ctx, budgetKey{g.budget}, g.budget.start)
	s := &Session{grant: g, budget: b, held: g.lasting}
	s.ctx, s.end = context.WithCancelCause(ctx)
	if s.held != nil {
		s.held.mu.Lock()
		s.held.users++
		s.held.mu.Unlock()
	} else {
		s.held = newHeld(s.ctx) //nolint:contextcheck // the context of the session, which is that of the call
	}
	return s, nil
}

// used is what a call has used of its budget, for a call that goes on in another process.
type used struct {
	Pages int           `json:"pages"`
	Bytes int64         `json:"bytes"`
	Work  time.Duration `json:"work"`
	Spent time.Duration `json:"spent"`
}

// Save implements [abi.Lasting]: it returns what the call has used of its budget. As long as it has a page, or an action is under way, the call stays awake.
func (s *Session) Save() (state []byte, ok bool) {
	b := s.budget
	b.mu.Lock()
	b.count()
	state, err := json.Marshal(used{b.pages, b.bytes, b.work, b.spent})
	b.mu.Unlock()
	return state, err == nil && !s.hasPage()
}

// hasPage reports whether the session has a page, or may get one.
func (s *Session) hasPage() bool {
	s.mu.Lock()
	unused := !s.used
	s.mu.Unlock()
	if unused {
		return false // a page that lasts is of other calls
	}
	select {
	case s.held.turn <- struct{}{}:
		defer func() { <-s.held.turn }()
		return s.held.tab != nil && !s.held.tab.isGone()
	default:
		return true
	}
}

// Reopen implements [abi.Reopener]: the budget of the call goes on as it was.
func (g *Grant) Reopen(ctx context.Context, state []byte) (any, error) {
	var u used
	if err := json.Unmarshal(state, &u); err != nil {
		return nil, fmt.Errorf("read what a call has used of its browser: %w", err)
	}
	opened, err := g.Open(ctx)
	if err != nil {
		return nil, err
	}
	b := opened.(*Session).budget // shared by bindings, each of which comes here
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages, b.bytes, b.work, b.spent = max(b.pages, u.Pages), max(b.bytes, u.Bytes), max(b.work, u.Work), max(b.spent, u.Spent)
	return opened, nil
}

// budgetKey is that of sessions of a call whose grants have equal budgets. They share one.
type budgetKey struct{ Budget }

// Session is a browser with one page: the resource `session`. Its actions run one after the other. It is safe for concurrent use. The host
// closes it when the call ends.
type Session struct {
	grant  *Grant
	budget *budget
	ctx    context.Context // ends with the session
	end    context.CancelCauseFunc
	held   *held

	mu      sync.Mutex
	pending int
	used    bool
	closed  bool
	running sync.WaitGroup
}

// Quick implements [abi.Quick]: every action only begins.
func (*Session) Quick() []string {
	return []string{
		"session.open", "session.click", "session.fill", "session.press", "session.wait-for", "session.text", "session.html", "session.markdown",
		"session.evaluate", "session.screenshot", "session.pdf", "session.download", "session.leave",
	}
}

// Lists implements [abi.Bounded].
func (*Session) Lists() map[string]int { return nil }

var errSession = abi.Errorf(abi.CodeUnavailable, "the session was closed")

// Close ends the session and its actions. Its page ends soon after, and until then keeps its place. Closing again does nothing.
func (s *Session) Close() error {
	s.end(errSession) // the page ends with it
	s.running.Wait()
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if s.grant.lasting != nil && !again {
		s.held.leave()
	}
	return nil
}

// action is what one action does with a page.
type action func(ctx context.Context, t *tab) (result, error)

// need says what page an action needs.
type need int

const (
	openPage need = iota // one that is open
	anyPage              // one is made if none is open
	noPage               // what is open is dropped
)

// begin runs an action beside the guest. A step names it in a test.
func (s *Session) begin(ctx context.Context, step string, needs need, do action) (*Pending, error) {
	if s.grant.answers != nil {
		p := &Pending{cancel: func(error) {}}
		p.finish(s.grant.answers(step))
		return p, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return nil, errSession
	case s.pending == maxPending:
		return nil, abi.Errorf(abi.CodeExhausted, "actions of a browser that are under way: %d", maxPending)
	}
	s.pending++
	s.used = true
	ctx, cancel := context.WithCancelCause(ctx)
	p := &Pending{cancel: cancel}
	s.running.Go(func() {
		stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) }) //nolint:contextcheck // an action ends with its session too
		outcome, err := s.run(ctx, needs, do)
		stop()
		cancel(nil)
		p.finish(outcome, err)
		s.mu.Lock()
		s.pending--
		s.mu.Unlock()
	})
	return p, nil
}

var errNoPage = abi.Errorf(abi.CodeInvalid, "no page is open: call open first")

// run runs an action when those before it have ended.
func (s *Session) run(ctx context.Context, needs need, do action) (result, error) {
	select {
	case s.held.turn <- struct{}{}:
		defer func() { <-s.held.turn }()
	case <-ctx.Done():
		return result{}, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.grant.times().action, abi.ErrTimedOut)
	defer cancel()
	if t := s.held.tab; t != nil && s.grant.lasting != nil && !t.seat.Busy() {
		t.over.end(errGaveWay)
	}
	if s.held.tab != nil && s.held.tab.isGone() {
		why := s.held.tab.over.cause()
		s.held.tab.close(ctx, why)
		s.held.tab = nil
		if needs == openPage {
			return result{}, why
		}
	}
	if s.held.tab != nil && s.held.unsure && needs != noPage && !s.answers(ctx) {
		s.held.tab.close(ctx, errClosedTab)
		s.held.tab = nil
		if needs == openPage {
			return result{}, abi.Errorf(abi.CodeUnavailable, "the page did not answer any more, and was closed; open it again")
		}
	}
	s.held.unsure = false
	if needs == noPage {
		if s.held.tab != nil {
			s.held.tab.close(ctx, errClosedTab)
			s.held.tab = nil
		}
		return result{}, nil
	}
	if s.held.tab == nil {
		if needs == openPage {
			return result{}, errNoPage
		}
		if err := s.newTab(ctx); err != nil {
			return result{}, err
		}
	}
	t := s.held.tab
	if t.idle != nil {
		t.idle.Reset(pageIdle)
	}
	outcome, err := do(ctx, t)
	if err != nil {
		outcome.close()
		err = t.explain(ctx, err)
		if ctx.Err() != nil || errors.Is(err, abi.ErrTimedOut) {
			s.held.unsure = true
			t.browser.Send(t.session, "Page.stopLoading", nil)
			t.browser.Send(t.session, "Runtime.terminateExecution", nil)
		}
		return result{}, err
	}
	return outcome, nil
}

func (s *Session) newTab(ctx context.Context) error { //nolint:contextcheck // the proxy of a page lives as long as the page
	b, within := s.budget, s.held.ctx
	if s.grant.lasting != nil { // the page outlives the call
		b = s.grant.budget.start()
		within = turns.For(abi.WithWork(within, b.workOfProxy), turns.User(ctx))
	}
	if err := b.left(); err != nil {
		return err
	}
	t, err := s.grant.engine.newTab(ctx, s.grant.place, func(l net.Listener) (exit, error) { return s.grant.open(within, l, b) }, b)
	if err != nil {
		return err
	}
	forget := context.AfterFunc(s.held.ctx, func() { t.over.end(context.Cause(s.held.ctx)) }) //nolint:contextcheck // the page lives as long as what holds it
	if s.grant.lasting != nil {
		t.idle = time.AfterFunc(pageIdle, func() { t.over.end(errIdle) })
	}
	t.over.OnReady(func() {
		forget()
		if t.idle != nil {
			t.idle.Stop()
		}
	})
	s.held.tab = t
	return nil
}

// answers reports whether the page still answers.
func (s *Session) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, s.held.tab.engine.options.times.answer)
	defer cancel()
	return s.held.tab.call(ctx, "Runtime.evaluate", map[string]any{"expression": "0"}, nil) == nil
}

// Pending is an action that is under way: the resource `pending`. It is safe for concurrent use. Its holder closes it, which gives up an
// action that has not ended.
type Pending struct {
	cancel context.CancelCauseFunc
	done   abi.Pollable

	mu     sync.Mutex
	result result
	err    error
	taken  bool
}

// Quick implements [abi.Quick].
func (*Pending) Quick() []string { return []string{"pending.subscribe"} }

// Subscribe returns a pollable that is ready when the action has ended.
func (p *Pending) Subscribe(context.Context) *abi.Pollable { return &p.done }

func (p *Pending) finish(r result, err error) {
	p.mu.Lock()
	if p.taken { // nobody wants it any more
		r.close()
		r = result{}
	}
	p.result, p.err = r, err
	p.mu.Unlock()
	p.done.SetReady()
}

// Take waits for the action and hands over its outcome, which can be taken once.
func (p *Pending) Take(ctx context.Context) (Outcome, error) {
	if err := p.done.Wait(ctx); err != nil {
		return Outcome{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return Outcome{}, p.err
	case p.taken:
		return Outcome{}, abi.Errorf(abi.CodeInvalid, "the outcome was taken already")
	}
	p.taken = true
	if p.result.text == nil {
		return p.result.Outcome, nil
	}
	defer p.result.close()
	text, err := p.result.text.Text(ctx, abi.MaxText)
	return Outcome{Case: OutcomeText, Text: &text}, err
}

var errDropped = abi.Errorf(abi.CodeUnavailable, "the action was given up")

// Close implements [io.Closer].
func (p *Pending) Close() error {
	p.cancel(errDropped)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.taken {
		p.taken = true
		p.result.close()
	}
	return nil
}

// Page is the record `page`.
type Page struct {
	URL, Title string
	Status     uint16
}

// OutcomeCase is a case of [Outcome].
type OutcomeCase uint8

// The cases of the variant `outcome`, in its order.
const (
	OutcomeNothing OutcomeCase = iota
	OutcomePage
	OutcomeText
	OutcomeBlob
)

// Outcome is the variant `outcome`: what an action returns. The field of its case is set.
type Outcome struct {
	Case OutcomeCase
	Page *Page
	Text *string
	Blob *blob.Blob
}

// result is an outcome that nobody has taken. A text is in a blob, so that texts nobody takes are bounded as blobs are.
type result struct {
	Outcome
	text *blob.Blob
}

func (r result) close() {
	for _, b := range []*blob.Blob{r.Blob, r.text} {
		if b != nil {
			_ = b.Close() // what it holds is temporary
		}
	}
}

// Awaited is the variant `awaited`: what WaitFor waits for. The field of its case is set.
type Awaited struct {
	Case                AwaitedCase
	Selector, Text, URL *string
}

// AwaitedCase is a case of [Awaited].
type AwaitedCase uint8

// The cases of the variant `awaited`, in its order.
const (
	AwaitedSelector AwaitedCase = iota
	AwaitedText
	AwaitedURL
)
