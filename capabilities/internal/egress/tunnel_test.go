package egress

import (
	"crypto/tls"
	"io"
	nethttp "net/http"
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities/http"
)

// TestProxies sends requests through the proxy: in absolute form, in a tunnel, with TLS and HTTP/2.
func TestProxies(t *testing.T) {
	echo := func(w nethttp.ResponseWriter, r *nethttp.Request) {
		text, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Proto+" "+r.Method+" "+r.RequestURI)
		_, _ = w.Write(text)
	}
	plain := web(t, echo)
	secured, roots := secure(t, echo)
	h := start(t, []http.Rule{plain, secured}, onLoopback)
	client := h.through(roots)
	for _, base := range []string{"http://" + at(plain), "https://" + at(secured)} {
		for _, body := range []string{"", "text"} {
			request, err := nethttp.NewRequestWithContext(t.Context(), "POST", base+"/a//b%2fc/../d?q=%20&r=|", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if string(text) != body || !strings.HasSuffix(response.Header.Get("X-Seen"), " POST /a//b%2fc/../d?q=%20&r=|") {
				t.Errorf("%s: %s, %q", base, response.Header.Get("X-Seen"), text)
			}
		}
	}
	if refused := h.refused(); refused != "" {
		t.Error(refused)
	}
}

// hello returns the bytes of a ClientHello for a name.
func hello(t *testing.T, name string, protocols ...string) []byte {
	t.Helper()
	var sent recorder
	config := &tls.Config{ServerName: name, NextProtos: protocols, InsecureSkipVerify: name == "", MinVersion: tls.VersionTLS12}
	_ = tls.Client(&sent, config).HandshakeContext(t.Context()) // it ends when it wants an answer
	return sent.bytes
}

// TestServerName checks the name in a ClientHello against the host of the tunnel.
func TestServerName(t *testing.T) {
	rule, roots := secure(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, "fine") })
	h := start(t, []http.Rule{rule, {Host: "*.example.com", Port: rule.Port, Addresses: loopback}, {Host: "127.0.0.1", Port: rule.Port}}, onLoopback)
	for _, c := range []struct {
		target, name string
		ok           bool
	}{
		{"example.com", "example.com", true},
		{"example.com", "EXAMPLE.com", true},
		{"example.com", "", true},
		{"127.0.0.1", "", true},
		{"127.0.0.1", "example.com", false},
		{"example.com", "evil.example", false},
		{"example.com", "sub.example.com", false}, // another rule allows that name, but at an address of its own
		{"example.com", "example.com.evil.example", false},
		{"example.com", "xn--exmple-cua.com", false},
	} {
		p := h.connect(at(http.Rule{Host: c.target, Port: rule.Port}))
		config := &tls.Config{ServerName: c.name, InsecureSkipVerify: true, RootCAs: roots, MinVersion: tls.VersionTLS12}
		secured := tls.Client(p, config)
		if err := secured.HandshakeContext(t.Context()); (err == nil) != c.ok {
			t.Errorf("%s in a tunnel to %s: %v", c.name, c.target, err)
		}
		if refused := h.refused(); !c.ok && !strings.Contains(refused, "the TLS handshake names the server") {
			t.Errorf("%s in a tunnel to %s: refused %s", c.name, c.target, refused)
		}
		h.refusals = nil
		_ = p.Close()
	}
}
