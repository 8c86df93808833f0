package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension/lifecycle"
)

const (
	aliceToken = "alice-0123456789abcdef0123"
	bobToken   = "bob---0123456789abcdef0123"
	// Token holders that cannot be served.
	namelessToken = "none--0123456789abcdef0123"
	oddToken      = "odd---0123456789abcdef0123"
)

// web is a server over HTTP.
type web struct {
	*httptest.Server
	t *testing.T
}

func (h *home) web(o HTTPOptions) *web {
	h.t.Helper()
	holder, err := Tokens(map[string]lifecycle.Viewer{aliceToken: alice, bobToken: {Agent: "bob"}, namelessToken: {User: "tom"}, oddToken: {Agent: "a", User: "../b"}})
	if err != nil {
		h.t.Fatal(err)
	}
	if o.Holder == nil {
		o.Holder = holder
	}
	handler, err := h.server.Handler(o)
	if err != nil {
		h.t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	h.t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return &web{s, h.t}
}

// bearer sends a token with every request.
type bearer struct {
	token string
	next  nethttp.RoundTripper
}

func (b bearer) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// withSessions is the last protocol version that has sessions over HTTP.
const withSessions = "2025-11-25"

// client is a client of a protocol version; without one, of the newest.
func (w *web) client(version, token, name string, ask func(*sdk.ElicitParams) *sdk.ElicitResult) *client {
	w.t.Helper()
	transport := &nethttp.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	c := connect(w.t, &sdk.StreamableClientTransport{Endpoint: w.URL, HTTPClient: &nethttp.Client{Transport: bearer{token, transport}}}, version, name, ask)
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// send sends a request with these headers, and returns status, headers and body.
func (w *web) send(method, body string, headers ...string) (int, nethttp.Header, string) {
	w.t.Helper()
	response := w.request(method, body, headers...)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(data)
}

// request sends a request with these headers. The caller closes the body.
func (w *web) request(method, body string, headers ...string) *nethttp.Response {
	w.t.Helper()
	r, err := nethttp.NewRequestWithContext(w.t.Context(), method, w.URL, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := w.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return response
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
	list       = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

// A request without a token, to an unexpected host name or from an unexpected page is refused.
func TestDoors(t *testing.T) {
	h := newHome(t, `{}`)
	w := h.web(HTTPOptions{Origins: []string{"https://app.example.com"}, MaxBody: 1 << 20})
	auth := []string{"Authorization", "Bearer " + aliceToken}
	for _, c := range []struct {
		name, method, body string
		headers            []string
		status             int
	}{
		{"a token", "POST", initialize, auth, 200},
		{"no token", "POST", initialize, nil, 401},
		{"the token of no agent", "POST", initialize, []string{"Authorization", "Bearer " + namelessToken}, 503},
		{"the token of a user with a path for a name", "POST", initialize, []string{"Authorization", "Bearer " + oddToken}, 503},
		{"another token", "POST", initialize, []string{"Authorization", "Bearer " + strings.Repeat("x", 26)}, 401},
		{"an empty token", "POST", initialize, []string{"Authorization", "Bearer "}, 401},
		{"a part of a token", "POST", initialize, []string{"Authorization", "Bearer " + aliceToken[:25]}, 401},
		{"a password", "POST", initialize, []string{"Authorization", "Basic " + aliceToken}, 401},
		{"no token for a stream", "GET", "", nil, 401},
		{"no token to delete", "DELETE", "", nil, 401},
		{"a name that was made to point here", "POST", initialize, append([]string{"Host", "evil.example.com"}, auth...), 421},
		{"the same with a port", "POST", initialize, append([]string{"Host", "evil.example.com:80"}, auth...), 421},
		{"localhost", "POST", initialize, append([]string{"Host", "localhost:1234"}, auth...), 200},
		{"a page of another site", "POST", initialize, append([]string{"Origin", "https://evil.example.com"}, auth...), 403},
		{"a page of another port", "POST", initialize, append([]string{"Origin", "http://127.0.0.1:1"}, auth...), 403},
		{"a page without a site", "POST", initialize, append([]string{"Origin", "null"}, auth...), 403},
		{"a page that is meant", "POST", initialize, append([]string{"Origin", "https://app.example.com"}, auth...), 200},
		{"its own page", "POST", initialize, append([]string{"Origin", w.URL}, auth...), 200},
		{"a session that was invented", "POST", list, append([]string{"Mcp-Session-Id", strings.Repeat("A", 26)}, auth...), 404},
		{"no session", "GET", "", auth, 400},
		{"a large body", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`, auth, 413},
		{"a deep body", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + strings.Repeat("[", 500_000), auth, 400},
		{"a body that is no JSON", "POST", "{", auth, 400},
		{"a form", "POST", initialize, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, auth...), 415},
		{"another method", "PUT", "", auth, 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, header, body := w.send(c.method, c.body, c.headers...)
			if status != c.status {
				t.Errorf("got %d %s, want %d", status, body, c.status)
			}
			if want := `Bearer scope="stile"`; status == 401 && header.Get("WWW-Authenticate") != want {
				t.Errorf("WWW-Authenticate is %q", header.Get("WWW-Authenticate"))
			}
			if header.Get("Access-Control-Allow-Origin") != "" {
				t.Error("pages may read it")
			}
		})
	}
}

// A session belongs to one token, even if others know its number. Sessions expire, and their number is limited.
func TestSessions(t *testing.T) {
	h := newHome(t, `{}`)
	w := h.web(HTTPOptions{MaxSessions: 2})
	open := func() (int, string) {
		status, header, _ := w.send("POST", initialize, "Authorization", "Bearer "+aliceToken)
		return status, header.Get("Mcp-Session-Id")
	}
	_, id := open()
	with := func(token string) []string {
		return []string{"Authorization", "Bearer " + token, "Mcp-Session-Id", id}
	}
	if status, _, body := w.send("POST", list, with(aliceToken)...); status != 200 || !strings.Contains(body, "extension_write") {
		t.Errorf("its own session: %d %s", status, body)
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if status, _, body := w.send(method, list, with(bobToken)...); status != 403 && status != 404 {
			t.Errorf("another token: %s gives %d %s", method, status, body)
		}
	}
	if status, _, _ := w.send("POST", list, with(aliceToken)...); status != 200 {
		t.Errorf("another token ended it: %d", status)
	}
	if status, _ := open(); status != 200 {
		t.Errorf("a second session: %d", status)
	}
	first := w.request("GET", "", with(aliceToken)...)
	defer func() { _ = first.Body.Close() }()
	status, third := open() // in the place of the one without a request
	if status != 200 {
		t.Errorf("a third session: %d", status)
	}
	second := w.request("GET", "", "Authorization", "Bearer "+aliceToken, "Mcp-Session-Id", third)
	defer func() { _ = second.Body.Close() }()
	if status, _, _ := w.send("POST", list, with(aliceToken)...); status != 200 {
		t.Errorf("the one with a stream was ended: %d", status)
	}
	if status, _ := open(); status != 429 {
		t.Errorf("a session more than are in use: %d", status)
	}
	if status, _, _ := w.send("DELETE", "", with(aliceToken)...); status != 204 {
		t.Errorf("it cannot be ended: %d", status)
	}
	if status, _, _ := w.send("POST", list, with(aliceToken)...); status != 404 {
		t.Errorf("it is there after its end: %d", status)
	}
	if status, _ := open(); status != 200 {
		t.Errorf("a session in its place: %d", status)
	}
}

// Nothing is kept of sessions that have ended, however many there were.
func TestEndedSessionsAreForgotten(t *testing.T) {
	h := newHome(t, `{}`)
	w := h.web(HTTPOptions{})
	for range 10 {
		_, header, _ := w.send("POST", initialize, "Authorization", "Bearer "+aliceToken)
		headers := []string{"Authorization", "Bearer " + aliceToken, "Mcp-Session-Id", header.Get("Mcp-Session-Id")}
		for _, method := range []string{"POST", "DELETE", "POST"} {
			w.send(method, list, headers...)
		}
	}
	e, err := h.server.endpoint(alice)
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.uses) > 1 {
		t.Errorf("%d of 10 sessions", len(e.uses))
	}
}

// A session that is ended for another may get a call at that moment. The other does not wait for it.
func TestIdleSessionsEndAtOnce(t *testing.T) {
	h := newHome(t, preApproved)
	writeWaiting(h.client())
	w := h.web(HTTPOptions{})
	_, header, _ := w.send("POST", strings.Replace(initialize, "2025-06-18", "2025-03-26", 1), "Authorization", "Bearer "+aliceToken)
	id := header.Get("Mcp-Session-Id")
	e, err := h.server.endpoint(alice)
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	calls.Go(func() {
		w.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow_wait"}}`, "Authorization", "Bearer "+aliceToken, "Mcp-Session-Id", id)
	})
	for e.places.calls.Free() == maxServerCalls {
		runtime.Gosched()
	}
	e.mu.Lock()
	e.uses[id].requests-- // as if it had not begun
	e.mu.Unlock()
	if !e.endIdle() || e.connection(id) != nil {
		t.Error("the session was not ended")
	}
	calls.Wait()
}

// Over HTTP too, an agent's tool is available at once, and only to that agent.
func TestOverHTTP(t *testing.T) {
	for _, version := range []string{withSessions, sessionless} {
		t.Run(version, func(t *testing.T) {
			h := newHome(t, preApproved)
			w := h.web(HTTPOptions{})
			a, b := w.client(version, aliceToken, "test", nil), w.client(version, bobToken, "test", nil)
			if got := a.InitializeResult().ProtocolVersion; got != version {
				t.Fatalf("they speak %s", got)
			}
			does[writeOutput](a, "extension_write", draft("answer", "42", nil))
			a.says("answer_get", "42")
			soon(t, a.changes, "a word of the new tool")
			if b.offers("answer_get") {
				t.Error("another agent has it")
			}
			if _, err := b.CallTool(t.Context(), &sdk.CallToolParams{Name: "answer_get"}); err == nil {
				t.Error("another agent calls it")
			}
		})
	}
}

// A call ends when its client cancels it, disconnects or ends the session, and when its token is revoked.
func TestEndsOverHTTP(t *testing.T) {
	for _, tool := range []string{"wait", "spin"} {
		for _, how := range []string{"cancelled", "broken off", "session ended", "token taken back"} {
			t.Run(tool+" "+how, func(t *testing.T) {
				h := newHome(t, preApproved)
				var gone atomic.Bool
				w := h.web(HTTPOptions{Holder: func(token string) (lifecycle.Viewer, bool) { return alice, token == aliceToken && !gone.Load() }})
				writeWaiting(w.client(withSessions, aliceToken, "test", nil))
				_, header, _ := w.send("POST", initialize, "Authorization", "Bearer "+aliceToken)
				id := []string{"Authorization", "Bearer " + aliceToken, "Mcp-Session-Id", header.Get("Mcp-Session-Id")}
				w.send("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, id...)
				w.send("POST", `{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"debug"}}`, id...)
				ctx, breakOff := context.WithCancel(t.Context())
				defer breakOff()
				r, err := nethttp.NewRequestWithContext(ctx, "POST", w.URL, strings.NewReader(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"slow_`+tool+`"}}`))
				if err != nil {
					t.Fatal(err)
				}
				r.Header = nethttp.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {id[1]}, "Mcp-Session-Id": {id[3]}}
				response, err := w.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = response.Body.Close() }()
				if _, err := response.Body.Read(make([]byte, 1)); err != nil { // its log: it is running
					t.Fatal(err)
				}
				switch how {
				case "cancelled":
					w.send("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`, id...)
				case "broken off":
					breakOff()
				case "token taken back":
					gone.Store(true)
				default:
					if status, _, body := w.send("DELETE", "", id...); status != 204 {
						t.Errorf("got %d %s", status, body)
					}
				}
				if got := h.outcome(tool); got != "cancelled" {
					t.Errorf("it ended as %s", got)
				}
			})
		}
	}
}

// Spaces in the header of a token do not end its requests early. They last as long as the token is valid.
func TestSpacesBeforeToken(t *testing.T) {
	for _, space := range []string{" ", "  ", "\t", " \t "} {
		ticks := make(chan time.Time)
		h := newHome(t, preApproved).with(func(o *Options) { o.ticks = func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} } })
		asked := make(chan string, 10)
		w := h.web(HTTPOptions{Holder: func(token string) (lifecycle.Viewer, bool) {
			asked <- token
			return alice, token == aliceToken
		}})
		_, header, _ := w.send("POST", initialize, "Authorization", "Bearer"+space+aliceToken)
		ctx, end := context.WithCancel(t.Context())
		r, err := nethttp.NewRequestWithContext(ctx, "GET", w.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = nethttp.Header{"Accept": {"text/event-stream"}, "Authorization": {"Bearer" + space + aliceToken}, "Mcp-Session-Id": {header.Get("Mcp-Session-Id")}}
		response, err := w.Client().Do(r)
		if err != nil || response.StatusCode != 200 {
			t.Fatal(response, err)
		}
		ticks <- time.Now()
		for range 3 { // two requests, and the tick
			if token := <-asked; token != aliceToken {
				t.Errorf("%q: asked for %q", space, token)
			}
		}
		end()
		_ = response.Body.Close()
	}
}

// A client that reads nothing delays neither the others nor the shutdown.
func TestSlowClient(t *testing.T) {
	h := newHome(t, preApproved)
	here, there := net.Pipe()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { served <- h.server.Serve(ctx, alice, &sdk.IOTransport{Reader: here, Writer: here}) }()
	if _, err := fmt.Fprintf(there, "%s\n%s\n", initialize, list); err != nil {
		t.Fatal(err)
	}
	c := h.client()
	does[writeOutput](c, "extension_write", draft("answer", "42", nil))
	c.says("answer_get", "42")
	if !c.offers("answer_get") {
		t.Error("it is not there")
	}
	cancel()
	if err := soon(t, served, "the end"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	_ = there.Close() // it blocks the SDK's writer, which does not end by itself
}

// Over pipes, as with stdin and stdout: an invalid message ends the session and nothing else.
func TestStdio(t *testing.T) {
	h := newHome(t, preApproved)
	for _, c := range []struct{ name, send string }{
		{"nothing", ""},
		{"no JSON", "hello\n"},
		{"deep JSON", strings.Repeat("[", 1<<20)},
		{"a deep message", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"code_run","arguments":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000) + "}}\n"},
		{"a long line", strings.Repeat("x", 20<<20)},
		{"a message of no kind", "{}\n"},
		{"an answer nobody asked for", `{"jsonrpc":"2.0","id":77,"result":{}}` + "\n"},
		{"a call before the beginning", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"extension_list"}}` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, toServer := io.Pipe()
			fromServer, out := io.Pipe()
			served := make(chan error, 1)
			go func() {
				served <- h.server.Serve(t.Context(), alice, &sdk.IOTransport{Reader: in, Writer: out})
				_ = in.Close()
			}()
			go func() { _, _ = io.Copy(io.Discard, fromServer) }()
			_, _ = io.WriteString(toServer, c.send)
			_ = toServer.Close()
			_ = soon(t, served, "the end") // the SDK reports what was wrong
		})
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- h.server.Serve(t.Context(), alice, &sdk.IOTransport{Reader: in, Writer: out}) }()
	c := connect(t, &sdk.IOTransport{Reader: fromServer, Writer: toServer}, "", "test", nil)
	does[writeOutput](c, "extension_write", draft("answer", "42", nil))
	c.says("answer_get", "42")
	_ = c.Close()
	if err := soon(t, served, "the end"); err != nil {
		t.Error(err)
	}
}

// A server refuses invalid options immediately.
func TestOptions(t *testing.T) {
	h := newHome(t, `{}`)
	if _, err := New(Options{}); err == nil {
		t.Error("a server without a manager")
	}
	if _, err := h.server.Handler(HTTPOptions{}); err == nil {
		t.Error("a handler for nobody")
	}
	if _, err := Tokens(map[string]lifecycle.Viewer{"short": alice}); err == nil {
		t.Error("a token that can be guessed is taken")
	}
	web := h.web(HTTPOptions{Hosts: []string{"stile.example.com"}})
	if status, _, _ := web.send("POST", initialize, "Authorization", "Bearer "+aliceToken); status != 421 {
		t.Errorf("another host is served: %d", status)
	}
	if status, _, _ := web.send("POST", initialize, "Authorization", "Bearer "+aliceToken, "Host", "stile.example.com"); status != 200 {
		t.Errorf("its host is not served: %d", status)
	}
	if err := h.server.Close(); err != nil {
		t.Error(err)
	}
	if status, _, _ := web.send("POST", initialize, "Authorization", "Bearer "+aliceToken, "Host", "stile.example.com"); status != 503 {
		t.Errorf("a closed server serves: %d", status)
	}
	here, _ := sdk.NewInMemoryTransports()
	if err := h.server.Serve(t.Context(), alice, here); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed server serves: %v", err)
	}
}

// A stream to a client that reads nothing ends.
func TestPatientWriter(t *testing.T) {
	var deadlines []time.Time
	w := &deadlineWriter{httptest.NewRecorder(), &deadlines}
	p := &patientWriter{w, nethttp.NewResponseController(w)}
	before := time.Now()
	if _, err := p.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := nethttp.NewResponseController(p).Flush(); err != nil {
		t.Fatal(err)
	}
	if len(deadlines) != 4 || deadlines[0].Sub(before) < writeTime || !deadlines[1].IsZero() || deadlines[2].Sub(before) < writeTime || !deadlines[3].IsZero() {
		t.Errorf("got %v", deadlines)
	}
}

// A body must arrive in time even if no handler reads it, because net/http reads it before it answers.
func TestBodiesAreInTime(t *testing.T) {
	h := newHome(t, `{}`)
	handler, err := h.server.Handler(HTTPOptions{Holder: func(string) (v lifecycle.Viewer, ok bool) { return v, false }})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, host string
		body         io.Reader
		status       int
		bounded      bool
	}{
		{"POST", "localhost", strings.NewReader("{"), 401, true},
		{"POST", "evil.example.com", strings.NewReader("{"), 421, true},
		{"PUT", "localhost", io.MultiReader(strings.NewReader("{")), 401, true},
		{"GET", "localhost", strings.NewReader("{"), 401, true},
		{"GET", "localhost", nil, 401, false}, // a stream does not end
	} {
		var deadlines []time.Time
		w := &deadlineWriter{httptest.NewRecorder(), &deadlines}
		r := httptest.NewRequestWithContext(t.Context(), c.method, "http://"+c.host+"/mcp", c.body)
		handler.ServeHTTP(w, r)
		if w.Code != c.status || len(deadlines) > 0 != c.bounded {
			t.Errorf("%s: status %d, deadlines %v", c.method, w.Code, deadlines)
		}
	}
}

type deadlineWriter struct {
	*httptest.ResponseRecorder
	deadlines *[]time.Time
}

func (w *deadlineWriter) SetWriteDeadline(d time.Time) error {
	*w.deadlines = append(*w.deadlines, d)
	return nil
}

func (w *deadlineWriter) SetReadDeadline(d time.Time) error { return w.SetWriteDeadline(d) }

// If a token is revoked while a message arrives, no call begins, even if the message had already been authorised.
func TestTokenTakenBackBeforeBody(t *testing.T) {
	h := newHome(t, preApproved).with(func(o *Options) { o.ticks = func(time.Duration) (<-chan time.Time, func()) { return nil, func() {} } })
	var gone atomic.Bool
	asked := make(chan struct{}, 100)
	w := h.web(HTTPOptions{Holder: func(token string) (lifecycle.Viewer, bool) {
		defer func() { asked <- struct{}{} }()
		return alice, token == aliceToken && !gone.Load()
	}})
	does[writeOutput](w.client(withSessions, aliceToken, "test", nil), "extension_write", draft("answer", "42", nil))
	for _, taken := range []bool{false, true} {
		for _, tool := range []string{"answer_get", "extension_list"} {
			gone.Store(false)
			_, header, _ := w.send("POST", initialize, "Authorization", "Bearer "+aliceToken)
			id := []string{"Authorization", "Bearer " + aliceToken, "Mcp-Session-Id", header.Get("Mcp-Session-Id")}
			w.send("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, id...)
			for len(asked) > 0 {
				<-asked
			}
			body, send := io.Pipe()
			r, err := nethttp.NewRequestWithContext(t.Context(), "POST", w.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = nethttp.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {id[1]}, "Mcp-Session-Id": {id[3]}}
			go func() {
				<-asked // it was authorised
				gone.Store(taken)
				_, _ = io.WriteString(send, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"`+tool+`","arguments":{}}}`)
				_ = send.Close()
			}()
			response, err := w.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(response.Body)
			if err := errors.Join(err, response.Body.Close()); err != nil {
				t.Fatal(err)
			}
			if refused := strings.Contains(string(answer), "the token was revoked"); refused != taken || !taken && !strings.Contains(string(answer), "answer") && !strings.Contains(string(answer), "42") {
				t.Errorf("%s, taken back %v: got %s", tool, taken, answer)
			}
		}
	}
}

// TestTrafficIsBounded opens requests whose bodies never complete, in one session, in none and with several protocol versions. Their
// total is bounded per agent, and the room is released afterwards.
func TestTrafficIsBounded(t *testing.T) {
	h := newHome(t, preApproved)
	w := h.web(HTTPOptions{MaxBody: 1000, MaxBodies: 1500, MaxRequests: 4})
	_, header, _ := w.send("POST", initialize, "Authorization", "Bearer "+aliceToken)
	open := func(versions ...string) (end func()) {
		t.Helper()
		var ends []func()
		for _, version := range versions {
			ctx, cancel := context.WithCancel(t.Context())
			body, feed := io.Pipe()
			r, err := nethttp.NewRequestWithContext(ctx, "POST", w.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"Authorization": "Bearer " + aliceToken, "Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": version,
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			} {
				r.Header.Set(name, value)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if answer, err := w.Client().Do(r); err == nil {
					_ = answer.Body.Close()
				}
			}()
			if _, err := feed.Write([]byte(strings.Repeat(" ", 490))); err != nil {
				t.Fatal(err)
			}
			ends = append(ends, func() {
				cancel()
				_ = feed.Close()
				<-done
			})
		}
		return func() {
			for _, end := range ends {
				end()
			}
		}
	}
	bytesOf := func(want int64, requests int) {
		t.Helper()
		e, err := h.server.endpoint(alice)
		if err != nil {
			t.Fatal(err)
		}
		for {
			e.traffic.mu.Lock()
			bytes, n := e.traffic.bytes, e.traffic.requests
			e.traffic.mu.Unlock()
			if bytes == want && n == requests {
				return
			}
			if t.Context().Err() != nil {
				t.Fatalf("%d bytes and %d requests are under way, not %d and %d", bytes, n, want, requests)
			}
			runtime.Gosched()
		}
	}
	ask := func(token string) int {
		t.Helper()
		status, _, _ := w.send("POST", initialize+strings.Repeat(" ", 300), "Authorization", "Bearer "+token)
		return status
	}
	end := open(withSessions, sessionless, withSessions)
	bytesOf(3*490, 3)
	if got := ask(aliceToken); got != nethttp.StatusTooManyRequests {
		t.Errorf("status %d with bodies of %d bytes under way", got, 3*490)
	}
	if got := ask(bobToken); got != nethttp.StatusOK {
		t.Errorf("another agent: status %d", got)
	}
	end()
	bytesOf(0, 0)
	stream := func() (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := nethttp.NewRequestWithContext(ctx, "GET", w.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, header, _ := w.send("POST", initialize, "Authorization", "Bearer "+aliceToken)
		r.Header = nethttp.Header{"Authorization": {"Bearer " + aliceToken}, "Mcp-Session-Id": {header.Get("Mcp-Session-Id")}, "Accept": {"text/event-stream"}}
		answer, err := w.Client().Do(r) //nolint:bodyclose // what is returned closes it
		if err != nil {
			t.Fatal(err)
		}
		return func() { cancel(); _ = answer.Body.Close() }
	}
	var ends []func()
	for range 4 {
		ends = append(ends, stream())
	}
	bytesOf(0, 4)
	if got := ask(aliceToken); got != nethttp.StatusTooManyRequests {
		t.Errorf("status %d with four requests under way", got)
	}
	for _, end := range ends {
		end()
	}
	bytesOf(0, 0)
	if got := ask(aliceToken); got != nethttp.StatusOK {
		t.Errorf("status %d when nothing is under way", got)
	}
}

// TestCallsAreBounded has an agent send batches of calls in many sessions. The calls beyond its limit fail, those of another agent do not,
// and all agents together have a limit too.
func TestCallsAreBounded(t *testing.T) {
	h := newHome(t, preApproved)
	writeWaiting(h.client())
	w := h.web(HTTPOptions{})
	e, err := h.server.endpoint(alice)
	if err != nil {
		t.Fatal(err)
	}
	session := func(token string) []string {
		_, header, _ := w.send("POST", strings.Replace(initialize, "2025-06-18", "2025-03-26", 1), "Authorization", "Bearer "+token)
		return []string{"Authorization", "Bearer " + token, "Mcp-Session-Id", header.Get("Mcp-Session-Id")}
	}
	batch := func(tool string) string {
		var calls []string
		for n := range maxCalls {
			calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`, n, tool))
		}
		return "[" + strings.Join(calls, ",") + "]"
	}
	under := func(r *running) int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.n
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	for range maxAgentCalls / maxCalls {
		headers := session(aliceToken)
		ended.Go(func() {
			r, err := nethttp.NewRequestWithContext(ctx, "POST", w.URL, strings.NewReader(batch("slow_wait")))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			if answer, err := w.Client().Do(r); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body) // until it is cancelled
				_ = answer.Body.Close()
			}
		})
	}
	for under(e.calls) < maxAgentCalls {
		runtime.Gosched()
	}
	_, _, body := w.send("POST", batch("slow_wait"), session(aliceToken)...)
	if n := strings.Count(body, "an agent can have 256 at once"); n == 0 || n%maxCalls > 0 {
		t.Errorf("%d of the calls are too many: %.500s", n, body)
	}
	other := func() string {
		body, headers := alone(bobToken, "tools/call", "extension_list")
		_, _, answer := w.send("POST", body, headers...)
		return answer
	}
	if answer := other(); strings.Contains(answer, "too many") {
		t.Errorf("another agent: %s", answer)
	}
	all := h.server.places.calls
	if free := all.Free(); free != maxServerCalls-maxAgentCalls {
		t.Errorf("%d calls remain for others", free)
	}
	// As calls of many other agents do: the last ones find few places, and there is one for whoever comes then.
	for i := range 20 {
		for n := 0; n < maxAgentCalls && all.Take(fmt.Sprint("agent:", i), 1); n++ {
		}
		if i == 5 {
			if answer := other(); strings.Contains(answer, "too many") {
				t.Errorf("another agent beside six with as many calls as they get: %s", answer)
			}
		}
	}
	if answer := other(); !strings.Contains(answer, "all agents together can have 1000 at once, and an agent no more than remain for others") {
		t.Errorf("beside as many as all may have: %s", answer)
	}
	cancel()
	ended.Wait()
	for under(e.calls) > 0 || all.Free() < maxAgentCalls {
		runtime.Gosched()
	}
	if answer := other(); strings.Contains(answer, "too many") {
		t.Errorf("after they ended: %s", answer)
	}
}

// TestLargeAnswersAreBounded requests large answers while the agent is at its limit. Requests wait, in all sessions, and a cancelled one takes no slot.
func TestLargeAnswersAreBounded(t *testing.T) {
	h := newHome(t, preApproved)
	w := h.web(HTTPOptions{})
	e, err := h.server.endpoint(alice)
	if err != nil {
		t.Fatal(err)
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	_, header, _ := w.send("POST", strings.Replace(initialize, "2025-06-18", "2025-03-26", 1), "Authorization", "Bearer "+aliceToken)
	session := []string{"Authorization", "Bearer " + aliceToken, "Mcp-Session-Id", header.Get("Mcp-Session-Id")}
	if _, _, body := w.send("POST", "["+list+","+strings.Replace(list, `"id":2`, `"id":3`, 1)+"]", session...); !strings.Contains(body, "ask for one at a time") {
		t.Errorf("a batch of lists: %.300s", body)
	}
	if err := e.traffic.answers.Acquire(t.Context(), maxLarge); err != nil { // it is free again
		t.Fatal(err)
	}
	done := make(chan string)
	ctx, giveUp := context.WithCancel(t.Context())
	for i, ctx := range []context.Context{ctx, t.Context(), t.Context(), t.Context()} {
		go func() {
			r, err := nethttp.NewRequestWithContext(ctx, "POST", w.URL, strings.NewReader(strings.Replace(list, `"id":2`, fmt.Sprintf(`"id":%d`, 10+i), 1)))
			if err != nil {
				done <- err.Error()
				return
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i < len(session); i += 2 {
				r.Header.Set(session[i], session[i+1])
			}
			answer, err := w.Client().Do(r)
			if err != nil {
				done <- "given up"
				return
			}
			body, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			done <- string(body)
		}()
	}
	for n := 0; n < 4; { // all of them are at the server
		e.traffic.mu.Lock()
		n = e.traffic.requests
		e.traffic.mu.Unlock()
		runtime.Gosched()
	}
	giveUp()
	if got := <-done; got != "given up" {
		t.Errorf("an answer came while none had room: %.300s", got)
	}
	e.traffic.answers.Release(maxLarge)
	for range 3 {
		if got := <-done; !strings.Contains(got, "extension_write") {
			t.Errorf("got %.300s", got)
		}
	}
	if err := e.traffic.answers.Acquire(t.Context(), maxLarge); err != nil { // no slot is taken
		t.Error(err)
	}
}

// TestGivenUpRequestsEnd gives up requests that wait: for large answers, while the agent is at its limit, and for changes. None of them waits at
// the server any longer.
func TestGivenUpRequestsEnd(t *testing.T) {
	h := newHome(t, preApproved)
	w := h.web(HTTPOptions{})
	e, err := h.server.endpoint(alice)
	if err != nil {
		t.Fatal(err)
	}
	_, header, _ := w.send("POST", initialize, "Authorization", "Bearer "+aliceToken)
	if err := e.traffic.answers.Acquire(t.Context(), maxLarge); err != nil {
		t.Fatal(err)
	}
	defer e.traffic.answers.Release(maxLarge)
	for _, test := range []struct{ body, waits string }{
		{list, "mcp.(*taken).answer("},
		{`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"stile://output/x"}}`, "mcp.(*taken).answer("},
		{`{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}`, ").subscriptionsListen("},
	} {
		waits := func() bool {
			stacks := make([]byte, 16<<20)
			return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), test.waits)
		}
		ctx, giveUp := context.WithCancel(t.Context())
		r, err := nethttp.NewRequestWithContext(ctx, "POST", w.URL, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = nethttp.Header{
			"Authorization": {"Bearer " + aliceToken}, "Mcp-Session-Id": {header.Get("Mcp-Session-Id")},
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if answer, err := w.Client().Do(r); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body) // until it is given up
				_ = answer.Body.Close()
			}
		}()
		for !waits() && t.Context().Err() == nil {
			runtime.Gosched()
		}
		giveUp()
		<-done
		for deadline := time.Now().Add(10 * time.Second); waits(); runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("it still waits after its client has gone: %s", test.body)
			}
		}
	}
}
