package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/internal/signature"
)

// mailbox is one address.
type mailbox struct {
	token    string
	posted   atomic.Int64
	full     bool
	ended    bool // between the look at the address and the message
	received durable.Message
	secret   string // with which posts are signed as GitHub does; empty if they are not
	unread   bool   // the secret cannot be read
}

func (m *mailbox) HasAddress(_ context.Context, token string) (bool, error) {
	return token == m.token, nil
}

func (m *mailbox) Post(_ context.Context, token string, headers map[string][]string, message durable.Message) (bool, error) {
	switch {
	case token != m.token || m.ended:
		return false, durable.ErrAddress
	case m.unread:
		return false, &durable.SecretError{Run: "secretname", Mailbox: "go", Secret: "hook", Err: errors.New("it is gone")}
	case m.secret != "" && !signature.Valid("github", m.secret, headers, message.Data, time.Now()):
		return false, durable.ErrSignature
	case m.full:
		return false, &durable.FullError{Run: "secretname", Mailbox: "go", What: "messages", Limit: 100}
	case len(message.Data) == 0:
		return false, &durable.MessageError{Reason: "the message is not JSON"}
	}
	m.received = message
	return m.posted.Add(1) == 1, nil
}

func newMailbox() *mailbox { return &mailbox{token: strings.Repeat("t", 43)} }

// answerOf is an answer without its date.
func answerOf(t *testing.T, h http.Handler, r *http.Request) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, fmt.Sprint(w.Code, w.Header(), w.Body)
}

// TestPosts posts to an address, and attacks it.
func TestPosts(t *testing.T) {
	m := newMailbox()
	p := newPosts(m, slog.New(slog.DiscardHandler))
	post := func(method, path, body string) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Idempotency-Key", "k")
		return r
	}
	right := signalsPath + m.token
	if status, text := answerOf(t, p, post("POST", right, `{}`)); status != http.StatusAccepted || !strings.Contains(text, `{"delivered":true}`) || m.received.Key != "k" || m.received.From != "its address, from outside" {
		t.Errorf("got %s, %+v", text, m.received)
	}
	if _, text := answerOf(t, p, post("POST", right, `{}`)); !strings.Contains(text, `{"delivered":false}`) {
		t.Errorf("got %s", text)
	}
	_, unknown := answerOf(t, p, post("POST", signalsPath+strings.Repeat("u", 43), `{}`))
	if !strings.HasPrefix(unknown, "404") {
		t.Errorf("got %s", unknown)
	}
	for _, r := range []*http.Request{
		post("GET", right, ``), post("HEAD", right, ``), post("PUT", right, `{}`), post("DELETE", right, ``), post("OPTIONS", right, ``),
		post("POST", signalsPath, `{}`), post("POST", right+"/", `{}`), post("POST", right+"t", `{}`), post("POST", right[:len(right)-1], `{}`), post("POST", "/", `{}`), post("GET", "/mcp", ``),
		post("POST", signalsPath+"%74"+m.token[1:], `{}`), post("POST", signalsPath+"../signals/"+m.token, `{}`),
	} {
		if _, text := answerOf(t, p, r); text != unknown {
			t.Errorf("%s %s: got %s, want what a wrong address gets: %s", r.Method, r.URL.Path, text, unknown)
		}
	}
	m.ended = true
	if _, text := answerOf(t, p, post("POST", right, `{}`)); text != unknown {
		t.Errorf("an ended run: got %s, want %s", text, unknown)
	}
	m.ended = false
	if status, _ := answerOf(t, p, post("POST", right, strings.Repeat("1", durable.MaxMessage+1))); status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: got %d", status)
	}
	if status, _ := answerOf(t, p, post("POST", right, ``)); status != http.StatusBadRequest {
		t.Errorf("no message: got %d", status)
	}
	m.full = true
	if status, text := answerOf(t, p, post("POST", right, `{}`)); status != http.StatusTooManyRequests || strings.Contains(text, "secretname") {
		t.Errorf("full: got %s", text)
	}
}

// TestSignedPosts posts to an address that asks for signatures. All that is not signed gets the same answer, whatever else is wrong, and a log has what the owner mends.
func TestSignedPosts(t *testing.T) {
	m := newMailbox()
	m.secret = "It's a Secret to Everybody"
	var log strings.Builder
	server := httptest.NewServer(newPosts(m, slog.New(slog.NewTextHandler(&log, nil))))
	defer server.Close()
	const body, digest = "Hello, World!", "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	post := func(body io.Reader, signatures ...string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+signalsPath+m.token, body)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range signatures {
			r.Header.Add("x-hub-signature-256", "sha256="+s)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		answer.Header.Del("Date")
		return fmt.Sprint(answer.StatusCode, answer.Header, string(text))
	}
	refused := post(strings.NewReader(body))
	if !strings.HasPrefix(refused, "401 ") || !strings.HasSuffix(refused, "not authorised\n") || log.Len() > 0 {
		t.Errorf("got %s, %s", refused, log.String())
	}
	chunked := func() io.Reader { return io.MultiReader(strings.NewReader(body[:5]), strings.NewReader(body[5:])) }
	for what, got := range map[string]string{
		"another digest": post(strings.NewReader(body), "0"+digest[1:]), "another body": post(strings.NewReader(body+" "), digest), "twice": post(strings.NewReader(body), digest, digest),
		"too long": post(strings.NewReader(body), strings.Repeat("0", 20_000)), "no body": post(nil, digest), "chunked": post(chunked(), digest[1:]),
	} {
		if got != refused {
			t.Errorf("%s: got %s, want %s", what, got, refused)
		}
	}
	m.full = true
	if got := post(strings.NewReader(body)); got != refused {
		t.Errorf("a full mailbox: got %s", got)
	}
	m.full = false
	if got := post(strings.NewReader(strings.Repeat("1", durable.MaxMessage+1)), digest); !strings.HasPrefix(got, "413 ") {
		t.Errorf("too large: got %s", got)
	}
	if n := m.posted.Load(); n != 0 {
		t.Errorf("%d were delivered", n)
	}
	if got := post(strings.NewReader(body), digest); !strings.HasPrefix(got, "202 ") {
		t.Errorf("signed: got %s", got)
	}
	if got := post(chunked(), strings.ToUpper(digest)); !strings.HasPrefix(got, "202 ") {
		t.Errorf("signed, chunked: got %s", got)
	}
	m.unread = true
	if got := post(strings.NewReader(body), digest); got != refused || !strings.Contains(log.String(), "the secret hook cannot be used: it is gone") {
		t.Errorf("got %s, %s", got, log.String())
	}
}

// TestPostsAreMetered posts from one source and to one address without end.
func TestPostsAreMetered(t *testing.T) {
	m := newMailbox()
	p := newPosts(m, slog.New(slog.DiscardHandler))
	passed := map[int]int{}
	post := func(token, from string) int {
		r := httptest.NewRequestWithContext(t.Context(), "POST", signalsPath+token, strings.NewReader(`{}`))
		r.Header.Add("X-Forwarded-For", "192.0.2.7, "+from)
		status, _ := answerOf(t, p, r)
		return status
	}
	for range 10_000 {
		passed[post(strings.Repeat("u", 43), "2001:db8::"+fmt.Sprint(len(passed)))]++
	}
	if n := passed[http.StatusNotFound]; n < sourceBurst || n > 4*sourceBurst || passed[http.StatusTooManyRequests] != 10_000-n {
		t.Errorf("of one source: %v", passed)
	}
	started := time.Now()
	for i := range 2000 {
		post(m.token, fmt.Sprintf("10.%d.%d.1", i/256, i%256))
	}
	if n := m.posted.Load(); n < postBurst/2 || n > postBurst+2+int64(time.Since(started)/postEvery) {
		t.Errorf("one address got %d posts", n)
	}
	meter := newMeter(3)
	for i, want := range []bool{true, true, true, false} {
		if meter.allow("a", started) != want {
			t.Errorf("request %d: not %v", i, want)
		}
	}
	if !meter.allow("a", started.Add(postEvery)) || meter.allow("a", started.Add(postEvery)) {
		t.Error("a place is not free again after its time, or twice")
	}
}

// TestSlowPosts has strangers that send their messages slowly: those of others wait for nobody, and connections end.
func TestSlowPosts(t *testing.T) {
	m := newMailbox()
	p := newPosts(m, slog.New(slog.DiscardHandler))
	server := httptest.NewUnstartedServer(p)
	server.Config.ReadTimeout = 300 * time.Millisecond
	server.Start()
	defer server.Close()
	var slow []net.Conn
	for range maxPosts / 2 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := fmt.Fprintf(c, "POST %s%s HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n{", signalsPath, m.token); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+signalsPath+m.token, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		t.Errorf("got %s", answer.Status)
	}
	for _, c := range slow {
		text, _ := io.ReadAll(c)
		if !strings.HasPrefix(string(text), "HTTP/1.1 400") {
			t.Errorf("a slow one got %q", text)
		}
	}
	if n := m.posted.Load(); n != 1 {
		t.Errorf("%d messages came", n)
	}
}

func TestSignalsURL(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "https://hooks.example.com": "https://hooks.example.com/signals/", "https://a.example/x/": "https://a.example/x/signals/", "http://127.0.0.1:7341": "http://127.0.0.1:7341/signals/",
	} {
		if got, err := parseSignalsURL(text); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"hooks.example.com", "http://hooks.example.com", "https://", "https://a:b@c.example", "https://a.example/?x", "ftp://a.example", "https://a.example/#x"} {
		if got, err := parseSignalsURL(text); err == nil {
			t.Errorf("%q: got %q", text, got)
		}
	}
	for address, ok := range map[string]bool{"127.0.0.1:0": true, "[::1]:1": true, "0.0.0.0:1": false, "10.0.0.1:1": false, "127.0.0.1": false} {
		if err := checkPostsListen(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
