package egress

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
)

// vault has the secrets of tests.
type vault map[string]string

func (v vault) Get(_ context.Context, name string) (string, error) {
	if secret, ok := v[name]; ok {
		return secret, nil
	}
	return "", errors.New("no such secret: " + v["token"])
}

const secret = "s3cr3t-T0ken/with+signs"

// intercepting starts a proxy that ends TLS. It trusts the server's authorities.
func intercepting(t *testing.T, roots *x509.CertPool, rules ...http.Rule) *harness {
	t.Helper()
	return start(t, rules, func(h *harness) {
		onLoopback(h)
		h.options.Intercept = true
		h.http.RootCAs = roots
		h.http.Credentials = vault{"token": secret}
	})
}

// trust has the authority of the proxy.
func (h *harness) trust() *x509.CertPool {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(h.proxy.Authority().PEM) {
		h.t.Fatal("the proxy has no authority")
	}
	return pool
}

// inside opens a tunnel and does the handshake, as a client that trusts the proxy.
func (h *harness) inside(authority string) *peer {
	h.t.Helper()
	p := h.connect(authority)
	name, _, err := net.SplitHostPort(authority)
	if err != nil {
		h.t.Fatal(err)
	}
	secured := tls.Client(p, &tls.Config{RootCAs: h.trust(), ServerName: name, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	if err := secured.HandshakeContext(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if got := secured.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		h.t.Errorf("the protocol is %q", got)
	}
	return &peer{secured, h.t, bufio.NewReader(secured)}
}

// TestIntercept authorises requests in TLS by path and method.
func TestIntercept(t *testing.T) {
	rule, roots := secure(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		text, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s%s", r.Proto, r.Method, r.RequestURI, text)
	})
	rule.Path, rule.Methods = "/repos/**", []string{"GET", "POST"}
	h := intercepting(t, roots, rule)
	p := h.inside(at(rule))
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/repos/a?b=c", "200 HTTP/1.1 GET /repos/a?b=c"},
		{"POST", "/repos/x/../a", "200 HTTP/1.1 POST /repos/a"},
		{"GET", "/repos/%61", "200 HTTP/1.1 GET /repos/a"},
	} {
		p.send(c.method+" "+c.path+" HTTP/1.1", "Host: "+at(rule))
		status, text := p.answer(c.method)
		if have := fmt.Sprint(status, " ", text); have != c.want {
			t.Errorf("%s %s: %s", c.method, c.path, have)
		}
	}
	for _, c := range []struct{ method, path, header, reason, grant string }{
		{"GET", "/", "X: y", "does not allow the path /", `"path":"/"`},
		{"GET", "/repos/../secret", "X: y", "does not allow the path /secret", `"path":"/secret"`},
		{"GET", "/repos/%2e%2e/secret", "X: y", "does not allow the path /secret", `"path":"/secret"`},
		{"GET", "/repos/..%2fsecret", "X: y", "", ""},
		{"GET", "/repos/..;/secret", "X: y", "", ""},
		{"GET", "/repos/%252e%252e/secret", "X: y", "", ""},
		{"GET", "/repos/\\..\\secret", "X: y", "", ""},
		{"DELETE", "/repos/a", "X: y", "does not allow the method DELETE", `"methods":["DELETE"]`},
		{"POST", "/repos/a", "X-HTTP-Method-Override: DELETE", "does not allow the header x-http-method-override", `"headers":["x-http-method-override"]`},
		{"GET", "/repos/a", "X-Original-URL: /admin", "does not allow the header x-original-url", `"headers":["x-original-url"]`},
		{"GET", "/repos/a", "X-Forwarded-Host: evil.example", "does not allow the header x-forwarded-host", `"headers":["x-forwarded-host"]`},
		{"GET", "/repos/a", "Host: evil.example", "", ""},
		{"GET", "/repos%2fa", "X: y", "does not allow the path /repos%2Fa", `"path":"/repos%2Fa"`},
		{"GET", "/repos%252fa", "X: y", "", ""},
		{"GET", "/%72epos/a/%2e%2e/%2e%2e/secret", "X: y", "does not allow the path /secret", `"path":"/secret"`},
		{"GET", "//repos/a", "X: y", "does not allow the path //repos/a", `"path":"//repos/a"`},
		{"GET", "https://" + "evil.example/repos/a", "X: y", "", ""},
		{"GET", "*", "X: y", "", ""},
	} {
		p := h.inside(at(rule))
		p.send(c.method+" "+c.path+" HTTP/1.1", "Host: "+at(rule), c.header)
		status, text := p.answer(c.method)
		refusals := h.taken()
		if c.reason == "" {
			if status != nethttp.StatusBadRequest || len(refusals) != 0 {
				t.Errorf("%s %s, %s: status %d, %s", c.method, c.path, c.header, status, text)
			}
			continue
		}
		if status != nethttp.StatusForbidden || len(refusals) != 1 || refusals[0].Denial == nil {
			t.Errorf("%s %s, %s: status %d, %s; refused %v", c.method, c.path, c.header, status, text, refusals)
			continue
		}
		if d := refusals[0].Denial; !strings.Contains(d.Reason, c.reason) || !strings.Contains(d.Wants.Remedy("b"), c.grant) {
			t.Errorf("%s %s, %s: %s; %s", c.method, c.path, c.header, d.Reason, d.Wants.Remedy("b"))
		}
	}
	p = h.inside(at(rule))
	p.send("GET /repos/a HTTP/1.1", "Host: evil.example")
	if status, text := p.answer("GET"); status != nethttp.StatusForbidden || !strings.Contains(text, `names the host "evil.example"`) {
		t.Errorf("status %d, %s", status, text)
	}
}

// TestInterceptedSmuggling hides a second request in one that a rule allows, for a server that reads the end of the first one elsewhere.
func TestInterceptedSmuggling(t *testing.T) {
	rule, roots := secure(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		text, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/in" {
			t.Errorf("the server was asked for %s", r.URL.Path)
		}
		_, _ = fmt.Fprintf(w, "%d", len(text))
	})
	rule.Path, rule.Methods = "/in", []string{"GET", "POST"}
	h := intercepting(t, roots, rule)
	const hidden = "GET /out HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, c := range []struct {
		head []string
		body string
		want int
	}{
		{[]string{"POST /in HTTP/1.1", "Content-Length: 4", "Transfer-Encoding: chunked"}, "0\r\n\r\n" + hidden, 400},
		{[]string{"POST /in HTTP/1.1", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"}, "0\r\n\r\n" + hidden, 400},
		{[]string{"POST /in HTTP/1.1", "Transfer-Encoding : chunked"}, "0\r\n\r\n" + hidden, 400},
		{[]string{"POST /in HTTP/1.1", "Content-Length: +4"}, hidden, 400},
		{[]string{"POST /in HTTP/1.1", "Content-Length: 0", "Content-Length: 36"}, hidden, 400},
		{[]string{"GET /in HTTP/1.1", "X: y\nGET /out HTTP/1.1"}, hidden, 400},
		{[]string{"GET /in HTTP/1.1\rX: y"}, hidden, 400},
		{[]string{"GET /in HTTP/1.1", " folded: y"}, hidden, 400},
		{[]string{"GET /in%0d%0aX:y HTTP/1.1"}, "", 400},
		{[]string{"POST /in HTTP/1.1", "Content-Length: " + fmt.Sprint(len(hidden))}, hidden, 200}, // it is content
		{[]string{"GET /in HTTP/1.1"}, hidden, 200},                                                // and the next request is refused
	} {
		p := h.inside(at(rule))
		p.send(append([]string{c.head[0], "Host: " + at(rule)}, c.head[1:]...)...)
		_, _ = io.WriteString(p, c.body) // the connection may have ended
		if status, text := p.answer("POST"); status != c.want {
			t.Errorf("%q: status %d, %s", c.head, status, text)
		}
	}
	p := h.inside(at(rule))
	p.send("GET /in HTTP/1.1", "Host: "+at(rule))
	p.send("GET /out HTTP/1.1", "Host: "+at(rule))
	for _, want := range []int{200, 403} {
		if status, text := p.answer("GET"); status != want {
			t.Errorf("one after another: status %d, %s", status, text)
		}
	}
}

// TestHandshakesAreCharged opens tunnels and asks for nothing in them.
func TestHandshakesAreCharged(t *testing.T) {
	rule, roots := secure(t, func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("the server was asked") })
	var worked counter
	h := start(t, []http.Rule{rule}, func(h *harness) {
		onLoopback(h)
		h.options.Intercept, h.http.RootCAs = true, roots
		h.ctx = abi.WithWork(t.Context(), func(took time.Duration) error {
			if took == handshakeWork && worked.add(int(took)) > int64(10*handshakeWork) {
				return abi.Errorf(abi.CodeExhausted, "processor time")
			}
			return nil
		})
	})
	for i := range 20 {
		p := h.connect(at(rule))
		err := tls.Client(p, &tls.Config{RootCAs: h.trust(), ServerName: "example.com", MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
		if (err == nil) != (i < 10) {
			t.Errorf("handshake %d: %v", i+1, err)
		}
	}
}

// TestInterceptPlain applies paths and methods to requests without TLS too.
func TestInterceptPlain(t *testing.T) {
	rule := web(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	rule.Path = "/public/**"
	h := intercepting(t, nil, rule)
	for request, want := range map[string]int{"GET /public/a": 200, "GET /private": 403, "POST /public/a": 403, "GET /public/../private": 403} {
		method, path, _ := strings.Cut(request, " ")
		p := h.dial()
		p.send(method+" http://"+at(rule)+path+" HTTP/1.1", "Host: "+at(rule))
		if status, text := p.answer(method); status != want {
			t.Errorf("%s: status %d, %s", request, status, text)
		}
		p = h.connect(at(rule))
		p.send(method+" "+path+" HTTP/1.1", "Host: "+at(rule))
		if status, text := p.answer(method); status != want {
			t.Errorf("%s in a tunnel: status %d, %s", request, status, text)
		}
	}
}

// TestInterceptedNames names other servers in handshakes. The proxy makes no certificate for them.
func TestInterceptedNames(t *testing.T) {
	rule, roots := secure(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	h := intercepting(t, roots, rule, http.Rule{Host: "127.0.0.1", Port: rule.Port})
	_ = h.inside(at(rule)).Close()
	_ = h.inside(fmt.Sprintf("127.0.0.1:%d", rule.Port)).Close()
	for i := range 100 {
		p := h.connect(at(rule))
		name := fmt.Sprintf("name-%d.example.com", i)
		err := tls.Client(p, &tls.Config{RootCAs: h.trust(), ServerName: name, MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
		if refused := h.refused(); err == nil || !strings.Contains(refused, `the TLS handshake names the server "`+name) {
			t.Errorf("%s: %v; refused %s", name, err, refused)
		}
		_ = p.Close()
	}
	if n := len(h.proxy.issuer.leaves); n != 2 {
		t.Errorf("there are %d certificates", n)
	}
	p := h.connect(at(rule))
	err := tls.Client(p, &tls.Config{RootCAs: h.trust(), ServerName: "example.com", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
	if err == nil {
		t.Error("a client that speaks only HTTP/2 got through")
	}
	p = h.connect(at(rule))
	err = tls.Client(p, &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
	if unknown := (x509.UnknownAuthorityError{}); !errors.As(err, &unknown) {
		t.Errorf("a client that trusts only the server: %v", err)
	}
}

// TestLeavesAreBounded asks for the certificates of thousands of servers.
func TestLeavesAreBounded(t *testing.T) {
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		name := fmt.Sprintf("name-%d.example.com", i)
		made, err := a.certificate(name)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := a.certificate(name); again != made {
			t.Fatal("a certificate was made twice")
		}
		if len(a.leaves) > maxLeaves {
			t.Fatalf("%d certificates are kept", len(a.leaves))
		}
	}
}

// TestAuthority checks the certificates as clients do.
func TestAuthority(t *testing.T) {
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	public := a.public()
	block, rest := pem.Decode(public.PEM)
	if block == nil || len(rest) > 0 || strings.Contains(string(public.PEM), "KEY") {
		t.Fatalf("the PEM is %s", public.PEM)
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
	if public.SPKI != base64.StdEncoding.EncodeToString(sum[:]) {
		t.Errorf("the SPKI is %s", public.SPKI)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, name := range []string{"example.com", "a_b.example.com", "127.0.0.1", "::1", strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + ".example"} {
		made, err := a.certificate(name)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(made.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if leaf.VerifyHostname("evil.example") == nil || leaf.IsCA || leaf.KeyUsage&x509.KeyUsageCertSign != 0 {
			t.Errorf("the certificate of %s says too much", name)
		}
	}
	other, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	if other.made.Equal(a.made) || other.key.Equal(a.key) {
		t.Error("two proxies share an authority")
	}
}

// TestServersAreVerified has a server whose certificate is of an unknown authority, or of another name.
func TestServersAreVerified(t *testing.T) {
	rule, roots := secure(t, func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("the server was asked") })
	for name, c := range map[string]struct {
		host  string
		roots *x509.CertPool
	}{"unknown authority": {"example.com", x509.NewCertPool()}, "other name": {"good.example", roots}} {
		rule.Host = c.host
		h := intercepting(t, c.roots, rule)
		p := h.inside(at(rule))
		p.send("GET / HTTP/1.1", "Host: "+at(rule))
		if status, text := p.answer("GET"); status != nethttp.StatusBadGateway || !strings.Contains(text, "x509: certificate") {
			t.Errorf("%s: status %d, %s", name, status, text)
		}
	}
}

// TestCredential adds the credential of a rule, and keeps it from the client.
func TestCredential(t *testing.T) {
	rule, roots := secure(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("Set-Cookie", "a="+secret)
		w.Header().Set("X-"+strings.ReplaceAll(strings.ReplaceAll(secret, "/", "-"), "+", "-"), "y")
		for _, part := range []string{"own: ", r.Header.Get("Authorization"), " range: ", r.Header.Get("Range"), " encoding: ", r.Header.Get("Accept-Encoding"), " ", base64.StdEncoding.EncodeToString([]byte(secret))} {
			_, _ = io.WriteString(w, part)
			w.(nethttp.Flusher).Flush()
		}
	})
	rule.Credential = "token"
	other := rule
	other.Host, other.Credential = "127.0.0.1", ""
	h := intercepting(t, roots, rule, other)
	p := h.inside(at(rule))
	p.send("GET / HTTP/1.1", "Host: "+at(rule), "Authorization: Bearer forged", "Range: bytes=0-1", "Accept-Encoding: gzip", "Sec-Fetch-Site: same-origin")
	response, err := nethttp.ReadResponse(p.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	stars := strings.Repeat("*", len(secret))
	if err != nil || !strings.HasPrefix(string(text), "own: Bearer "+stars+" range:  encoding: identity *") || response.Header.Get("X-Echo") != "Bearer "+stars {
		t.Errorf("got %v %q, %v", response.Header, text, err)
	}
	if whole := fmt.Sprint(response.Header, string(text)); strings.Contains(whole, secret) || strings.Contains(whole, base64.StdEncoding.EncodeToString([]byte(secret))[4:20]) {
		t.Errorf("the client got the secret: %s", whole)
	}
	for _, headers := range [][]string{
		{"Sec-Fetch-Site: cross-site"},
		{"Sec-Fetch-Site: same-site"},
		{"Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"},
		{"Sec-Fetch-Site: CROSS-SITE"},
		{"Origin: https://evil.example"},
		{"Origin: null"},
		{"Origin: http://" + at(rule)},
		{"Sec-Fetch-Site: same-origin", "Origin: https://evil.example"},
	} {
		p := h.inside(at(rule))
		p.send(append([]string{"GET / HTTP/1.1", "Host: " + at(rule), "Accept-Encoding: gzip"}, headers...)...)
		if status, text := p.answer("GET"); status != nethttp.StatusOK || !strings.HasPrefix(text, "own:  range:  encoding: gzip") {
			t.Errorf("%s: status %d, %s", headers, status, text)
		}
	}
	p = h.inside(at(other))
	p.send("GET / HTTP/1.1", "Host: "+at(other))
	if status, text := p.answer("GET"); status != nethttp.StatusOK || !strings.HasPrefix(text, "own:  range:") {
		t.Errorf("another origin: status %d, %s", status, text)
	}
	p = h.inside(at(rule))
	p.send(append([]string{"GET / HTTP/1.1", "Host: " + at(rule)}, upgrade...)...)
	if status, text := p.answer("GET"); status != nethttp.StatusForbidden || !strings.Contains(text, "WebSocket") {
		t.Errorf("a WebSocket: status %d, %s", status, text)
	}
	if refused := h.refused(); strings.Contains(refused, secret) {
		t.Error("a refusal has the secret")
	}
}

// TestMissingCredential has a rule whose secret does not exist. The body of the request is not sent.
func TestMissingCredential(t *testing.T) {
	rule, roots := secure(t, func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("the server was asked") })
	rule.Credential, rule.Methods = "missing", []string{"POST"}
	h := intercepting(t, roots, rule)
	p := h.inside(at(rule))
	p.send("POST / HTTP/1.1", "Host: "+at(rule), "Content-Length: 5\r\n\r\nhel")
	if status, text := p.answer("POST"); status != nethttp.StatusForbidden || strings.Contains(text, secret) || !strings.Contains(text, "not available") {
		t.Errorf("status %d, %s", status, text)
	}
}

// TestInterceptedWebSocket opens WebSockets in intercepted TLS, where a rule allows GET on the path.
func TestInterceptedWebSocket(t *testing.T) {
	rule, roots := secure(t, echoing)
	rule.Path = "/chat"
	h := intercepting(t, roots, rule)
	p := h.inside(at(rule))
	p.send(append([]string{"GET /chat HTTP/1.1", "Host: " + at(rule), "Origin: https://other.example"}, upgrade...)...)
	speak(t, p, p.in)
	p = h.inside(at(rule))
	p.send(append([]string{"GET /other HTTP/1.1", "Host: " + at(rule)}, upgrade...)...)
	if status, text := p.answer("GET"); status != nethttp.StatusForbidden {
		t.Errorf("another path: status %d, %s", status, text)
	}
	rule.Methods = []string{"POST"}
	h = intercepting(t, roots, rule)
	p = h.inside(at(rule))
	p.send(append([]string{"GET /chat HTTP/1.1", "Host: " + at(rule)}, upgrade...)...)
	if status, text := p.answer("GET"); status != nethttp.StatusForbidden {
		t.Errorf("without GET: status %d, %s", status, text)
	}
}

// TestRulesAreRefused gives New what a proxy cannot apply.
func TestRulesAreRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"rule 1: it states a path":                         {Rules: []http.Rule{{Host: "a.example", Path: "/x"}}},
		"rule 2: it states methods":                        {Rules: []http.Rule{{Host: "a.example"}, {Host: "b.example", Methods: []string{"GET"}}}},
		"rule 1: it states headers":                        {Rules: []http.Rule{{Host: "a.example", Headers: []string{"x-a"}}}},
		"rule 1: it states a credential":                   {Rules: []http.Rule{{Host: "a.example", Credential: "token"}}},
		"rule 1: it states a size":                         {Rules: []http.Rule{{Host: "a.example", MaxResponse: 1}}, Intercept: true},
		"rule 1: it states a path, which is hidden in TLS": {Rules: []http.Rule{{Host: "a.example"}}, Within: [][]http.Rule{{{Host: "a.example", Path: "/x"}}}},
		"rule 1: the host":                                 {Rules: []http.Rule{{Host: "a b"}}},
		"Options.Credentials is required":                  {Rules: []http.Rule{{Host: "a.example", Credential: "token"}}, Intercept: true},
		"a limit is negative":                              {Limits: Limits{Idle: -1}},
		"Options.Transport":                                {},
	} {
		o.Site = capability.NewSite(t.TempDir(), nil)
		if want == "Options.Transport" {
			o.Site.Configure(http.Kind, http.Options{Transport: new(nethttp.Transport)})
		}
		if p, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, have %v", want, err)
			if p != nil {
				_ = p.Close()
			}
		}
	}
}

// TestWithin holds requests within an operator's rules.
func TestWithin(t *testing.T) {
	rule := web(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	other := rule
	other.Host = "other.example"
	h := start(t, []http.Rule{rule, other}, func(h *harness) { h.options.Within = [][]http.Rule{{rule}} })
	for r, want := range map[string]int{at(rule): nethttp.StatusOK, at(other): nethttp.StatusForbidden} {
		p := h.dial()
		p.send("GET http://"+r+"/ HTTP/1.1", "Host: "+r)
		if status, text := p.answer("GET"); status != want {
			t.Errorf("%s: status %d, %s", r, status, text)
		}
	}
}

// TestHostsOfTheSite uses the addresses that the operator assigned, in place of the resolver.
func TestHostsOfTheSite(t *testing.T) {
	rule := web(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	rule.Host, rule.Addresses = "internal.test", nil
	h := start(t, []http.Rule{rule}, func(h *harness) {
		h.options.Site = capability.NewSite(t.TempDir(), nil)
		h.options.Site.Configure(http.Kind, http.Options{Resolver: &table{}})
		h.options.Site.SetHosts(map[string][]netip.Addr{"internal.test": {netip.MustParseAddr("127.0.0.1")}})
	})
	p := h.dial()
	p.send("GET http://"+at(rule)+"/ HTTP/1.1", "Host: "+at(rule))
	if status, text := p.answer("GET"); status != nethttp.StatusOK {
		t.Errorf("status %d, %s", status, text)
	}
}

// TestProxyVariablesAreIgnored sets the variables that name a proxy of the environment.
func TestProxyVariablesAreIgnored(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://127.0.0.1:9")
	}
	plain := web(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	secured, roots := secure(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	h := intercepting(t, roots, plain, secured)
	p := h.dial()
	p.send("GET http://"+at(plain)+"/ HTTP/1.1", "Host: "+at(plain))
	if status, text := p.answer("GET"); status != nethttp.StatusOK {
		t.Errorf("status %d, %s", status, text)
	}
	p = h.inside(at(secured))
	p.send("GET / HTTP/1.1", "Host: "+at(secured))
	if status, text := p.answer("GET"); status != nethttp.StatusOK {
		t.Errorf("with TLS: status %d, %s", status, text)
	}
}

// TestRedirectIsAnotherRequest follows redirects as a client does.
func TestRedirectIsAnotherRequest(t *testing.T) {
	rule := web(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Location", "http://169.254.169.254/latest/meta-data/")
		w.WriteHeader(nethttp.StatusTemporaryRedirect)
	})
	h := start(t, []http.Rule{rule, {Scheme: "http", Host: "*", Port: 80}})
	client := h.through(nil)
	client.CheckRedirect = nil
	request, err := nethttp.NewRequestWithContext(t.Context(), "GET", "http://"+at(rule)+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != nethttp.StatusForbidden || response.Request.URL.Host != "169.254.169.254" {
		t.Errorf("%s answered %s", response.Request.URL, response.Status)
	}
	refusals := h.taken()
	if len(refusals) != 1 || !errors.Is(refusals[0], abi.ErrDenied) || !strings.Contains(refusals[0].Error(), "cloud metadata") {
		t.Errorf("refused %v", refusals)
	}
}

// TestWorkIsCharged charges for handshakes, many fields, small chunks and the search for a credential.
func TestWorkIsCharged(t *testing.T) {
	rule, roots := secure(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		switch r.URL.Path {
		case "/fields":
			for i := range 3000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), "a")
			}
		case "/chunks":
			conn, _, err := w.(nethttp.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+strings.Repeat("1\r\na\r\n", 400_000)+"0\r\n\r\n")
			_ = conn.Close()
		case "/large":
			_, _ = io.CopyN(w, zeros{}, 1<<20)
		}
	})
	rule.Credential = "token"
	for path, want := range map[string]time.Duration{"/": time.Millisecond, "/fields": 4 * time.Millisecond, "/chunks": 50 * time.Millisecond, "/large": 20 * time.Millisecond} {
		for _, pays := range []bool{true, false} {
			var worked counter
			h := start(t, []http.Rule{rule}, func(h *harness) {
				onLoopback(h)
				h.options.Intercept, h.http.RootCAs, h.http.Credentials = true, roots, vault{"token": secret}
				h.ctx = abi.WithWork(t.Context(), func(took time.Duration) error {
					if worked.add(int(took)) >= int64(want) && !pays {
						return abi.Errorf(abi.CodeExhausted, "processor time")
					}
					return nil
				})
			})
			p := h.inside(at(rule))
			p.send("GET "+path+" HTTP/1.1", "Host: "+at(rule), "Connection: close")
			status, text := p.answer("GET")
			_ = h.proxy.Close()
			if took := time.Duration(worked.get()); took < want {
				t.Errorf("%s: charged %s", path, took)
			}
			if pays != (status == nethttp.StatusOK) {
				t.Errorf("%s, pays %t: status %d, %.100s", path, pays, status, text)
			}
		}
	}
}
