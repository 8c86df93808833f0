package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"testing"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
)

// BenchmarkRequest asks a server on loopback for 11 bytes, without and with the proxy: over a connection that is kept, and over a new one.
func BenchmarkRequest(b *testing.B) {
	answer := nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, "hello world") })
	plain, secured := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secured.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secured.Certificate())
	site := capability.NewSite(b.TempDir(), nil)
	site.Configure(http.Kind, http.Options{RootCAs: roots})
	var rules []http.Rule
	for _, server := range []*httptest.Server{plain, secured} {
		rule, err := http.ParseRule(server.URL)
		if err != nil {
			b.Fatal(err)
		}
		rules = append(rules, rule)
	}
	for _, c := range []struct {
		name      string
		to        *httptest.Server
		proxied   bool
		intercept bool
	}{
		{"http/direct", plain, false, false},
		{"http/proxy", plain, true, false},
		{"https/direct", secured, false, false},
		{"https/proxy", secured, true, false},
		{"https/intercepted", secured, true, true},
	} {
		for _, kept := range []bool{true, false} {
			name := c.name + "/new"
			if kept {
				name = c.name + "/kept"
			}
			b.Run(name, func(b *testing.B) {
				proxy, err := New(b.Context(), Options{Site: site, Rules: rules, Intercept: c.intercept, Limits: Limits{Bytes: 1 << 40}})
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = proxy.Close() }()
				l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				go func() { _ = proxy.Serve(l) }()
				trusted := roots.Clone()
				trusted.AppendCertsFromPEM(proxy.Authority().PEM)
				transport := &nethttp.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: !kept}
				defer transport.CloseIdleConnections()
				if c.proxied {
					transport.Proxy = nethttp.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()})
				}
				client := &nethttp.Client{Transport: transport}
				for b.Loop() {
					fetch(b, client, c.to.URL)
				}
			})
		}
	}
}

func fetch(b *testing.B, client *nethttp.Client, url string) {
	request, err := nethttp.NewRequestWithContext(context.Background(), nethttp.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "hello world" {
		b.Fatalf("%s %q, %v", response.Status, text, err)
	}
}

// BenchmarkProxy starts and closes proxies, and reports what an idle one takes.
func BenchmarkProxy(b *testing.B) {
	site := capability.NewSite(b.TempDir(), nil)
	for name, intercept := range map[string]bool{"opaque": false, "intercept": true} {
		b.Run(name, func(b *testing.B) {
			var idle []*Proxy
			before := taken()
			for range 200 {
				idle = append(idle, serving(b, site, intercept))
			}
			each := float64(taken()-before) / 200
			for _, p := range idle {
				_ = p.Close()
			}
			for b.Loop() {
				_ = serving(b, site, intercept).Close()
			}
			b.ReportMetric(each, "B/idle")
		})
	}
}

func serving(b *testing.B, site *capability.Site, intercept bool) *Proxy {
	p, err := New(b.Context(), Options{Site: site, Rules: []http.Rule{{Host: "good.example"}}, Intercept: intercept})
	if err != nil {
		b.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = p.Serve(l) }()
	return p
}

// taken is the memory that heap and stacks take, in bytes.
func taken() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
