package http

import (
	"crypto/x509"
	"fmt"
	"io"
	"log"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
)

// TestHTTP2KeepsTheRules checks that rules work over HTTP/2 as over HTTP/1.1.
func TestHTTP2KeepsTheRules(t *testing.T) {
	server := httptest.NewUnstartedServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("%s came by %s", r.URL, r.Proto)
		}
		w.Header().Set("X-From", r.RemoteAddr)
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/ok/away":
			nethttp.Redirect(w, r, "https://evil.example/", nethttp.StatusFound)
		case "/ok/up":
			nethttp.Redirect(w, r, "/secret", nethttp.StatusFound)
		case "/ok/loop":
			nethttp.Redirect(w, r, "/ok/loop", nethttp.StatusFound)
		case "/ok/cross":
			nethttp.Redirect(w, r, "https://www."+r.Host+"/ok/", nethttp.StatusFound)
		case "/ok/bomb":
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write(packed["br"](make([]byte, 1<<20)))
		case "/ok/":
			_, _ = fmt.Fprintf(w, "%s %s %s", r.Host, r.Header.Get("Authorization"), r.Header.Get("X-Private"))
		default:
			t.Errorf("%s was reached", r.URL)
		}
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	at := port(t, server.Listener.Addr())
	// The certificate of httptest is for example.com and *.example.com.
	names := resolver(map[string]string{"example.com": "127.0.0.1", "www.example.com": "127.0.0.1", "rebound.example.com": "10.0.0.1", "evil.example": "127.0.0.1"})
	rule := Rule{
		Host: "example.com", Port: at, Path: "/ok/**", Headers: []string{"x-private"}, Credential: "a-token", Addresses: loopback, MaxResponse: 1000,
	}
	www, rebound := rule, rule
	www.Host, rebound.Host = "www.example.com", "rebound.example.com"
	grant := func() *Grant {
		g, err := New(Options{Rules: []Rule{rule, www, rebound}, Resolver: names, RootCAs: roots, Credentials: vault{"a-token": "sk-1234567890"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.CloseIdleConnections)
		return g
	}
	one := grant()
	send := func(g *Grant, host, path string) result {
		return do(t, open(t, g), Request{
			Method: "GET", URL: fmt.Sprintf("https://%s:%d%s", host, at, path), Headers: []Header{{"X-Private", "mine"}},
		})
	}
	have := send(one, "example.com", "/ok/")
	if want := fmt.Sprintf("example.com:%d Bearer ************* mine", at); have.err != nil || have.text != want || have.header("x-echo")[0] != "Bearer *************" {
		t.Fatalf("%+v", have)
	}
	// One certificate covers both names, and one server answers for both. Even so, a connection serves only one rule of one grant.
	from := map[string]bool{}
	for _, r := range []result{have, send(one, "example.com", "/ok/"), send(one, "www.example.com", "/ok/"), send(grant(), "example.com", "/ok/")} {
		from[strings.Join(r.header("x-from"), "")] = true
	}
	if len(from) != 3 {
		t.Fatalf("4 exchanges by 2 rules and 2 grants had the connections %v", from)
	}
	if have := send(one, "example.com", "/ok/cross"); have.err != nil || have.text != fmt.Sprintf("www.example.com:%d  ", at) {
		t.Fatalf("%+v", have)
	}
	wantDenied(t, send(one, "rebound.example.com", "/ok/").err, "10.0.0.0/8 (private)")
	wantDenied(t, send(one, "example.com", "/ok/away").err, "no rule names the host evil.example")
	wantDenied(t, send(one, "example.com", "/ok/up").err, "the path /secret")
	wantError(t, send(one, "example.com", "/ok/loop").err, abi.ErrUnavailable, "loop")
	wantError(t, send(one, "example.com", "/ok/bomb").err, abi.ErrTooLarge, "")
}
