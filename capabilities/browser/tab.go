package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/chromium"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
)

// tab is a page in a browser context of its own: its cookies, caches, storage and proxy are nobody else's.
type tab struct {
	browser *chromium.Browser
	engine  *Engine
	scope   *scope
	out     exit
	// context and target are the browser's names, session that of the protocol's session with the page, and control of that for downloads.
	context, target, session, control string
	folder                            string // of downloads
	done                              func()
	budget                            *budget
	seat                              *turns.Seat // its place
	idle                              *time.Timer // ends a page that lasts; nil for another one

	over ending

	mu        sync.Mutex
	loading   bool // of the main frame
	pages     int  // that the main frame has shown
	events    int
	changed   chan struct{} // closed when one of these changes
	downloads []*download
	once      sync.Once
}

// ending is the end of a tab: a pollable, and why it ended.
type ending struct {
	abi.Pollable
	mu  sync.Mutex
	why error
}

// end ends it, for the first reason that is given.
func (e *ending) end(why error) {
	e.mu.Lock()
	if e.why == nil {
		e.why = why
	}
	e.mu.Unlock()
	e.SetReady()
}

func (e *ending) cause() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.why
}

// newTab makes a tab, once there is a place for it.
func (e *Engine) newTab(ctx context.Context, at place, open newExit, b *budget) (_ *tab, err error) {
	seat, err := e.places.Take(ctx)
	if err != nil {
		return nil, err
	}
	browser, s, done, err := e.use(ctx, at)
	if err != nil {
		seat.Give()
		return nil, err
	}
	t := &tab{browser: browser, engine: e, scope: s, budget: b, seat: seat, changed: make(chan struct{})}
	e.tabs.Add(1)
	e.begin(s, t)
	b.begin(t)
	t.done = func() {
		b.end(t)
		e.end(s, t)
		done()
		seat.Give()
		e.tabs.Done()
	}
	defer func() {
		if err != nil {
			t.close(ctx, errClosedTab)
			err = t.explain(ctx, err)
		}
	}()
	listener, err := e.listen(s)
	if err != nil {
		return nil, err
	}
	if t.out, err = open(listener); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if err := t.start(ctx); err != nil {
		return nil, err
	}
	after := context.WithoutCancel(ctx)
	go func() {
		select {
		case <-browser.Done():
			t.over.end(errCrashed)
		case <-t.over.Done():
		}
		t.close(after, t.over.cause())
	}()
	return t, nil
}

var (
	errClosedTab = abi.Errorf(abi.CodeUnavailable, "the page was closed")
	errCrashed   = abi.Errorf(abi.CodeUnavailable, "the browser crashed; open the page again")
	errIdle      = abi.Errorf(abi.CodeUnavailable, "the page was closed because nobody used it for %s; open it again", pageIdle)
	errGaveWay   = abi.Errorf(abi.CodeUnavailable, "the page was closed because nobody used it while others waited for a place; open it again")
	errPage      = abi.Errorf(abi.CodeUnavailable, "the page crashed; open it again")
)

func (t *tab) start(ctx context.Context) error {
	var made struct{ BrowserContextID, TargetID, SessionID string }
	err := t.browser.Call(ctx, "", "Target.createBrowserContext", map[string]any{
		"disposeOnDetach": true, "proxyServer": "http://" + t.out.Address(), "proxyBypassList": "<-loopback>",
	}, &made)
	if err != nil {
		return err
	}
	t.context = made.BrowserContextID
	if err := t.browser.Call(ctx, "", "Target.createTarget", map[string]any{
		"url": "about:blank", "browserContextId": t.context, "width": windowSize, "height": windowSize,
	}, &made); err != nil {
		return err
	}
	t.target = made.TargetID
	if err := t.browser.Call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": t.target, "flatten": true}, &made); err != nil {
		return err
	}
	t.session = made.SessionID
	t.browser.Handle(t.session, t.event)
	if err := t.browser.Call(ctx, "", "Target.attachToBrowserTarget", nil, &made); err != nil {
		return err
	}
	t.control = made.SessionID
	t.browser.Handle(t.control, t.event)
	t.folder = t.browser.Folder(t.context)
	if err := t.browser.Call(ctx, t.control, "Browser.setDownloadBehavior", map[string]any{
		"behavior": "allowAndName", "browserContextId": t.context, "downloadPath": t.folder, "eventsEnabled": true,
	}, nil); err != nil {
		return err
	}
	t.browser.Send(t.session, "Page.setInterceptFileChooserDialog", map[string]any{"enabled": true})
	t.browser.Send(t.session, "Inspector.enable", nil)
	// The page has its view, and the window shows a corner of it, because nobody looks: the browser keeps what a window shows as pixels.
	if err := t.call(ctx, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": viewWidth, "height": viewHeight, "screenWidth": viewWidth, "screenHeight": viewHeight, "deviceScaleFactor": 1, "mobile": false,
		"dontSetVisibleSize": true,
	}, nil); err != nil {
		return err
	}
	return t.call(ctx, "Page.enable", nil, nil)
}

// call calls a method of the page. It ends with the tab too.
func (t *tab) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer t.over.OnReady(func() { cancel(t.over.cause()) })()
	return t.browser.Call(ctx, t.session, method, params, result)
}

// isGone reports whether the tab has ended.
func (t *tab) isGone() bool {
	if t.browser.Err() != nil {
		t.over.end(errCrashed)
	}
	return t.over.IsReady()
}

func decode(event chromium.Event, to any) bool { return json.Unmarshal(event.Params, to) == nil }

// event follows what happens to the page. The goroutine that reads from the browser calls it.
func (t *tab) event(event chromium.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if most := t.engine.options.times.events; t.events >= most {
		t.over.end(abi.Errorf(abi.CodeExhausted, "events of a page: %d", most))
		return
	}
	t.events++
	switch event.Method {
	case "Page.frameStartedNavigating", "Page.frameStartedLoading":
		var e struct{ FrameID string }
		if decode(event, &e) && e.FrameID == t.target {
			t.loading = true
			t.change()
		}
	case "Page.frameStoppedLoading":
		var e struct{ FrameID string }
		if decode(event, &e) && e.FrameID == t.target {
			t.loading = false
			t.change()
		}
	case "Page.frameNavigated":
		var e struct {
			Frame struct{ ID string }
		}
		if decode(event, &e) && e.Frame.ID == t.target {
			t.pages++
			if err := t.budget.page(); err != nil {
				t.over.end(err)
			}
			t.change()
		}
	case "Page.javascriptDialogOpening":
		var e struct{ Type string }
		// A page may be left, and has no other answer.
		t.browser.Send(t.session, "Page.handleJavaScriptDialog", map[string]any{"accept": decode(event, &e) && e.Type == "beforeunload"})
	case "Inspector.targetCrashed":
		err := errPage
		if t.engine.tooLarge(t.scope) {
			err = abi.Errorf(abi.CodeExhausted, "memory of a page: %s", printable.Size(t.engine.options.Memory))
		}
		t.over.end(err)
	case "Inspector.detached":
		t.over.end(errPage)
	case "Browser.downloadWillBegin":
		t.downloadBegins(event)
	case "Browser.downloadProgress":
		t.downloadContinues(event)
	}
}

// change wakes those that wait for a change. The caller holds t.mu.
func (t *tab) change() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// until waits until is, which is called with t.mu held, is true.
func (t *tab) until(ctx context.Context, is func() bool) error {
	for {
		t.mu.Lock()
		if is() {
			t.mu.Unlock()
			return nil
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.over.Done():
			return t.over.cause()
		}
	}
}

// close ends the tab, and gives its place back.
func (t *tab) close(ctx context.Context, why error) {
	t.once.Do(func() {
		t.over.end(why)
		t.browser.Handle(t.session, nil)
		t.browser.Handle(t.control, nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if t.out != nil {
			_ = t.out.Close() // what is left of its connections ends with the browser
		}
		if t.context != "" {
			if err := t.browser.Call(ctx, "", "Target.disposeBrowserContext", map[string]any{"browserContextId": t.context}, nil); err != nil {
				_ = t.browser.Close() // it does not even drop a page
			}
		}
		if t.control != "" {
			t.browser.Send("", "Target.detachFromTarget", map[string]any{"sessionId": t.control})
		}
		if t.folder != "" {
			_ = t.browser.RemoveAll(t.folder) // it is on the browser's own disk
		}
		t.done()
	})
}

// closeTime bounds how long a browser may take to drop a page.
const closeTime = 5 * time.Second

// explain converts a failure into an error for the guest.
func (t *tab) explain(ctx context.Context, err error) error {
	refused := (*chromium.CallError)(nil)
	switch known, ok := errors.AsType[*abi.Error](err); {
	case err == nil:
		return nil
	case ok:
		return known
	case t.over.IsReady():
		return t.over.cause()
	case errors.Is(err, context.DeadlineExceeded):
		return abi.ErrTimedOut
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, chromium.ErrTooLarge):
		return &abi.Error{Code: abi.CodeTooLarge, Size: chromium.MaxMessage}
	case errors.Is(err, chromium.ErrGone):
		return errCrashed
	case errors.As(err, &refused):
		return abi.Errorf(abi.CodeUnavailable, "the browser: %s", short(refused.Message))
	default:
		return fmt.Errorf("browser: %w", err)
	}
}
