package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table is a resolver. Each name has answers that it returns in order, the last one repeatedly. Other names ending in .example are on
// loopback.
type table struct {
	mu      sync.Mutex
	answers map[string][]string // addresses between spaces
	lookups int
}

func (n *table) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups++
	answers := n.answers[name]
	switch {
	case len(answers) > 1:
		n.answers[name] = answers[1:]
	case len(answers) == 0 && strings.HasSuffix(name, ".example"):
		answers = []string{"127.0.0.1"}
	case len(answers) == 0:
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	var found []netip.Addr
	for text := range strings.FieldsSeq(answers[0]) {
		found = append(found, netip.MustParseAddr(text))
	}
	return found, nil
}

// harness is a proxy on loopback, and what it has refused.
type harness struct {
	t       *testing.T
	ctx     context.Context
	proxy   *Proxy
	at      string
	options Options
	http    http.Options

	mu       sync.Mutex
	refusals []*abi.Error
}

// start starts a proxy with the given rules, whose hosts may be on loopback.
func start(t *testing.T, rules []http.Rule, change ...func(*harness)) *harness {
	t.Helper()
	h := &harness{t: t, ctx: t.Context(), http: http.Options{Resolver: &table{}}}
	h.options.Rules = rules
	h.options.Refused = func(err *abi.Error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.refusals = append(h.refusals, err)
	}
	for _, f := range change {
		f(h)
	}
	if h.options.Site == nil {
		h.options.Site = capability.NewSite(t.TempDir(), nil)
		h.options.Site.Configure(http.Kind, h.http)
	}
	proxy, err := New(h.ctx, h.options)
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	h.proxy, h.at = proxy, l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- proxy.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(proxy.Close(), <-served); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return h
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// taken returns what was refused since it was last asked.
func (h *harness) taken() []*abi.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := h.refusals
	h.refusals = nil
	return taken
}

// refused is the text of taken, one refusal a line.
func (h *harness) refused() string {
	var text strings.Builder
	for _, err := range h.taken() {
		fmt.Fprintln(&text, err)
	}
	return text.String()
}

// peer is a client's connection.
type peer struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func (p *peer) Read(b []byte) (int, error) { return p.in.Read(b) }

func (h *harness) dial() *peer {
	h.t.Helper()
	conn, err := new(net.Dialer).DialContext(h.t.Context(), "tcp", h.at)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &peer{conn, h.t, bufio.NewReader(conn)}
}

// send writes lines that end with CRLF.
func (p *peer) send(lines ...string) {
	_, _ = io.WriteString(p, strings.Join(lines, "\r\n")+"\r\n\r\n") // the answer shows an error
}

// answer reads a response to a request of a method.
func (p *peer) answer(method string) (int, string) {
	p.t.Helper()
	response, err := nethttp.ReadResponse(p.in, &nethttp.Request{Method: method})
	if err != nil {
		return 0, err.Error()
	}
	if method == nethttp.MethodConnect && response.StatusCode == nethttp.StatusOK {
		return response.StatusCode, ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// connect asks for a tunnel, which must be made.
func (h *harness) connect(authority string) *peer {
	h.t.Helper()
	p := h.dial()
	p.send("CONNECT "+authority+" HTTP/1.1", "Host: "+authority)
	if status, text := p.answer(nethttp.MethodConnect); status != nethttp.StatusOK {
		h.t.Fatalf("CONNECT %s: %d %s", authority, status, text)
	}
	return p
}

// raw starts a server that hands each connection to answer, and closes it then. It returns a rule for good.example there.
func raw(t *testing.T, answer func(net.Conn)) http.Rule {
	l := listen(t)
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				answer(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	return http.Rule{Scheme: "http", Host: "good.example", Port: port(t, l.Addr().String()), Addresses: loopback}
}

// encrypted is a rule for https at the place of a rule for http.
func encrypted(r http.Rule) http.Rule {
	r.Scheme = "https"
	return r
}

// ended reports what arrives before the connection ends.
func (p *peer) ended() string {
	p.t.Helper()
	_ = p.SetReadDeadline(time.Now().Add(20 * time.Second))
	all, err := io.ReadAll(p)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		p.t.Error("the connection did not end")
	}
	return string(all)
}

func port(t *testing.T, address string) uint16 {
	t.Helper()
	at, err := netip.ParseAddrPort(strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return at.Port()
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// web starts a server, and returns its port and a rule for good.example there.
func web(t *testing.T, handler nethttp.HandlerFunc) http.Rule {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return http.Rule{Scheme: "http", Host: "good.example", Port: port(t, server.URL), Addresses: loopback}
}

// secure starts a server with TLS for *.example.com and returns a rule for good.example there, and its authorities.
func secure(t *testing.T, handler nethttp.HandlerFunc) (http.Rule, *x509.CertPool) {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // tests end handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return http.Rule{Host: "example.com", Port: port(t, server.URL), Addresses: loopback}, roots
}

func onLoopback(h *harness) {
	h.http.Resolver = &table{answers: map[string][]string{"example.com": {"127.0.0.1"}}}
}

func at(r http.Rule) string { return fmt.Sprintf("%s:%d", r.Host, r.Port) }

// through returns a client that uses the proxy.
func (h *harness) through(roots *x509.CertPool) *nethttp.Client {
	transport := &nethttp.Transport{
		Proxy: nethttp.ProxyURL(mustURL(h.t, "http://"+h.at)), TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}
	h.t.Cleanup(transport.CloseIdleConnections)
	return &nethttp.Client{Transport: transport, CheckRedirect: func(*nethttp.Request, []*nethttp.Request) error { return nethttp.ErrUseLastResponse }}
}

// TestRequestsAreCharged has a client connect, and ask for what it may not have.
func TestRequestsAreCharged(t *testing.T) {
	var worked counter
	const most = 20 * (connectionWork + requestWork)
	h := start(t, nil, func(h *harness) {
		h.ctx = abi.WithWork(t.Context(), func(took time.Duration) error {
			if worked.add(int(took)) > int64(most) {
				return abi.Errorf(abi.CodeExhausted, "processor time")
			}
			return nil
		})
	})
	for i := range 20 {
		p := h.dial()
		p.send("GET http://example.com/ HTTP/1.1", "Host: example.com")
		if status, text := p.answer("GET"); status != nethttp.StatusForbidden {
			t.Fatalf("request %d: status %d, %s", i+1, status, text)
		}
	}
	if got := time.Duration(worked.get()); got != most {
		t.Errorf("%v were charged, not %v", got, most)
	}
	if said := h.dial().ended(); said != "" { // it need not even ask
		t.Errorf("one more connection: %q", said)
	}
}
