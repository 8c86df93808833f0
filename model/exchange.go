package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxAttempts = 4
	maxWait     = time.Minute // the longest wait before another attempt, whatever the server asks for
	maxReply    = 1 << 20     // bytes of a reply: its text, thoughts and calls
	maxCalls    = 64          // calls of a reply
	maxStream   = 16 << 20    // bytes of a reply as sent
	maxRefusal  = 64 << 10    // bytes read from a refusal
	maxMessage  = 1000        // bytes of a refusal that are shown
)

// Error reports that a model gave no complete reply. It never contains the key.
type Error struct {
	// Status is the HTTP status of a refusal. It is 0 for other errors.
	Status int
	// Message says what happened, with the server's words made printable.
	Message string

	err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model: HTTP status %d: %s", e.Status, e.Message)
	}
	return "model: " + e.Message
}

// Unwrap returns the error of a context if that ended the exchange.
func (e *Error) Unwrap() error { return e.err }

// rejects reports whether a server refused a parameter of the request.
func (e *Error) rejects(parameter string) bool {
	return e != nil && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) && strings.Contains(e.Message, parameter)
}

// api is the part that the protocols share: an address, headers with the key, which are sent only there, and bounds.
type api struct {
	options Options
	client  *http.Client
	url     string
	// send adds everything except the body to a request. The key exists only inside this function, where nothing prints it.
	send func(http.Header)
}

// newAPI returns the API at a path below the base URL. header and prefix say how the protocol sends the key.
func newAPI(o Options, path, header, prefix string) (*api, error) {
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 30 * time.Second}}
	if o.HTTPClient != nil {
		own := *o.HTTPClient
		client = &own
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	at, err := url.JoinPath(o.BaseURL, path)
	if err != nil {
		return nil, &OptionsError{"BaseURL", "it is not a URL"}
	}
	key := o.Key
	o.Key = ""
	return &api{o, client, at, func(h http.Header) {
		if key != "" {
			h.Set(header, prefix+key)
		}
	}}, nil
}

// limit is the maximum number of tokens of a reply to c.
func (a *api) limit(c Conversation) int {
	if c.MaxTokens > 0 {
		return min(c.MaxTokens, a.options.MaxTokens)
	}
	return a.options.MaxTokens
}

// temperature returns the value to send, or nil to send none.
func (a *api) temperature() *float64 {
	if *a.options.Temperature < 0 {
		return nil
	}
	return a.options.Temperature
}

// complete asks for a reply within the bounds. ask speaks the protocol.
func (a *api) complete(ctx context.Context, c Conversation, onPiece func(Piece), ask func(context.Context, *exchange) error) (Reply, error) {
	x := &exchange{api: a, onPiece: onPiece}
	timed, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	err := ask(timed, x)
	switch {
	case err != nil:
	case !x.ended:
		err = &Error{Message: "the stream ended before the reply did"}
	case x.filtered:
		err = &Error{Message: "the server's filter ended the reply: describe the extension in other words, or use another model"}
	}
	reply := x.reply()
	if x.opened && (x.input == 0 || x.output == 0 && x.size > 0) {
		reply.Tokens = Tokens{Input: c.Estimate(), Output: reply.Turn().estimate(), Estimated: true}
	}
	if err != nil {
		return reply, a.explain(ctx, timed, x, err)
	}
	return reply, nil
}

// explain converts any error into an *Error whose text has no key.
func (a *api) explain(ctx, timed context.Context, x *exchange, err error) error {
	own, isOwn := errors.AsType[*Error](err)
	switch {
	case context.Cause(ctx) != nil:
		return &Error{Message: "given up: " + context.Cause(ctx).Error(), err: context.Cause(ctx)}
	case timed.Err() != nil && x.refusal != nil:
		return &Error{x.refusal.Status, fmt.Sprintf("%s, for %s", x.refusal.Message, a.options.Timeout), timed.Err()}
	case timed.Err() != nil:
		return &Error{Message: fmt.Sprintf("no complete reply within %s", a.options.Timeout), err: timed.Err()}
	case isOwn:
		return own
	default:
		return &Error{Message: a.printable(err.Error())}
	}
}

// printable makes a server's text safe to show: it removes the key, and escapes what a terminal would obey or hide.
func (a *api) printable(text string) string {
	text = a.options.redact(text[:min(len(text), maxRefusal)])
	var b strings.Builder
	for i, c := range text {
		size := utf8.RuneLen(c)
		switch {
		case i >= maxMessage:
			return b.String() + "..."
		case c == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case c == '\n' || c == '\t' || strconv.IsPrint(c):
			b.WriteString(text[i : i+size])
		default:
			quoted := strconv.QuoteRuneToASCII(c)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// exchange is one reply as it arrives.
type exchange struct {
	api     *api
	onPiece func(Piece)

	text                  strings.Builder
	thoughts              []*thinking
	calls                 []*calling
	size                  int  // bytes of all of these
	input, output, cached int  // tokens, as the API counts them
	opened                bool // the server began to answer
	ended, cut            bool
	filtered              bool   // a content filter ended the reply
	refusal               *Error // the last refusal
}

// thinking is a thought as it arrives.
type thinking struct{ text, signature, sealed strings.Builder }

// calling is a call as it arrives.
type calling struct {
	id, name string
	input    strings.Builder
}

// take takes a piece of the reply, which is added to a part of it.
func (x *exchange) take(part *strings.Builder, text string, piece Piece) error {
	if x.size += len(text); x.size > maxReply {
		return &Error{Message: fmt.Sprintf("the reply is longer than %d KiB", maxReply>>10)}
	}
	part.WriteString(text)
	if x.onPiece != nil && piece != (Piece{}) {
		x.onPiece(piece)
	}
	return nil
}

// say takes a piece of the text.
func (x *exchange) say(text string) error { return x.take(&x.text, text, Piece{Text: text}) }

// begin begins another thought.
func (x *exchange) begin() *thinking {
	t := &thinking{}
	x.thoughts = append(x.thoughts, t)
	return t
}

// think takes a piece of a thought.
func (x *exchange) think(t *thinking, text string) error {
	return x.take(&t.text, text, Piece{Thought: text})
}

// call begins another call.
func (x *exchange) call(id, name string) (*calling, error) {
	if len(x.calls) == maxCalls {
		return nil, &Error{Message: fmt.Sprintf("the reply has more than %d calls of tools", maxCalls)}
	}
	c := &calling{id: id, name: name}
	x.calls = append(x.calls, c)
	return c, x.take(new(strings.Builder), id+name, Piece{Call: len(x.calls), Name: name})
}

// argue takes a piece of a call's input.
func (x *exchange) argue(c *calling, text string) error {
	if text == "" {
		return nil
	}
	return x.take(&c.input, text, Piece{Call: slices.Index(x.calls, c) + 1, Name: c.name, Input: text})
}

// reply is what has arrived.
func (x *exchange) reply() Reply {
	r := Reply{Text: x.text.String(), Cut: x.cut, Tokens: Tokens{Input: x.input, Output: x.output, Cached: min(x.cached, x.input)}}
	for _, t := range x.thoughts {
		r.Thoughts = append(r.Thoughts, Thought{t.text.String(), t.signature.String(), t.sealed.String()})
	}
	taken := map[string]bool{}
	for i, c := range x.calls {
		call := Call{ID: c.id, Name: c.name}
		for n := i + 1; !isID(call.ID) || taken[call.ID]; n++ { // some servers give none, or the same one twice
			call.ID = fmt.Sprintf("call_%d", n)
		}
		taken[call.ID] = true
		text := cmp.Or(strings.TrimSpace(c.input.String()), "{}") // models leave out an input without fields
		if json.Valid([]byte(text)) {
			call.Input = json.RawMessage(text)
		} else {
			call.Malformed = text
		}
		r.Calls = append(r.Calls, call)
	}
	return r
}

// isID reports whether both protocols take an id of a call.
func isID(id string) bool {
	return len(id) <= 128 && id != "" && !strings.ContainsFunc(id, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	})
}

// count raises total to the API's count of tokens, but not above what can be added up safely.
func count(total *int, tokens int64) {
	const most = 1 << 30
	*total = max(*total, int(min(tokens, most)))
}

// stream sends a request, and passes the data of each event to take until an error, the end, or until take returns true.
func (x *exchange) stream(ctx context.Context, request any, take func(data []byte) (done bool, err error)) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	response, err := x.send(ctx, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	for data, err := range events(&boundedReader{response.Body, maxStream}) {
		if err != nil {
			return err
		}
		if done, err := take(data); done || err != nil {
			return err
		}
	}
	return nil
}

// decode reads the data of an event.
func (x *exchange) decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return &Error{Message: "an event of the reply is not valid JSON of this protocol: " + x.api.printable(err.Error())}
	}
	return nil
}

// failed is the error that a server reports inside its stream.
func (x *exchange) failed(message string) error {
	return &Error{Message: "the server broke off the reply: " + x.api.printable(message)}
}

// send sends a request, and repeats it if the server is busy. It returns a stream of events.
func (x *exchange) send(ctx context.Context, body []byte) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, x.api.url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "text/event-stream")
		x.api.send(request.Header)
		response, err := x.api.client.Do(request)
		if err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusOK {
			if err := x.admit(response); err != nil {
				_ = response.Body.Close()
				return nil, err
			}
			return response, nil
		}
		x.refusal = x.api.refused(response)
		wait := wait(response, attempt, time.Now())
		if busy := response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500; !busy || attempt == maxAttempts {
			return nil, x.refusal
		}
		if wait > maxWait {
			x.refusal.Message += fmt.Sprintf("; it asks to wait for %s", wait.Round(time.Second))
			return nil, x.refusal
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// admit accepts only an answer that is a stream of events.
func (x *exchange) admit(response *http.Response) error {
	given := response.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(given); err != nil || media != "text/event-stream" {
		return &Error{Message: fmt.Sprintf("the server answered with %q instead of text/event-stream", x.api.printable(given))}
	}
	x.opened = true
	return nil
}

// boundedReader fails if a body is longer than its bound.
type boundedReader struct {
	from io.Reader
	left int
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, &Error{Message: fmt.Sprintf("the server sent more than %d MiB for one reply", maxStream>>20)}
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// refused reads the answer of a refusal.
func (a *api) refused(response *http.Response) *Error {
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return &Error{Status: response.StatusCode, Message: "the server redirects, and redirects are not followed: " +
			strconv.Quote(a.printable(response.Header.Get("Location")))}
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // if reading fails, the part that arrived is shown
	text := strings.TrimSpace(string(body))
	var said fault
	if json.Unmarshal(body, &said) == nil && said.Error.Message != "" {
		text = said.Error.Message
	}
	if text == "" {
		text = http.StatusText(response.StatusCode)
	}
	return &Error{Status: response.StatusCode, Message: a.printable(text)}
}

// fault is the form in which servers of both protocols describe an error.
type fault struct {
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// wait returns how long to wait after an attempt, counted from 1: as long as the server asks for, in seconds or until a date.
// Otherwise each wait is twice as long as the one before.
func wait(response *http.Response, attempt int, now time.Time) time.Duration {
	asked := response.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(asked, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(asked); err == nil {
		return max(0, date.Sub(now))
	}
	return time.Second << (attempt - 1)
}
