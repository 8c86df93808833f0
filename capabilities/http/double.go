package http

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/printable"
)

const (
	maxShown = 300 // bytes of a request

	exampleAnswers = `{"GET https://api.example.com/x": {"status": 200, "json": {}}}`
)

// Answer is a server's response in a test: JSON, text, or neither.
type Answer struct {
	Status  int               `json:"status"` // default 200
	Headers map[string]string `json:"headers,omitempty"`
	JSON    json.RawMessage   `json:"json,omitempty"`
	Text    *string           `json:"text,omitempty"`
}

// Double implements [double.Doubler]: the client sends the requests that the rules allow to simulated servers.
func (g Rights) Double(_ context.Context, t *double.Test, raw json.RawMessage) (abi.Capability, error) {
	stubs, err := double.Members[double.Answers[Answer]](t, raw, exampleAnswers)
	if err != nil {
		return nil, err
	}
	keyed := map[string]double.Answers[Answer]{}
	for name, stub := range stubs {
		key, err := RequestKey(name)
		if _, twice := keyed[key]; err == nil && twice {
			err = errors.New("this request appears twice")
		}
		for _, a := range stub.List {
			err = cmp.Or(err, a.Check())
		}
		if err != nil {
			return nil, t.Wrong(fmt.Sprintf("[%s]: %v", double.Quoted(name), err), exampleAnswers)
		}
		keyed[key] = stub
	}
	made, err := New(Options{Rules: g.Rules, Credentials: doubleCredentials{}, Transport: &doubleTransport{t, double.NewScript(keyed)}})
	if err != nil {
		return nil, err
	}
	return doubleGrant{made}, nil
}

// Check returns an error if no server can give this answer.
func (a Answer) Check() error {
	if a.Status != 0 && (a.Status < 200 || a.Status > 599) {
		return fmt.Errorf("the status %d is not in 200 to 599", a.Status)
	}
	if a.JSON != nil && a.Text != nil {
		return errors.New("the answer has both json and text")
	}
	for name, value := range a.Headers {
		switch strings.ToLower(name) {
		case "connection", "content-encoding", "content-length", "transfer-encoding":
			return fmt.Errorf("the header %s is made by the connection", name)
		}
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("no server can send the header %s", double.Quoted(name))
		}
	}
	return nil
}

// response returns the answer in the form of net/http.
func (a Answer) response(r *nethttp.Request) *nethttp.Response {
	made := &nethttp.Response{
		StatusCode: cmp.Or(a.Status, nethttp.StatusOK), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: nethttp.Header{}, Body: nethttp.NoBody, Request: r,
	}
	kind, body := "", []byte(a.JSON)
	switch {
	case a.JSON != nil:
		kind = "application/json"
	case a.Text != nil:
		kind, body = "text/plain;charset=utf-8", []byte(*a.Text)
	}
	if kind != "" {
		made.Header.Set("Content-Type", kind)
	}
	for name, value := range a.Headers {
		made.Header.Set(name, value)
	}
	if r.Method != nethttp.MethodHead && made.StatusCode != nethttp.StatusNoContent && made.StatusCode != nethttp.StatusNotModified {
		made.Body, made.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return made
}

// doubleTransport simulates the servers of one binding, without sockets. It is safe for concurrent use.
type doubleTransport struct {
	test   *double.Test
	script *double.Script[Answer]
}

// RoundTrip implements [nethttp.RoundTripper].
func (t *doubleTransport) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close() // the simulated server does not read it
	}
	key := r.Method + " " + normalURL(r.URL)
	answer, n, ok := t.script.Next(key)
	if ok {
		return answer.response(r), nil
	}
	what := printable.Cut(key, maxShown)
	if n > 0 {
		what = fmt.Sprintf("request %d of %s", n, what)
	}
	return nil, t.test.Unanswered(what, strconv.Quote(printable.Cut(key, 2<<10))+`: {"status": 200, "json": {}}`)
}

// RequestKey is the key of the answers to a request.
func RequestKey(name string) (string, error) {
	method, text, _ := strings.Cut(name, " ")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || method == "" || strings.ToUpper(method) != method {
		return "", errors.New("this is not a request")
	}
	return method + " " + normalURL(u), nil
}

// normalURL is a URL without irrelevant parts, and without the credential that the host put into the query.
func normalURL(u *url.URL) string {
	n := *u
	n.Fragment, n.RawFragment, n.ForceQuery, n.Host = "", "", false, strings.ToLower(n.Host)
	n.Path = cmp.Or(n.Path, "/")
	if port := map[string]string{"https": ":443", "http": ":80"}[n.Scheme]; port != "" {
		n.Host = strings.TrimSuffix(n.Host, port)
	}
	n.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(n.RawQuery, "&"), func(part string) bool {
		_, value, _ := strings.Cut(part, "=")
		return strings.HasPrefix(value, secretPrefix)
	}), "&")
	return n.String()
}

const secretPrefix = "stile-test-credential-"

// doubleCredentials has a worthless secret for every name.
type doubleCredentials struct{}

// Get implements [Credentials].
func (doubleCredentials) Get(_ context.Context, name string) (string, error) {
	return secretPrefix + name, nil
}

// doubleGrant opens clients whose exchanges have ended when Start returns. Nothing runs concurrently with the guest, so the order
// of events is always the same.
type doubleGrant struct{ *Grant }

// Open implements [abi.Opener].
func (g doubleGrant) Open(ctx context.Context) (any, error) {
	c, err := g.Grant.Open(ctx)
	if err != nil {
		return nil, err
	}
	return doubleClient{c.(*Client)}, nil
}

type doubleClient struct{ *Client }

// Start implements the method `start`.
func (c doubleClient) Start(ctx context.Context, r Request) (*Exchange, error) {
	e, err := c.Client.Start(ctx, r)
	if err == nil {
		double.Until(ctx, e.Subscribe(ctx, Stage{Case: StageWhole}))
	}
	return e, err
}

// Narrow implements the method `narrow`.
func (c doubleClient) Narrow(ctx context.Context, rules []WitRule) (doubleClient, error) {
	narrowed, err := c.Client.Narrow(ctx, rules)
	return doubleClient{narrowed}, err
}
