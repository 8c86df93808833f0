package egress

import (
	"fmt"
	"net"
	nethttp "net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
)

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// anywhere are rules for every host.
func anywhere() []http.Rule {
	return []http.Rule{{Scheme: "https", Host: "*", Port: 443}, {Scheme: "http", Host: "*", Port: 80}}
}

// TestSpecialAddresses asks for every spelling of an address that is not public, in each form of request.
func TestSpecialAddresses(t *testing.T) {
	h := start(t, anywhere(), func(h *harness) {
		h.http.Resolver = &table{answers: map[string][]string{
			"localhost": {"127.0.0.1"}, "metadata.test": {"169.254.169.254"}, "mapped.test": {"::ffff:127.0.0.1"}, "nat64.test": {"64:ff9b::a00:1"},
			"mixed.test": {"8.8.8.8 127.0.0.1"}, "unspecified.test": {"0.0.0.0"}, "ula.test": {"fd00::1"}, "link.test": {"fe80::1"},
		}}
	})
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1.", "127.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "127.0.0.01", "127.255.255.254",
		"[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]",
		"[2002:7f00:1::]", "[2001:0:808:808::80ff:fffe]", "[::1%25lo]", "[::1%lo]", "::1", "[fe80::1]", "[fc00::1]", "[ff02::1]",
		"169.254.169.254", "0xa9fea9fe", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "100.100.100.200", "10.0.0.1", "172.16.0.1",
		"192.168.1.1", "100.64.0.1", "224.0.0.1", "255.255.255.255", "0.0.0.0", "0", "[::]", "[::ffff:0.0.0.0]", "192.0.2.1", "198.18.0.1",
		"localhost", "LOCALHOST", "localhost.", "metadata.test", "mapped.test", "nat64.test", "mixed.test", "unspecified.test", "ula.test", "link.test",
		"\u2460\u2461\u2466.0.0.1", "127\u30020\u30020\u30021", "user@127.0.0.1", "127.0.0.1#@public.test", "127.0.0.1\\@public.test", "%31%32%37.0.0.1",
		"127.0.0.1%00", "127.0.0.1%0d%0a", "",
	} {
		for _, request := range []string{
			"CONNECT " + host + ":443 HTTP/1.1", "CONNECT " + host + ":80 HTTP/1.1",
			"GET http://" + host + "/ HTTP/1.1", "GET http://" + host + ":80/ HTTP/1.1", "GET HTTP://" + host + " HTTP/1.1",
		} {
			p := h.dial()
			name := host
			if strings.HasPrefix(request, "CONNECT") {
				name = strings.TrimSuffix(strings.TrimPrefix(request, "CONNECT "), " HTTP/1.1")
			}
			p.send(request, "Host: "+name)
			method, _, _ := strings.Cut(request, " ")
			status, text := p.answer(method)
			if status == nethttp.StatusOK && strings.Contains(request, ":80 ") { // a rule for http is for the requests in the tunnel
				p.send("GET / HTTP/1.1", "Host: "+name)
				status, text = p.answer("GET")
			}
			if status != nethttp.StatusForbidden && status != nethttp.StatusBadRequest {
				t.Errorf("%s: status %d, %s", request, status, text)
			}
			_ = p.Close()
		}
	}
}

// TestRebinding uses a name whose address changes after it was allowed.
func TestRebinding(t *testing.T) {
	rule := web(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.Header().Set("Connection", "close") })
	secured, _ := secure(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	h := start(t, []http.Rule{rule, secured}, func(h *harness) {
		h.http.Resolver = &table{answers: map[string][]string{
			"good.example": {"127.0.0.1", "127.0.0.2", "10.0.0.1"}, "example.com": {"127.0.0.1", "169.254.169.254"},
		}}
	})
	p := h.dial()
	for i, want := range []int{nethttp.StatusOK, nethttp.StatusForbidden} {
		p.send("GET http://"+at(rule)+"/ HTTP/1.1", "Host: "+at(rule))
		if status, text := p.answer("GET"); status != want {
			t.Errorf("request %d: status %d, %s; want %d", i+1, status, text, want)
		}
	}
	_ = h.connect(at(secured)).Close()
	p = h.dial()
	p.send("CONNECT "+at(secured)+" HTTP/1.1", "Host: "+at(secured))
	if status, text := p.answer("CONNECT"); status != nethttp.StatusForbidden || !strings.Contains(text, "cloud metadata") {
		t.Errorf("status %d, %s", status, text)
	}
}

// TestOwnListeners asks the proxy for itself, and for another listener of this program.
func TestOwnListeners(t *testing.T) {
	server := listen(t)
	defer func() { _ = server.Close() }()
	own := new(http.Listeners)
	other := port(t, server.Addr().String())
	h := start(t, nil, func(h *harness) {
		h.http.Own = own
		for _, scheme := range []string{"http", "https"} {
			h.options.Rules = append(h.options.Rules, http.Rule{Scheme: scheme, Host: "127.0.0.1", Port: other}, http.Rule{Scheme: scheme, Host: "own.example", Port: other, Addresses: loopback})
		}
	})
	defer own.Add(server.Addr().(*net.TCPAddr).AddrPort())()
	for _, host := range []string{"127.0.0.1", "own.example"} {
		authority := fmt.Sprintf("%s:%d", host, other)
		for _, request := range []string{"CONNECT " + authority, "GET http://" + authority + "/"} {
			p := h.dial()
			p.send(request+" HTTP/1.1", "Host: "+authority)
			method, _, _ := strings.Cut(request, " ")
			switch status, text := p.answer(method); {
			case status == nethttp.StatusForbidden && strings.Contains(text, "own listeners"):
			case status == nethttp.StatusOK && method == "CONNECT": // a rule for http allows requests in the tunnel
				p.send("GET / HTTP/1.1", "Host: "+authority)
				if status, text := p.answer("GET"); status != nethttp.StatusForbidden || !strings.Contains(text, "own listeners") {
					t.Errorf("%s: status %d, %s", request, status, text)
				}
			default:
				t.Errorf("%s: status %d, %s", request, status, text)
			}
		}
	}
}

// TestProxyIsItsOwn asks a proxy for its own listener.
func TestProxyIsItsOwn(t *testing.T) {
	l := listen(t)
	rule := http.Rule{Scheme: "http", Host: "127.0.0.1", Port: port(t, l.Addr().String())}
	h := start(t, []http.Rule{rule})
	served := make(chan error)
	go func() { served <- h.proxy.Serve(l) }()
	h.at = l.Addr().String()
	p := h.dial()
	p.send("GET http://"+h.at+"/ HTTP/1.1", "Host: "+h.at)
	if status, text := p.answer("GET"); status != nethttp.StatusForbidden || !strings.Contains(text, "own listeners") {
		t.Errorf("status %d, %s", status, text)
	}
	_ = h.proxy.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestDenialNamesTheRule checks that a denial has the rule that would allow the connection or request, and that with it, it is allowed.
func TestDenialNamesTheRule(t *testing.T) {
	allowed := http.Rule{Host: "good.example"}
	for request, want := range map[string]string{
		"CONNECT evil.example:443":            `CONNECT https://evil.example: no rule names the host evil.example; the rules name good.example | https://evil.example`,
		"CONNECT good.example:8443":           `CONNECT https://good.example:8443: the closest rule, https://good.example, does not allow the port 8443 | https://good.example:8443`,
		"CONNECT good.example:80":             `CONNECT http://good.example: the closest rule, https://good.example, does not allow the scheme http | http://good.example`,
		"GET http://good.example/a/../b?c=d":  `GET http://good.example: the closest rule, https://good.example, does not allow the scheme http | http://good.example`,
		"POST http://127.0.0.1:8080/secret?x": `POST http://127.0.0.1:8080: no rule names the host 127.0.0.1; the rules name good.example | http://127.0.0.1:8080`,
	} {
		h := start(t, []http.Rule{allowed}, func(h *harness) {
			h.options.Wants = func(r http.Rule) abi.Wants { return wanted(r.String()) }
		})
		p := h.dial()
		method, target, _ := strings.Cut(request, " ")
		host := target
		if method != "CONNECT" {
			host = mustURL(t, target).Host
		}
		p.send(request+" HTTP/1.1", "Host: "+host)
		if status, text := p.answer(method); status != nethttp.StatusForbidden || !strings.HasPrefix(text, "stile: denied: ") {
			t.Errorf("%s: status %d, %s", request, status, text)
		}
		refusals := h.taken()
		if len(refusals) != 1 || refusals[0].Denial == nil {
			t.Fatalf("%s: refused %v", request, refusals)
		}
		d := refusals[0].Denial
		if have := fmt.Sprintf("%s: %s | %v", d.Operation, d.Reason, d.Wants); have != want {
			t.Errorf("%s:\nhave %s\nwant %s", request, have, want)
		}
	}
}

type wanted string

func (wanted) Remedy(string) string { return "" }
