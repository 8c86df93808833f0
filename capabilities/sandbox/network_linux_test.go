package sandbox_test

import (
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capability"
)

// TestNetwork reaches the server that a rule allows, through the proxy, and nothing else.
func TestNetwork(t *testing.T) {
	each(t, func(t *testing.T, o sandbox.Options) {
		serve := func(text string) string {
			s := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, text) }))
			t.Cleanup(s.Close)
			return s.URL
		}
		allowed, other := serve("allowed"), serve("other")
		rule, err := http.ParseRule(allowed)
		if err != nil {
			t.Fatal(err)
		}
		o.Site = capability.NewSite(t.TempDir(), func(capability.Level, string) {})
		defer func() { _ = o.Site.Close() }()
		s := open(t, o, sandbox.Rights{Network: []http.Rule{rule}})
		const get = `node -e 'const [proxy, url] = [new URL(process.env.http_proxy), process.argv[1]];
	require("http").get({ host: proxy.hostname, port: proxy.port, path: url, headers: { host: new URL(url).host } }, (r) => { let t = ""; r.on("data", (d) => t += d); r.on("end", () => console.log(r.statusCode, t)); }).on("error", (e) => console.log(e.code))' `
		if got := must(t, s, get+allowed+"/x"); got != "200 allowed\n" {
			t.Errorf("the allowed server: %q", got)
		}
		if got := must(t, s, get+other+"/x"); strings.Contains(got, "other") || !strings.HasPrefix(got, "403") {
			t.Errorf("another server: %q", got)
		}
		const direct = `node -e 'require("http").get(process.argv[1], { agent: new (require("http").Agent)({}) }, (r) => console.log(r.statusCode)).on("error", (e) => console.log(e.code))' `
		for _, url := range []string{allowed, other} {
			if got := must(t, s, "unset http_proxy NODE_USE_ENV_PROXY; "+direct+url); got != "ECONNREFUSED\n" {
				t.Errorf("past the proxy: %q", got)
			}
		}
		s2 := open(t, o, sandbox.Rights{})
		if got := must(t, s2, "echo $http_proxy$https_proxy; cat /proc/net/tcp | wc -l"); got != "\n1\n" {
			t.Errorf("without rules: %q", got)
		}
	})
}

// TestNetworkForms reads rules of a network, and compares them.
func TestNetworkForms(t *testing.T) {
	spec := func(options string) (capability.Grant, error) {
		return sandbox.Kind.ParseSpec(capability.Spec{Name: "box", Argument: "host", HasArgument: true, Options: options})
	}
	wide, err := spec("network=https://*.example.com,network=http://a.example.com:8080")
	if err != nil {
		t.Fatal(err)
	}
	for options, want := range map[string]bool{
		"": true, "network=https://x.example.com": true, "network=http://a.example.com:8080": true,
		"network=http://a.example.com": false, "network=https://example.com": false, "network=https://x.example.com:8443": false,
	} {
		if g, err := spec(options); err != nil || wide.Covers(g) != want {
			t.Errorf("%s: %v, %v", options, g, err)
		}
	}
	for _, options := range []string{"network=example.com", "network=https://example.com/path", "network=", "network=ftp://example.com"} {
		if g, err := spec(options); err == nil {
			t.Errorf("%s: %+v", options, g)
		}
	}
	asked, _ := spec("network=https://x.example.com,network=https://other.org")
	limited := asked.(sandbox.Rights).Limit([]capability.Grant{wide}).(sandbox.Rights)
	if got := fmt.Sprint(limited.Hosts()); got != "[x.example.com]" {
		t.Errorf("limited to %s", got)
	}
}

// purse is a meter for several goroutines.
type purse struct {
	mu   sync.Mutex
	left int64
}

// Charge implements [abi.Meter].
func (p *purse) Charge(n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.left {
		return abi.ErrExhausted
	}
	p.left -= n
	return nil
}

// TestTraffic has calls use one container, and more of its network together than one of them may.
func TestTraffic(t *testing.T) {
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = w.Write(make([]byte, 700_000)) }))
	defer server.Close()
	rule, err := http.ParseRule(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := home(t)
	o.Site = capability.NewSite(t.TempDir(), func(capability.Level, string) {})
	defer func() { _ = o.Site.Close() }()
	grant, err := sandbox.New(o, sandbox.Rights{Image: "host", Limits: sandbox.Limits{Traffic: 1 << 20}, Network: []http.Rule{rule}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	lasting := grant.Lasting()
	defer func() {
		if err := lasting.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 3 {
		opened, err := lasting.Open(abi.WithCall(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		s := opened.(*sandbox.Sandbox)
		get := "curl -s --noproxy '' -o f " + server.URL + "; stat -c %s f"
		if got := run(t, s, get); got.stdout != "700000\n" || got.stderr != "" {
			t.Errorf("the first request of a call: %q %q", got.stdout, got.stderr)
		}
		if got := run(t, s, "rm f; "+get); got.stdout == "700000\n" || !strings.Contains(got.stderr, "stile: exhausted: traffic of the sandbox in one call: 1MiB") {
			t.Errorf("the second request of a call: %q %q", got.stdout, got.stderr)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEachPays has two calls use one container. Each is charged for what its own commands carry, and a call without bytes left gets nothing
// from a server.
func TestEachPays(t *testing.T) {
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = w.Write(make([]byte, 100_000)) }))
	defer server.Close()
	rule, err := http.ParseRule(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := home(t)
	o.Site = capability.NewSite(t.TempDir(), func(capability.Level, string) {})
	defer func() { _ = o.Site.Close() }()
	grant, err := sandbox.New(o, sandbox.Rights{Image: "host", Network: []http.Rule{rule}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	lasting := grant.Lasting()
	defer func() {
		if err := lasting.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct{ has, most, least int64 }{{1 << 20, 1<<20 - 100_000, 0}, {1 << 20, 1<<20 - 100_000, 1<<20 - 110_000}, {50_000, 50_000, 0}} {
		meter := &purse{left: c.has}
		opened, err := lasting.Open(abi.WithMeter(t.Context(), meter))
		if err != nil {
			t.Fatal(err)
		}
		s := opened.(*sandbox.Sandbox)
		got := run(t, s, "curl -s --noproxy '' -o f "+server.URL+"; stat -c %s f")
		if (got.stdout == "100000\n") != (c.has > 100_000) {
			t.Errorf("with %d bytes: %q %q", c.has, got.stdout, got.stderr)
		}
		if left := meter.left; left > c.most || left < c.least {
			t.Errorf("with %d bytes: %d are left", c.has, left)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
