package http

import (
	"io"
	nethttp "net/http"
	"strings"
	"testing"
)

// answering is a transport that answers every request with the request's URL, and the URL /away with a redirect.
type answering struct{ seen []string }

func (a *answering) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	a.seen = append(a.seen, r.URL.String())
	made := &nethttp.Response{StatusCode: nethttp.StatusOK, Header: nethttp.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(r.URL.String()))}
	if r.URL.Path == "/away" {
		made.StatusCode = nethttp.StatusFound
		made.Header.Set("Location", "https://evil.example/")
	}
	return made, nil
}

// TestTransport answers without a network. The rules still apply.
func TestTransport(t *testing.T) {
	servers := &answering{}
	names := resolver(nil)
	c := client(t, Options{Rules: []Rule{{Host: "good.example"}, {Scheme: "http", Host: "*", Port: 80}}, Resolver: names, Transport: servers})
	at := func(url string) Request { return Request{Method: "GET", URL: url} }
	if r := do(t, c, at("https://good.example/a")); r.err != nil || r.text != "https://good.example/a" {
		t.Errorf("got %+v", r)
	}
	wantDenied(t, do(t, c, at("https://evil.example/")).err, "no rule names the host evil.example")
	wantDenied(t, do(t, c, at("https://good.example/away")).err, "redirected by https://good.example/away")
	wantDenied(t, do(t, c, at("http://127.0.0.1/")).err, "127.0.0.0/8")
	if got := strings.Join(servers.seen, " "); got != "https://good.example/a https://good.example/away" || names.lookups != 0 {
		t.Errorf("asked for %s, with %d lookups", got, names.lookups)
	}
}
