package http

import (
	"context"
	"errors"
	"fmt"
	nethttp "net/http"
	"time"

	"github.com/stilehost/stile/abi"
)

// maxRedirects is how many redirects one exchange follows.
const maxRedirects = 10

// follow sends q and follows redirects as far as q asks and rules allow. It always returns the last request, with its response.
func (c *Client) follow(ctx context.Context, q *request) (*nethttp.Response, *request, error) {
	been := map[string]bool{}
	for hops := 0; ; hops++ {
		been[q.step()] = true
		response, err := c.send(ctx, q)
		if err != nil {
			return nil, q, err
		}
		location := response.Header.Get("Location")
		if !isRedirect(response.StatusCode) || location == "" || q.redirect == RedirectManual {
			return response, q, nil
		}
		_ = response.Body.Close()
		if q.redirect == RedirectError {
			return nil, q, abi.Errorf(abi.CodeUnavailable, "%s redirects, and the request does not allow redirects", q.target.withoutQuery())
		}
		if hops == maxRedirects {
			return nil, q, abi.Errorf(abi.CodeUnavailable, "more than %d redirects", maxRedirects)
		}
		to, err := q.target.resolve(q.secrets.mask(text(location)))
		if err == nil {
			to, err = q.secrets.clean(to)
		}
		if err != nil {
			return nil, q, abi.Errorf(abi.CodeUnavailable, "%s redirects to a URL that is refused: %v", q.target.withoutQuery(), err)
		}
		q = q.redirected(response.StatusCode, to)
		if been[q.step()] {
			return nil, q, abi.Errorf(abi.CodeUnavailable, "the redirects form a loop, back to %s", q.target.withoutQuery())
		}
		if err := c.authorise(q); err != nil {
			return nil, q, err
		}
	}
}

// step is equal for two requests of an exchange that a server cannot distinguish, because redirects only remove headers.
func (q *request) step() string {
	return fmt.Sprintf("%s %s %d %t", q.method, q.target, len(q.header), q.crossed)
}

// changes reports whether the request may change something on the server, by its method.
func (q *request) changes() bool { return q.method != "GET" && q.method != "HEAD" }

// send sends q to one server.
func (c *Client) send(ctx context.Context, q *request) (*nethttp.Response, error) {
	sent := q.http(ctx)
	if err := c.authenticate(ctx, q, sent); err != nil {
		return nil, err
	}
	if name := q.rule.Idempotency; name != "" && !q.crossed && q.changes() {
		sent.Header.Set(name, q.key)
	}
	if err := abi.Charge(ctx, len(q.target.String())+sizeOf(q.header)+int(sent.ContentLength)); err != nil {
		return nil, err
	}
	if err := c.call.request(1); err != nil {
		return nil, err
	}
	var transport nethttp.RoundTripper = q.rule.transport
	if c.grant.options.Transport != nil {
		transport = c.grant.options.Transport
	}
	response, err := transport.RoundTrip(sent)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return nil, q.refused(refused)
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode == nethttp.StatusSwitchingProtocols {
		_ = response.Body.Close()
		return nil, abi.Errorf(abi.CodeUnavailable, "the server switches to another protocol")
	}
	if err := abi.Charge(ctx, sizeOf(response.Header)); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	work := time.Duration(fieldsOf(response.Header)) * fieldWork
	if q.secrets.forms != nil {
		work += time.Duration(sizeOf(response.Header)) * maskWork
	}
	if err := abi.Work(ctx, work); err != nil {
		_ = response.Body.Close()
		return nil, abi.Errorf(abi.CodeExhausted, "processor time of the call, to read the headers of the response: %v", err)
	}
	if err := c.call.received.Reserve(headCost * int64(sizeOf(response.Header))); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

func isRedirect(status int) bool {
	switch status {
	case nethttp.StatusMovedPermanently, nethttp.StatusFound, nethttp.StatusSeeOther, nethttp.StatusTemporaryRedirect,
		nethttp.StatusPermanentRedirect:
		return true
	}
	return false
}

// resolve parses a reference, relative to t.
func (t *target) resolve(reference string) (*target, error) {
	if err := plain(reference); err != nil {
		return nil, err
	}
	absolute, err := t.url().Parse(reference)
	if err != nil {
		return nil, errors.New("it is malformed")
	}
	return parseTarget(absolute.String())
}
