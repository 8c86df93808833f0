package browser

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/internal/chromium"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
)

//go:embed page.js
var pageScript string

// short bounds a text of a page or guest that an error repeats.
func short(text string) string { return printable.Short(text, 300) }

// Open is `open`.
func (s *Session) Open(ctx context.Context, url string) (*Pending, error) {
	to, err := parseTarget(url)
	if err != nil {
		return nil, err
	}
	if err := s.grant.check(to); err != nil {
		return nil, err
	}
	return s.begin(ctx, "open "+to.String(), anyPage, func(ctx context.Context, t *tab) (result, error) { return t.open(ctx, to) })
}

// open navigates to a URL, and waits until the page has loaded.
func (t *tab) open(ctx context.Context, to target) (result, error) {
	t.out.Forget() // what was denied before is another page's
	t.mu.Lock()
	files := len(t.downloads)
	t.loading = true
	t.mu.Unlock()
	var went struct {
		ErrorText  string
		IsDownload bool
		LoaderID   string
	}
	err := t.call(ctx, "Page.navigate", map[string]any{"url": to.String(), "transitionType": "typed"}, &went)
	switch {
	case err != nil:
		return result{}, err
	case went.IsDownload, went.ErrorText == "net::ERR_ABORTED" && t.downloading(files):
		t.settled()
		return result{Outcome: Outcome{Case: OutcomePage, Page: &Page{URL: to.String(), Status: 200}}}, nil
	case went.ErrorText != "":
		t.settled()
		return result{}, t.failed(went.ErrorText)
	case went.LoaderID == "": // within the same document
		t.settled()
	}
	return t.loaded(ctx)
}

// settled says that the main frame loads nothing.
func (t *tab) settled() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loading = false
}

// failed converts the network's error of a navigation.
func (t *tab) failed(text string) error {
	if denied := t.out.Denied(); len(denied) > 0 {
		return denied[len(denied)-1]
	}
	if text == "net::ERR_TIMED_OUT" || text == "net::ERR_CONNECTION_TIMED_OUT" {
		return abi.ErrTimedOut
	}
	if text == "net::ERR_TUNNEL_CONNECTION_FAILED" { // so Chromium calls it if the proxy has no connection to the server
		text = "its server cannot be reached"
	}
	return abi.Errorf(abi.CodeUnavailable, "the page did not open: %s", short(text))
}

// loaded waits until the page has loaded, and returns its state. A page that goes on loading is there too, and says so by its time.
func (t *tab) loaded(ctx context.Context) (result, error) {
	waiting, cancel := context.WithTimeout(ctx, t.engine.options.times.load)
	defer cancel()
	err := t.until(waiting, func() bool { return !t.loading })
	if err != nil && (ctx.Err() != nil || t.over.IsReady()) {
		return result{}, err
	}
	if err != nil { // it never ends to load: what is there is a page all the same
		t.browser.Send(t.session, "Page.stopLoading", nil)
		t.settled()
	}
	return t.page(ctx)
}

// page returns the state of the page.
func (t *tab) page(ctx context.Context) (result, error) {
	var state struct {
		URL, Title string
		Status     uint16
	}
	if err := t.ask(ctx, &state, "state"); err != nil {
		return result{}, err
	}
	if strings.HasPrefix(state.URL, "chrome-error:") {
		return result{}, t.failed("net::ERR_FAILED")
	}
	// A proxy can refuse a request without TLS only by an answer in place of the server's.
	if denied := t.out.Denied(); len(denied) > 0 && state.Status == statusDenied {
		for _, d := range denied {
			if d.Denial != nil && strings.Contains(d.Denial.Operation, originOf(state.URL)) {
				return result{}, d
			}
		}
	}
	return result{Outcome: Outcome{Case: OutcomePage, Page: &Page{URL: state.URL, Title: state.Title, Status: state.Status}}}, nil
}

// statusDenied is the status with which a proxy refuses.
const statusDenied = 403

// problem is what page.js answers in place of a value.
type problem struct {
	Invalid string
	Missing string
	Near    []string
	Large   uint64
}

func (p *problem) err() error {
	switch {
	case p.Large > 0:
		return &abi.Error{Code: abi.CodeTooLarge, Size: p.Large}
	case p.Missing != "":
		near := "the page has no such elements at all"
		if len(p.Near) > 0 {
			near = "near it: " + strings.Join(p.Near, ", ")
		}
		return abi.Errorf(abi.CodeNotFound, "no element matches %s; %s", printable.Short(p.Missing, 200), printable.Short(near, 600))
	default:
		return abi.Errorf(abi.CodeInvalid, "%s", printable.Short(p.Invalid, 600))
	}
}

// ask calls a function of page.js in a world of its own, and decodes its value. A page that is just left is asked again.
func (t *tab) ask(ctx context.Context, value any, name string, args ...any) error {
	if args == nil {
		args = []any{}
	}
	list, err := json.Marshal(args)
	if err != nil {
		return err
	}
	expression := pageScript + fmt.Sprintf("(%q, %s)", name, list)
	for {
		text, err := t.askOnce(ctx, expression)
		refused := (*chromium.CallError)(nil)
		if errors.As(err, &refused) && ctx.Err() == nil && isLeft(refused.Message) {
			if err := t.pause(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		var answer struct {
			Value   json.RawMessage
			Problem *problem
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			return abi.Errorf(abi.CodeUnavailable, "the page cannot be read")
		}
		if answer.Problem != nil {
			return answer.Problem.err()
		}
		if value == nil || answer.Value == nil {
			return nil
		}
		return json.Unmarshal(answer.Value, value)
	}
}

func (t *tab) askOnce(ctx context.Context, expression string) (string, error) {
	var world struct{ ExecutionContextID int64 }
	if err := t.call(ctx, "Page.createIsolatedWorld", map[string]any{"frameId": t.target, "worldName": "stile"}, &world); err != nil {
		return "", err
	}
	var evaluated evaluation
	err := t.call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "contextId": world.ExecutionContextID, "returnByValue": true}, &evaluated)
	if err != nil {
		return "", err
	}
	var text string
	if evaluated.ExceptionDetails != nil || json.Unmarshal(evaluated.Result.Value, &text) != nil {
		return "", abi.Errorf(abi.CodeUnavailable, "the page cannot be read")
	}
	return text, nil
}

// isLeft reports whether the browser refused a call because the document that it was for is gone.
func isLeft(message string) bool {
	for _, part := range []string{"Cannot find context", "context was destroyed", "Inspected target navigated", "No frame for given id", "Execution context"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}

// pause waits a moment before a page is asked again, less if it changes.
func (t *tab) pause(ctx context.Context) error {
	t.mu.Lock()
	changed := t.changed
	t.mu.Unlock()
	timer := time.NewTimer(pauseTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.over.Done():
		return t.over.cause()
	}
	return nil
}

const pauseTime = 40 * time.Millisecond

// evaluation is the browser's answer to Runtime.evaluate.
type evaluation struct {
	Result struct {
		Type  string
		Value json.RawMessage
	}
	ExceptionDetails *struct {
		Text      string
		Exception struct{ ClassName, Description string }
	}
}

// keep makes a text that waits to be taken, and charges it.
func (s *Session) keep(ctx context.Context, text string) (result, error) {
	b, err := s.blob(ctx, "text/plain;charset=utf-8", int64(max(len(text), 1)), strings.NewReader(text))
	return result{Outcome: Outcome{Case: OutcomeText}, text: b}, err
}

// blob makes a blob of what r has, up to limit bytes, and charges it.
func (s *Session) blob(ctx context.Context, mediaType string, limit int64, r io.Reader) (*blob.Blob, error) {
	b := blob.NewBuilder(blob.Options{MediaType: mediaType, Limit: limit, Quota: s.budget.held})
	defer func() { _ = b.Close() }() // drops bytes that did not become a blob
	if _, err := io.Copy(b, chargedReader{ctx, r}); err != nil {
		return nil, err
	}
	return b.Blob()
}

type chargedReader struct {
	ctx context.Context
	r   io.Reader
}

func (c chargedReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.r.Read(p)
	if refused := abi.Charge(c.ctx, n); refused != nil {
		return 0, refused
	}
	return n, err
}

// within refuses a text of a guest that is too long or not UTF-8.
func within(name, text string, most int) error {
	switch {
	case len(text) > most:
		return abi.Errorf(abi.CodeInvalid, "the %s has %d bytes, and may have %d", name, len(text), most)
	case !utf8.ValidString(text):
		return abi.Errorf(abi.CodeInvalid, "the %s is not UTF-8", name)
	}
	return nil
}

func checkSelector(selector *string) error {
	switch {
	case selector == nil:
		return nil
	case strings.TrimSpace(*selector) == "":
		return abi.Errorf(abi.CodeInvalid, `the selector is empty; write CSS like "#id" or "button.save"`)
	}
	return within("selector", *selector, maxSelector)
}

// orNothing is a selector, or null, and the arguments of page.js that follow.
func orNothing(selector *string, rest ...any) []any {
	if selector == nil {
		return append([]any{nil}, rest...)
	}
	return append([]any{*selector}, rest...)
}

// Click is `click`.
func (s *Session) Click(ctx context.Context, selector string) (*Pending, error) {
	if err := checkSelector(&selector); err != nil {
		return nil, err
	}
	return s.begin(ctx, "click "+selector, openPage, func(ctx context.Context, t *tab) (result, error) {
		var at struct {
			X, Y    float64
			Covered string
		}
		if err := t.ask(ctx, &at, "point", selector); err != nil {
			return result{}, err
		}
		if at.Covered != "" {
			return result{}, abi.Errorf(abi.CodeInvalid, "%s is covered by %s", short(selector), short(at.Covered))
		}
		return t.act(ctx, func() error {
			for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
				press := map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}
				if kind == "mouseMoved" {
					press["button"], press["clickCount"] = "none", 0
				}
				if err := t.call(ctx, "Input.dispatchMouseEvent", press, nil); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// act does what a person would do, and waits for the page that this may open.
func (t *tab) act(ctx context.Context, do func() error) (result, error) {
	t.out.Forget()
	if err := do(); err != nil {
		return result{}, err
	}
	// The browser has handled the input, but a page may begin to leave only with its next task.
	if err := t.call(ctx, "Runtime.evaluate", map[string]any{
		"expression": "new Promise((done) => setTimeout(done, 10))", "awaitPromise": true,
	}, nil); err != nil {
		refused := (*chromium.CallError)(nil)
		if !errors.As(err, &refused) || !isLeft(refused.Message) {
			return result{}, err
		}
	}
	return t.loaded(ctx)
}

// Fill is `fill`.
func (s *Session) Fill(ctx context.Context, selector, text string) (*Pending, error) {
	err := checkSelector(&selector)
	if err == nil {
		err = within("text", text, maxFill)
	}
	if err != nil {
		return nil, err
	}
	if err := abi.Charge(ctx, len(text)); err != nil {
		return nil, err
	}
	return s.begin(ctx, "fill "+selector, openPage, func(ctx context.Context, t *tab) (result, error) {
		return result{}, t.ask(ctx, nil, "fill", selector, text)
	})
}

// Press is `press`.
func (s *Session) Press(ctx context.Context, key string) (*Pending, error) {
	pressed, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	return s.begin(ctx, "press "+key, openPage, func(ctx context.Context, t *tab) (result, error) {
		return t.act(ctx, func() error {
			for _, event := range pressed.events() {
				if err := t.call(ctx, "Input.dispatchKeyEvent", event, nil); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// WaitFor is `wait-for`.
func (s *Session) WaitFor(ctx context.Context, what Awaited) (*Pending, error) {
	var seen func(ctx context.Context, t *tab) (bool, error)
	var name string
	switch {
	case what.Case == AwaitedSelector && what.Selector != nil:
		if err := checkSelector(what.Selector); err != nil {
			return nil, err
		}
		name = *what.Selector
		seen = has(map[string]any{"selector": name})
	case what.Case == AwaitedText && what.Text != nil:
		name = *what.Text
		seen = has(map[string]any{"text": name})
	case what.Case == AwaitedURL && what.URL != nil:
		name = *what.URL
		if err := within("URL", name, maxURL); err != nil {
			return nil, err
		}
		pattern := urlPattern(name)
		seen = func(ctx context.Context, t *tab) (bool, error) {
			r, err := t.page(ctx)
			return err == nil && pattern.MatchString(r.Page.URL), err
		}
	default:
		return nil, abi.Errorf(abi.CodeInvalid, "there is nothing to wait for")
	}
	if err := within("text", name, maxSelector); what.Case != AwaitedURL && err != nil {
		return nil, err
	}
	return s.begin(ctx, waitStep(what.Case)+name, openPage, func(ctx context.Context, t *tab) (result, error) {
		waiting, cancel := context.WithTimeout(ctx, t.engine.options.times.wait)
		defer cancel()
		for {
			there, err := seen(waiting, t)
			switch {
			case ctx.Err() != nil:
				return result{}, context.Cause(ctx)
			case waiting.Err() != nil:
				return result{}, t.waitedFor(ctx, what, name)
			case err != nil:
				return result{}, err
			case there:
				return t.page(ctx)
			}
			if err := t.pause(waiting); err != nil && waiting.Err() == nil {
				return result{}, err
			}
		}
	})
}

func has(what map[string]any) func(ctx context.Context, t *tab) (bool, error) {
	return func(ctx context.Context, t *tab) (there bool, err error) {
		return there, t.ask(ctx, &there, "has", what)
	}
}

// urlPattern matches a URL with "*" for any characters.
func urlPattern(pattern string) *regexp.Regexp {
	parts := strings.Split(pattern, "*")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
}

// waitedFor is the error of waiting in vain.
func (t *tab) waitedFor(ctx context.Context, what Awaited, name string) error {
	text := fmt.Sprintf("waited %v for %s in vain", t.engine.options.times.wait, short(name))
	switch what.Case {
	case AwaitedSelector:
		var near []string
		if t.ask(ctx, &near, "near", name) == nil && len(near) > 0 {
			text += "; near it: " + printable.Short(strings.Join(near, ", "), 600)
		}
	case AwaitedURL:
		if r, err := t.page(ctx); err == nil {
			text += "; the page is " + short(r.Page.URL)
		}
	default:
	}
	return abi.Errorf(abi.CodeNotFound, "%s", text)
}

// Text is `text`.
func (s *Session) Text(ctx context.Context, selector *string) (*Pending, error) {
	return s.read(ctx, selector, "text", maxText)
}

// HTML is `html`.
func (s *Session) HTML(ctx context.Context, selector *string) (*Pending, error) {
	return s.read(ctx, selector, "html", maxHTML)
}

// Markdown is `markdown`.
func (s *Session) Markdown(ctx context.Context) (*Pending, error) {
	return s.begin(ctx, "markdown", openPage, func(ctx context.Context, t *tab) (result, error) {
		var text string
		if err := t.ask(ctx, &text, "markdown", maxMarkdown); err != nil {
			return result{}, err
		}
		return s.keep(ctx, text)
	})
}

func (s *Session) read(ctx context.Context, selector *string, function string, most int) (*Pending, error) {
	if err := checkSelector(selector); err != nil {
		return nil, err
	}
	return s.begin(ctx, step(function, selector), openPage, func(ctx context.Context, t *tab) (result, error) {
		var text string
		if err := t.ask(ctx, &text, function, orNothing(selector, most)...); err != nil {
			return result{}, err
		}
		return s.keep(ctx, text)
	})
}

// Evaluate is `evaluate`.
func (s *Session) Evaluate(ctx context.Context, code, arguments string) (*Pending, error) {
	err := within("code", code, maxCode)
	if err == nil {
		err = within("list of arguments", arguments, maxArguments)
	}
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if json.Unmarshal([]byte(arguments), &list) != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "the arguments are not a list as JSON")
	}
	return s.begin(ctx, evaluateStep(code, list), openPage, func(ctx context.Context, t *tab) (result, error) {
		// An expression, whose value may be a function to call; or else the body of a function.
		evaluated, err := t.evaluate(ctx, "(async (a, most) => { let v = (\n"+code+"\n); if (typeof v === 'function') v = v(...a);", arguments)
		if err == nil && evaluated.ExceptionDetails != nil && evaluated.ExceptionDetails.Exception.ClassName == "SyntaxError" {
			evaluated, err = t.evaluate(ctx, "(async (a, most) => { let v = (async (...args) => {\n"+code+"\n})(...a);", arguments)
		}
		if err != nil {
			return result{}, err
		}
		if thrown := evaluated.ExceptionDetails; thrown != nil {
			text := thrown.Exception.Description
			if text == "" {
				text = thrown.Text
			}
			return result{}, abi.Errorf(abi.CodeInvalid, "the code failed in the page: %s", short(text))
		}
		var text string
		if json.Unmarshal(evaluated.Result.Value, &text) != nil && evaluated.Result.Type != "undefined" {
			return result{}, abi.Errorf(abi.CodeInvalid, "the code returned what is no JSON")
		}
		if size, is := strings.CutPrefix(text, tooLargeMark); is || len(text) > maxText {
			n := uint64(len(text))
			_, _ = fmt.Sscan(size, &n)
			return result{}, &abi.Error{Code: abi.CodeTooLarge, Size: n}
		}
		if text != "" && !json.Valid([]byte(text)) { // the page has replaced JSON
			return result{}, abi.Errorf(abi.CodeInvalid, "the code returned what is no JSON")
		}
		return s.keep(ctx, text)
	})
}

const tooLargeMark = "\x00large "

func (t *tab) evaluate(ctx context.Context, start, arguments string) (evaluated evaluation, err error) {
	code := start + fmt.Sprintf(" v = JSON.stringify(await v); if (v === undefined) return; v = String(v); return v.length > most ? %q + v.length : v; })(%s, %d)",
		tooLargeMark, arguments, maxText)
	err = t.call(ctx, "Runtime.evaluate", map[string]any{
		"expression": code, "awaitPromise": true, "returnByValue": true, "userGesture": true,
	}, &evaluated)
	return evaluated, err
}

// Screenshot is `screenshot`.
func (s *Session) Screenshot(ctx context.Context, fullPage bool, selector *string) (*Pending, error) {
	if err := checkSelector(selector); err != nil {
		return nil, err
	}
	if fullPage && selector != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "a picture is of the full page or of an element, not both")
	}
	picture := "screenshot"
	if fullPage {
		picture = "screenshot full-page"
	}
	return s.begin(ctx, step(picture, selector), openPage, func(ctx context.Context, t *tab) (result, error) {
		take := map[string]any{"format": "png"}
		if fullPage || selector != nil {
			var clip struct{ X, Y, Width, Height float64 }
			if err := t.ask(ctx, &clip, "size", orNothing(selector)...); err != nil {
				return result{}, err
			}
			if !(clip.Width >= 1 && clip.Height >= 1) {
				return result{}, abi.Errorf(abi.CodeInvalid, "what is to be shown has no size")
			}
			if area := clip.Width * clip.Height; !(area <= maxPixels) || math.IsInf(area, 0) || max(clip.Width, clip.Height) > maxEdge {
				return result{}, abi.Errorf(abi.CodeInvalid, "a picture of %.0f x %.0f pixels is too large, at most %d pixels and %d in one direction; pass a selector",
					clip.Width, clip.Height, maxPixels, maxEdge)
			}
			take["captureBeyondViewport"] = true
			take["clip"] = map[string]any{"x": clip.X, "y": clip.Y, "width": clip.Width, "height": clip.Height, "scale": 1}
		}
		if err := pictures.Take(ctx); err != nil {
			return result{}, err
		}
		defer pictures.Give()
		var shot struct{ Data string }
		if err := t.call(ctx, "Page.captureScreenshot", take, &shot); err != nil {
			return result{}, err
		}
		b, err := s.blob(ctx, "image/png", chromium.MaxMessage, base64.NewDecoder(base64.StdEncoding, strings.NewReader(shot.Data)))
		return result{Outcome: Outcome{Case: OutcomeBlob, Blob: b}}, err
	})
}

// maxEdge is the longest edge of a picture, in pixels.
const maxEdge = 16_384

// pictures are places for pictures, for which users take turns: their texts are in memory at once, some 50 MiB each at worst.
var pictures = turns.New(2)

// PDF is `pdf`.
func (s *Session) PDF(ctx context.Context) (*Pending, error) {
	return s.begin(ctx, "pdf", openPage, func(ctx context.Context, t *tab) (result, error) {
		var printed struct{ Stream string }
		if err := t.call(ctx, "Page.printToPDF", map[string]any{
			"printBackground": true, "transferMode": "ReturnAsStream", "preferCSSPageSize": true,
		}, &printed); err != nil {
			return result{}, err
		}
		defer t.browser.Send(t.session, "IO.close", map[string]any{"handle": printed.Stream})
		b, err := s.blob(ctx, "application/pdf", maxPDF, &stream{ctx: ctx, t: t, handle: printed.Stream})
		return result{Outcome: Outcome{Case: OutcomeBlob, Blob: b}}, err
	})
}

// stream reads a stream of the browser's.
type stream struct {
	ctx    context.Context
	t      *tab
	handle string
	rest   []byte
	ended  bool
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		var part struct {
			Data          string
			Base64Encoded bool
			EOF           bool
		}
		if err := s.t.call(s.ctx, "IO.read", map[string]any{"handle": s.handle, "size": 256 << 10}, &part); err != nil {
			return 0, err
		}
		s.ended, s.rest = part.EOF, []byte(part.Data)
		if part.Base64Encoded {
			var err error
			if s.rest, err = base64.StdEncoding.DecodeString(part.Data); err != nil {
				return 0, err
			}
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// step names an action in a test.
func step(name string, selector *string) string {
	if selector == nil {
		return name
	}
	return name + " " + *selector
}

func waitStep(c AwaitedCase) string {
	return "wait-for " + [...]string{"selector ", "text ", "url "}[c]
}

func evaluateStep(code string, arguments []json.RawMessage) string {
	if len(arguments) == 0 {
		return "evaluate " + code
	}
	return "evaluate " + code + " " + string(capability.JSON(arguments))
}

// Leave is `leave`.
func (s *Session) Leave(ctx context.Context) (*Pending, error) {
	return s.begin(ctx, "leave", noPage, nil)
}
