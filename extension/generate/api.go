package generate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/secret"
)

const (
	maxAttempts = 4
	maxWait     = time.Minute // before another attempt, whatever the server asks for
	maxText     = 256 << 10   // bytes of a reply's text
	maxStream   = 16 << 20    // bytes of a reply as it is sent
	maxRefusal  = 64 << 10    // bytes that are read of a refusal
	maxMessage  = 1000        // bytes that are shown of it
)

// ModelError is a model that gave no whole reply. It never holds the key.
type ModelError struct {
	// Status is the HTTP status of a refusal; 0 when it is not one.
	Status int
	// Message says what happened, with the server's own words made printable.
	Message string

	err error
}

// Error implements error.
func (e *ModelError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model: HTTP status %d: %s", e.Status, e.Message)
	}
	return "model: " + e.Message
}

// Unwrap returns the error of a context, when that ended it.
func (e *ModelError) Unwrap() error { return e.err }

// rejects says whether a server refused a parameter of the request.
func (e *ModelError) rejects(parameter string) bool {
	return e != nil && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) && strings.Contains(e.Message, parameter)
}

// api is what the protocols have in common: an address, a key that stays there, and bounds.
type api struct {
	options  ModelOptions
	client   *http.Client
	redactor *secret.Redactor
}

func newAPI(o ModelOptions) *api {
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 30 * time.Second}}
	if o.HTTPClient != nil {
		own := *o.HTTPClient
		client = &own
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	redactor := secret.NewRedactor(o.Key)
	o.Key = "" // the redactor and the vendor's client have it, and nothing that is ever printed
	return &api{o, client, redactor}
}

// limit is the most tokens of a reply to c.
func (a *api) limit(c Conversation) int64 {
	if c.MaxTokens > 0 {
		return int64(min(c.MaxTokens, a.options.MaxTokens))
	}
	return int64(a.options.MaxTokens)
}

// complete asks for a reply within the bounds. ask speaks the protocol, with the exchange as its HTTP client.
func (a *api) complete(ctx context.Context, c Conversation, onText func(string), ask func(context.Context, *exchange) error) (Reply, error) {
	x := &exchange{api: a, onText: onText}
	timed, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	err := ask(timed, x)
	switch {
	case err != nil:
	case !x.ended:
		err = &ModelError{Message: "the stream ended before the reply did"}
	case x.filtered:
		err = &ModelError{Message: "a filter of the server ended the reply: describe the extension in other words, or ask another model"}
	}
	reply := Reply{Text: x.text.String(), Cut: x.cut, Tokens: Tokens{Input: int(x.input), Output: int(x.output)}}
	if x.opened && (x.input == 0 || x.output == 0 && reply.Text != "") {
		reply.Tokens = Tokens{c.estimate(), estimate(reply.Text), true}
	}
	if err != nil {
		return reply, a.explain(ctx, timed, x, err)
	}
	return reply, nil
}

// explain makes errors of others into our own, whose text has no key. Those of the vendors' clients hold the whole request.
func (a *api) explain(ctx, timed context.Context, x *exchange, err error) error {
	own, isOwn := errors.AsType[*ModelError](err)
	switch {
	case context.Cause(ctx) != nil:
		return &ModelError{Message: "given up: " + context.Cause(ctx).Error(), err: context.Cause(ctx)}
	case timed.Err() != nil && x.refusal != nil:
		return &ModelError{x.refusal.Status, fmt.Sprintf("%s, for %s", x.refusal.Message, a.options.Timeout), timed.Err()}
	case timed.Err() != nil:
		return &ModelError{Message: fmt.Sprintf("no whole reply within %s", a.options.Timeout), err: timed.Err()}
	case isOwn:
		return own
	default:
		return &ModelError{Message: a.printable(err.Error())}
	}
}

// printable shows a stranger's text, without the key.
func (a *api) printable(text string) string {
	return abi.PrintableCut(a.redactor.Redact(abi.Cut(text, maxRefusal)), maxMessage)
}

// exchange is one reply as it arrives. It is the HTTP client that the vendors' clients are given.
type exchange struct {
	api    *api
	onText func(string)

	text          strings.Builder
	input, output int64 // tokens, as the API counts them
	opened        bool  // the server began to answer
	ended, cut    bool
	filtered      bool        // the reply was ended for what it says
	refusal       *ModelError // the last one
}

// add takes a piece of the reply.
func (x *exchange) add(piece string) error {
	if x.text.Len()+len(piece) > maxText {
		return &ModelError{Message: fmt.Sprintf("the reply is longer than %d KiB", maxText>>10)}
	}
	x.text.WriteString(piece)
	if x.onText != nil && piece != "" {
		x.onText(piece)
	}
	return nil
}

// count takes the API's count of tokens, of which the last one says most. No number that a server can send adds up to
// less, or overflows.
func count(total *int64, tokens int64) {
	const most = 1 << 30
	*total = max(*total, min(tokens, most))
}

// Do sends a request, and again when the server has no time for it. It returns a stream of events, or a *ModelError.
func (x *exchange) Do(request *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		again := request.Clone(request.Context())
		if request.GetBody != nil {
			body, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			again.Body = body
		}
		response, err := x.api.client.Do(again)
		if err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusOK {
			return x.stream(response)
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
		case <-request.Context().Done():
			timer.Stop()
			return nil, context.Cause(request.Context())
		}
	}
}

// stream admits what was asked for: events, and not more of them than a reply can be.
func (x *exchange) stream(response *http.Response) (*http.Response, error) {
	given := response.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(given); err != nil || media != "text/event-stream" {
		_ = response.Body.Close()
		return nil, &ModelError{Message: fmt.Sprintf("the server answered with %q where text/event-stream belongs", x.api.printable(given))}
	}
	x.opened = true
	response.Body = &boundedBody{response.Body, maxStream}
	return response, nil
}

// boundedBody fails where a body goes on beyond its bound.
type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, &ModelError{Message: fmt.Sprintf("the server sent more than %d MiB for one reply", maxStream>>20)}
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// refused reads a refusal.
func (a *api) refused(response *http.Response) *ModelError {
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return &ModelError{Status: response.StatusCode, Message: "it leads elsewhere, where nothing was sent, to " +
			strconv.Quote(a.printable(response.Header.Get("Location")))}
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // what came is what can be shown
	text := strings.TrimSpace(string(body))
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &said) == nil && said.Error.Message != "" {
		text = said.Error.Message
	}
	if text == "" {
		text = http.StatusText(response.StatusCode)
	}
	return &ModelError{Status: response.StatusCode, Message: a.printable(text)}
}

// wait is how long to wait after an attempt, the first of which is 1: what the server asks for, in seconds or as a date, or
// else twice as long each time.
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
