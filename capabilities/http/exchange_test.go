package http

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/wit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, []string{"exchange.head", "exchange.text", "exchange.blob"}, reflect.TypeFor[*Client](), reflect.TypeFor[*Exchange]())
}

// names is a resolver. Each name has answers that it returns in order, the last one repeatedly.
type names struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
	lookups int
}

// resolver takes "name": "address address, address": answers between commas.
func resolver(table map[string]string) *names {
	n := &names{answers: map[string][][]netip.Addr{}}
	for name, text := range table {
		for answer := range strings.SplitSeq(text, ",") {
			addresses := []netip.Addr{}
			for addr := range strings.FieldsSeq(answer) {
				addresses = append(addresses, netip.MustParseAddr(addr))
			}
			n.answers[name] = append(n.answers[name], addresses)
		}
	}
	return n
}

func (n *names) LookupNetIP(_ context.Context, network, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups++
	answers := n.answers[name]
	if network != "ip" || len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, Server: "10.0.0.2:53", IsNotFound: true}
	}
	if len(answers) > 1 {
		n.answers[name] = answers[1:]
	}
	return answers[0], nil
}

// serve starts a server on 127.0.0.1 and returns its port.
func serve(t *testing.T, handler nethttp.HandlerFunc) uint16 {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return port(t, server.Listener.Addr())
}

// serveRaw answers every connection with the output of answer, once it has read a request head.
func serveRaw(t *testing.T, answer func(net.Conn)) uint16 {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer func() { _ = conn.Close() }()
				if request, err := nethttp.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.Copy(io.Discard, request.Body)
					answer(conn)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Wait()
	})
	return port(t, listener.Addr())
}

func port(t *testing.T, addr net.Addr) uint16 {
	parsed, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Port()
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// good is the rule of most tests: GET on good.example:port, which is on loopback.
func good(port uint16) Rule {
	return Rule{Scheme: "http", Host: "good.example", Port: port, Addresses: loopback}
}

// client opens a grant for a test. All its names resolve to loopback, unless the options have a resolver.
func client(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Resolver == nil {
		o.Resolver = resolver(map[string]string{"good.example": "127.0.0.1", "other.example": "127.0.0.1", "evil.example": "127.0.0.1"})
	}
	if o.TempDir == "" {
		o.TempDir = t.TempDir()
	}
	grant, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(grant.CloseIdleConnections)
	return open(t, grant)
}

// result is how an exchange ended.
type result struct {
	head Head
	text string
	err  error
}

func (r result) header(name string) (values []string) {
	for _, h := range r.head.Headers {
		if h.Name == name {
			values = append(values, h.Value)
		}
	}
	return values
}

// do runs a request to its end.
func do(t *testing.T, c *Client, r Request) (done result) {
	t.Helper()
	exchange, err := c.Start(t.Context(), r)
	if err != nil {
		return result{err: err}
	}
	defer func() { _ = exchange.Close() }()
	if done.head, done.err = exchange.Head(t.Context()); done.err == nil {
		done.text, done.err = exchange.Text(t.Context(), 1<<20)
	}
	return done
}

func get(port uint16, path string) Request {
	return Request{Method: "GET", URL: fmt.Sprintf("http://good.example:%d%s", port, path)}
}

// wantDenied checks for a denial whose reason has a part.
func wantDenied(t *testing.T, err error, reason string) {
	t.Helper()
	denied, ok := errors.AsType[*abi.Error](err)
	if !ok || denied.Denial == nil || !strings.Contains(denied.Denial.Reason, reason) {
		t.Fatalf("want a denial with %q, have %v", reason, err)
	}
}

func wantError(t *testing.T, err error, code *abi.Error, detail string) {
	t.Helper()
	if !errors.Is(err, code) || !strings.Contains(err.Error(), detail) {
		t.Fatalf("want %v with %q, have %v", code, detail, err)
	}
}

func TestExchange(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Seen", r.Method+" "+r.Host+" "+r.RequestURI+" "+r.UserAgent())
		w.Header()["X-Twice"] = []string{"b", "a"}
		w.Header().Set("X-Latin", "caf\xe9")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.WriteHeader(nethttp.StatusTeapot)
		_, _ = io.WriteString(w, "héllo")
	})
	c := client(t, Options{Rules: []Rule{good(at)}})
	exchange, err := c.Start(t.Context(), get(at, "/a/../b%2f?q=1#f"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exchange.Close() }()
	<-exchange.Subscribe(t.Context(), Stage{}).Done()
	head, err := exchange.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host := fmt.Sprintf("good.example:%d", at)
	if head.Status != 418 || head.URL != "http://"+host+"/b%2F?q=1" || head.Redirected {
		t.Fatalf("%+v", head)
	}
	have := result{head: head}
	for name, want := range map[string][]string{
		"x-seen": {"GET " + host + " /b%2F?q=1 stile"}, "x-twice": {"b", "a"}, "x-latin": {"café"}, "keep-alive": nil, "content-length": {"6"},
	} {
		if values := have.header(name); !reflect.DeepEqual(values, want) {
			t.Errorf("%s: have %q, want %q", name, values, want)
		}
	}
	<-exchange.Subscribe(t.Context(), Stage{Case: StageWhole}).Done()
	if text, err := exchange.Text(t.Context(), 6); err != nil || text != "héllo" {
		t.Fatal(text, err)
	}
	if _, err := exchange.Text(t.Context(), 5); !errors.Is(err, abi.ErrTooLarge) {
		t.Fatal(err)
	}
	body, err := exchange.Blob(t.Context(), nil)
	if err != nil || body.Size(t.Context()) != 6 || body.MediaType(t.Context()) != "text/plain; charset=utf-8" {
		t.Fatal(body, err)
	}
	if _, err := exchange.Blob(t.Context(), nil); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
	if _, err := exchange.Text(t.Context(), 6); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
	if err := errors.Join(exchange.Close(), exchange.Close()); err != nil {
		t.Fatal(err)
	}
	if text, err := body.Text(t.Context(), 6); err != nil || text != "héllo" {
		t.Fatal("the blob ends with its exchange:", text, err)
	}
	_ = body.Close()
	if c.call.held.Reserve(64<<20) != nil {
		t.Fatal("the call is still charged")
	}
}

// TestHeadComesBeforeBody checks that the head is available while the server still sends the body.
func TestHeadComesBeforeBody(t *testing.T) {
	finish := make(chan struct{})
	at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.(nethttp.Flusher).Flush()
		<-finish
		_, _ = io.WriteString(w, "body")
	})
	exchange, err := client(t, Options{Rules: []Rule{good(at)}}).Start(t.Context(), get(at, "/"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exchange.Close() }()
	<-exchange.Subscribe(t.Context(), Stage{}).Done()
	if _, err := exchange.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	body := exchange.Subscribe(t.Context(), Stage{Case: StageWhole})
	select {
	case <-body.Done():
		t.Fatal("the body is ready before it was sent")
	default:
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := exchange.Text(cancelled, 10); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(finish)
	<-body.Done()
	if text, err := exchange.Text(t.Context(), 10); err != nil || text != "body" {
		t.Fatal(text, err)
	}
}

func TestContentIsSent(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %q %d %q %q", r.Method, body, r.ContentLength, r.Header["Content-Type"], r.TransferEncoding)
	})
	rule := good(at)
	rule.Methods = []string{"*"}
	c := client(t, Options{Rules: []Rule{rule}})
	for _, test := range []struct {
		method  string
		headers []Header
		content Content
		want    string
	}{
		{"post", nil, Content{Case: ContentText, Text: new("é")}, `POST "é" 2 ["text/plain;charset=UTF-8"] []`},
		{"PUT", []Header{{"Content-Type", "a/b"}}, Content{Case: ContentText, Text: new("{}")}, `PUT "{}" 2 ["a/b"] []`},
		{"PATCH", nil, Content{Case: ContentBytes, Bytes: &[]byte{0, 255}}, `PATCH "\x00\xff" 2 [] []`},
		{"POST", nil, Content{Case: ContentBlob, Blob: blob.New("image/png", []byte("png"))}, `POST "png" 3 ["image/png"] []`},
		{"POST", nil, Content{}, `POST "" 0 [] []`},
		{"POST", nil, Content{Case: ContentText, Text: new("")}, `POST "" 0 ["text/plain;charset=UTF-8"] []`},
		{"DELETE", nil, Content{}, `DELETE "" 0 [] []`},
		{"PURGE", nil, Content{}, `PURGE "" 0 [] []`},
	} {
		request := get(at, "/")
		request.Method, request.Headers, request.Content = test.method, test.headers, test.content
		if have := do(t, c, request); have.err != nil || have.text != test.want {
			t.Errorf("have %s, %v, want %s", have.text, have.err, test.want)
		}
		if test.content.Blob != nil {
			if _, err := test.content.Blob.Bytes(t.Context(), 0, 1); err == nil {
				t.Error("the blob that was sent stays open")
			}
		}
	}
}

func TestRequestIsRefused(t *testing.T) {
	c := client(t, Options{Rules: []Rule{{Host: "good.example", Methods: []string{"*"}, Headers: []string{"*"}}}})
	type change func(*Request)
	withHeader := func(name, value string) change { return func(r *Request) { r.Headers = []Header{{name, value}} } }
	tests := map[string]change{
		"no method":        func(r *Request) { r.Method = "" },
		"CONNECT":          func(r *Request) { r.Method = "CONNECT" },
		"trace":            func(r *Request) { r.Method = "trace" },
		"method with line": func(r *Request) { r.Method = "GET / HTTP/1.1\r\nHost: evil" },
		"lower method":     func(r *Request) { r.Method = "purge" },
		"long method":      func(r *Request) { r.Method = strings.Repeat("A", 1000) },
		"url":              func(r *Request) { r.URL = `https://good.example\@evil.example/` },
		"get with content": func(r *Request) { r.Content = Content{Case: ContentText, Text: new("a")} },
		"text missing":     func(r *Request) { r.Method, r.Content = "POST", Content{Case: ContentText} },
		"bytes missing":    func(r *Request) { r.Method, r.Content = "POST", Content{Case: ContentBytes} },
		"blob missing":     func(r *Request) { r.Method, r.Content = "POST", Content{Case: ContentBlob} },
		"content case":     func(r *Request) { r.Content.Case = 9 },
		"redirect case":    func(r *Request) { r.Redirect = 9 },
		"many headers":     func(r *Request) { r.Headers = make([]Header, 1000) },
		"big headers":      withHeader("x-a", strings.Repeat("a", 33<<10)),
	}
	for _, name := range []string{
		"Host", "hOsT", "Connection", "Content-Length", "Transfer-Encoding", "TE", "Trailer", "Upgrade", "Keep-Alive", "Expect", "Via", "HTTP2-Settings",
		"Proxy-Authorization", "Proxy-Connection", "Accept-Encoding", "", ":authority", "a b", "a:", "a\r\nHost", "a\x00", "é", " host", "host ", "transfer-encoding\t",
	} {
		tests["header "+name] = withHeader(name, "chunked")
	}
	for _, value := range []string{"a\r\nHost: evil", "a\nb", "a\rb", "a\x00", "a\x7f", "é", "\xff", "\r\n"} {
		tests["value "+value] = withHeader("x-a", value)
	}
	for name, change := range tests {
		request := Request{Method: "GET", URL: "https://good.example/"}
		change(&request)
		content := blob.New("", []byte("a"))
		if request.Content.Case == ContentNone {
			request.Content.Blob = content
		}
		if _, err := c.Start(t.Context(), request); !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := content.Bytes(t.Context(), 0, 1); request.Content.Blob != nil && err == nil {
			t.Errorf("%s: the blob stays open", name)
		}
	}
}

// TestRedirectAttacks has a server that the guest may use redirect it elsewhere.
func TestRedirectAttacks(t *testing.T) {
	victim := serve(t, func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("the victim was reached") })
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if strings.HasPrefix(r.URL.Path, "/ok/") {
			if to := r.FormValue("to"); to != "" {
				w.Header()["Location"] = []string{to}
				w.WriteHeader(nethttp.StatusFound)
			}
			return
		}
		t.Errorf("%s was reached", r.URL)
	})
	rules := []Rule{
		{Scheme: "http", Host: "good.example", Port: at, Path: "/ok/**", Addresses: loopback},
		{Scheme: "http", Host: "*", Port: victim},
		{Scheme: "http", Host: "mapped.example", Port: victim, Path: "/x", Addresses: loopback},
	}
	c := client(t, Options{Rules: rules, Resolver: resolver(map[string]string{
		"good.example": "127.0.0.1", "evil.example": "127.0.0.1", "localhost": "127.0.0.1 ::1", "metadata": "169.254.169.254", "nat.example": "64:ff9b::7f00:1",
		"both.example": "93.184.216.34 127.0.0.1", "mapped.example": "::ffff:127.0.0.2",
	})})
	for to, want := range map[string]string{
		"http://127.0.0.1:VICTIM/":                   "127.0.0.0/8 (loopback)",
		"http://[::ffff:127.0.0.1]:VICTIM/":          "127.0.0.0/8 (loopback)",
		"http://[::ffff:7f00:1]:VICTIM/":             "127.0.0.0/8 (loopback)",
		"http://[::1]:VICTIM/":                       "::1/128 (loopback)",
		"http://[::]:VICTIM/":                        "unspecified",
		"http://0.0.0.0:VICTIM/":                     "unspecified",
		"http://localhost:VICTIM/":                   "127.0.0.0/8 (loopback)",
		"http://LOCALHOST.:VICTIM/":                  "127.0.0.0/8 (loopback)",
		"http://metadata:VICTIM/latest/meta-data/":   "cloud metadata",
		"http://169.254.169.254:VICTIM/":             "cloud metadata",
		"http://evil.example:VICTIM/":                "127.0.0.0/8 (loopback)",
		"http://nat.example:VICTIM/":                 "NAT64",
		"http://both.example:VICTIM/":                "127.0.0.0/8 (loopback)",
		"http://mapped.example:VICTIM/x":             "127.0.0.0/8 (loopback)",
		"//127.0.0.1:VICTIM/":                        "127.0.0.0/8 (loopback)",
		"http://127.0.0.1:PORT/ok/":                  "no rule names the host",
		"http://169.254.169.254/latest/meta-data/":   "no rule names the host",
		"http://evil.example:PORT/ok/":               "no rule names the host",
		"//evil.example:PORT/ok/":                    "no rule names the host",
		"http://good.example.evil.example:PORT/ok/":  "no rule names the host",
		"http://evil.example#good.example":           "no rule names the host",
		"https://good.example:PORT/ok/":              "the scheme https",
		"http://good.example/ok/":                    "the port 80",
		"/secret":                                    "the path /secret",
		"../secret":                                  "the path /secret",
		"/ok/../secret":                              "the path /secret",
		"/ok/%2e%2e/secret":                          "the path /secret",
		"/ok/.%2E/secret":                            "the path /secret",
		"/okay/":                                     "the path /okay/",
		"/ok%2f":                                     "the path /ok%2F",
		"http://good.example:PORT//ok/":              "the path //ok/",
		"http://2130706433:VICTIM/":                  "refused",
		"http://0x7f.1:VICTIM/":                      "refused",
		"http://0177.0.0.1:VICTIM/":                  "refused",
		"http://127.1:VICTIM/":                       "refused",
		"http://good.example@127.0.0.1:VICTIM/":      "refused",
		"http://good.example:PORT@127.0.0.1:VICTIM/": "refused",
		`http://good.example:PORT\@127.0.0.1/`:       "refused",
		`/\127.0.0.1:VICTIM/`:                        "refused",
		`\\127.0.0.1:VICTIM/`:                        "refused",
		"http:///127.0.0.1:VICTIM/":                  "refused",
		"http:127.0.0.1:VICTIM":                      "refused",
		"file:///etc/passwd":                         "refused",
		"javascript:alert(1)":                        "refused",
		"ftp://good.example/ok/":                     "refused",
		"gopher://127.0.0.1:VICTIM/":                 "refused",
		"/ok/..;/secret":                             "refused",
		"/ok/..%2fsecret":                            "refused",
		"/ok/%252e%252e/secret":                      "refused",
		"/ok/ space":                                 "refused",
		"/ok/%00":                                    "refused",
		"http://[fe80::1%25lo]:VICTIM/":              "refused",
	} {
		to = strings.NewReplacer("VICTIM", strconv.Itoa(int(victim)), "PORT", strconv.Itoa(int(at))).Replace(to)
		have := do(t, c, get(at, "/ok/?to="+strings.NewReplacer("%", "%25", "#", "%23", "\\", "%5C", " ", "%20", ";", "%3B").Replace(to)))
		switch {
		case have.err == nil:
			t.Errorf("%s: followed to %s", to, have.head.URL)
		case want == "refused":
			if !errors.Is(have.err, abi.ErrUnavailable) || !strings.Contains(have.err.Error(), "refused") {
				t.Errorf("%s: %v", to, have.err)
			}
		default:
			denied, _ := errors.AsType[*abi.Error](have.err)
			if denied.Denial == nil || !strings.Contains(denied.Denial.Reason, want) || !strings.HasPrefix(denied.Denial.Reason, "redirected by http://good.example:") {
				t.Errorf("%s: %v", to, have.err)
			}
		}
	}
	for _, to := range []string{"/ok/final", "final", "./final", "//good.example:PORT/ok/final", "HTTP://GOOD.EXAMPLE.:PORT/ok/x/../final#frag", "?"} {
		to = strings.ReplaceAll(to, "PORT", strconv.Itoa(int(at)))
		if have := do(t, c, get(at, "/ok/?to="+strings.ReplaceAll(to, "#", "%23"))); have.err != nil || !have.head.Redirected {
			t.Errorf("%s: %v", to, have.err)
		}
	}
}

func TestRedirectFollowsFetch(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if status, err := strconv.Atoi(strings.Trim(r.URL.Path, "/")); err == nil {
			w.Header().Set("Location", "/end")
			w.WriteHeader(status)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %q %q", r.Method, body, r.Header["Content-Type"])
	})
	rule := good(at)
	rule.Methods = []string{"*"}
	c := client(t, Options{Rules: []Rule{rule}})
	for _, test := range []struct {
		method string
		status int
		want   string
	}{
		{"POST", 301, `GET "" []`},
		{"POST", 302, `GET "" []`},
		{"POST", 303, `GET "" []`},
		{"POST", 307, `POST "body" ["text/plain;charset=UTF-8"]`},
		{"POST", 308, `POST "body" ["text/plain;charset=UTF-8"]`},
		{"PUT", 301, `PUT "body" ["text/plain;charset=UTF-8"]`},
		{"PUT", 302, `PUT "body" ["text/plain;charset=UTF-8"]`},
		{"PUT", 303, `GET "" []`},
		{"GET", 302, `GET "" []`},
		{"GET", 303, `GET "" []`},
		{"GET", 307, `GET "" []`},
		{"GET", 300, ""},
		{"GET", 304, ""},
		{"GET", 305, ""},
	} {
		for _, content := range []Content{{Case: ContentText, Text: new("body")}, {Case: ContentBlob, Blob: blob.New("text/plain;charset=UTF-8", []byte("body"))}} {
			request := get(at, "/"+strconv.Itoa(test.status))
			request.Method = test.method
			if test.method != "GET" {
				request.Content = content
			}
			if have := do(t, c, request); have.err != nil || have.text != test.want || have.head.Redirected != (test.want != "") {
				t.Errorf("%s %d: have %s, %v, want %s", test.method, test.status, have.text, have.err, test.want)
			}
		}
	}
	request := get(at, "/302")
	request.Redirect = RedirectManual
	if have := do(t, c, request); have.err != nil || have.head.Status != 302 || !reflect.DeepEqual(have.header("location"), []string{"/end"}) || have.head.Redirected {
		t.Errorf("manual: %+v", have)
	}
	request.Redirect = RedirectError
	wantError(t, do(t, c, request).err, abi.ErrUnavailable, "redirect")
	request = get(at, "/302")
	request.Method = "HEAD"
	if have := do(t, c, request); have.err != nil || have.head.Status != 200 {
		t.Errorf("HEAD: %+v", have)
	}
}

// TestRedirectMayNotChangeMethodUnseen checks that the GET that a 303 makes of a POST must be allowed by a rule.
func TestRedirectMayNotChangeMethodUnseen(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.Method == "GET" {
			t.Error("a GET arrived")
		}
		nethttp.Redirect(w, r, "/", nethttp.StatusSeeOther)
	})
	rule := good(at)
	rule.Methods = []string{"POST"}
	request := get(at, "/")
	request.Method = "POST"
	wantDenied(t, do(t, client(t, Options{Rules: []Rule{rule}}), request).err, "the method GET")
}

func TestRedirectsEnd(t *testing.T) {
	hops := 0
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		hops++
		switch r.URL.Path {
		case "/a":
			nethttp.Redirect(w, r, "/b", nethttp.StatusFound)
		case "/b":
			nethttp.Redirect(w, r, "/x/../a", nethttp.StatusTemporaryRedirect)
		case "/self":
			nethttp.Redirect(w, r, "/self#fragment", nethttp.StatusPermanentRedirect)
		case "/form":
			if r.Method == "POST" {
				nethttp.Redirect(w, r, "/form", nethttp.StatusSeeOther)
			}
		default:
			nethttp.Redirect(w, r, r.URL.Path+"x", nethttp.StatusFound)
		}
	})
	have := do(t, client(t, Options{Rules: []Rule{good(at)}}), get(at, "/"))
	wantError(t, have.err, abi.ErrUnavailable, "more than 10 redirects")
	if hops != maxRedirects+1 {
		t.Fatal(hops)
	}
	for path, want := range map[string]int{"/a": 2, "/self": 1} {
		hops = 0
		have := do(t, client(t, Options{Rules: []Rule{good(at)}}), get(at, path))
		wantError(t, have.err, abi.ErrUnavailable, fmt.Sprintf("the redirects form a loop, back to http://good.example:%d%s", at, path))
		if hops != want {
			t.Fatal(path, hops)
		}
	}
	// The same URL with another method is not a loop.
	form := good(at)
	form.Methods = []string{"*"}
	request := get(at, "/form")
	request.Method = "POST"
	if have := do(t, client(t, Options{Rules: []Rule{form}}), request); have.err != nil || have.head.Status != 200 {
		t.Fatal(have)
	}
}

// TestPrivateHeadersStayWithOrigin checks that a guest's headers for one server do not reach another, nor return from it.
func TestPrivateHeadersStayWithOrigin(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]nethttp.Header{}
	record := func(r *nethttp.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.Host+r.URL.Path] = r.Header
	}
	var first uint16
	second := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		record(r)
		nethttp.Redirect(w, r, fmt.Sprintf("http://good.example:%d/back", first), nethttp.StatusTemporaryRedirect)
	})
	first = serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		record(r)
		switch r.URL.Path {
		case "/":
			nethttp.Redirect(w, r, "/same", nethttp.StatusFound)
		case "/same":
			nethttp.Redirect(w, r, fmt.Sprintf("http://good.example:%d/port", second), nethttp.StatusFound)
		}
	})
	rules := []Rule{good(first), good(second)}
	rules[0].Headers = []string{"*", "authorization", "cookie"}
	rules[1].Headers = rules[0].Headers
	request := get(first, "/")
	request.Headers = []Header{{"Authorization", "secret"}, {"Cookie", "secret"}, {"X-Api-Key", "secret"}, {"Accept", "text/plain"}, {"User-Agent", "me"}}
	if have := do(t, client(t, Options{Rules: rules}), request); have.err != nil {
		t.Fatal(have.err)
	}
	for place, private := range map[string]bool{
		fmt.Sprintf("good.example:%d/", first): true, fmt.Sprintf("good.example:%d/same", first): true,
		fmt.Sprintf("good.example:%d/port", second): false, fmt.Sprintf("good.example:%d/back", first): false,
	} {
		header := seen[place]
		for _, name := range []string{"Authorization", "Cookie", "X-Api-Key"} {
			if (header.Get(name) != "") != private {
				t.Errorf("%s: %s is %q", place, name, header.Get(name))
			}
		}
		if header.Get("Accept") != "text/plain" || header.Get("User-Agent") != "me" || header.Get("Referer") != "" {
			t.Errorf("%s: %v", place, header)
		}
	}
}

// TestNamesOfThisMachine checks that only the address that a name resolves to counts, whatever the name is.
func TestNamesOfThisMachine(t *testing.T) {
	at := serve(t, func(_ nethttp.ResponseWriter, r *nethttp.Request) { t.Errorf("%s was reached", r.Host) })
	table := map[string]string{
		"localhost": "127.0.0.1 ::1", "localhost.localdomain": "127.0.0.1", "ip6-localhost": "::1", "ip6-loopback": "::1", "a.localhost": "127.0.0.1",
		"localtest.me": "127.0.0.1", "127.0.0.1.nip.io": "127.0.0.1", "host.docker.internal": "172.17.0.1", "metadata.google.internal": "169.254.169.254",
		"xn--bcher-kva.example": "127.0.0.1", "mapped": "::ffff:127.0.0.1", "compatible": "::127.0.0.1", "nat64": "64:ff9b::7f00:1", "sixtofour": "2002:7f00:1::",
		"siit": "::ffff:0:127.0.0.1", "wildcard": "0.0.0.0", "wildcard6": "::", "metadata6": "fd00:ec2::254", "zone": "fe80::1%lo",
	}
	everything := []Rule{{Scheme: "http", Host: "*", Port: at}}
	spellings := []string{
		"LOCALHOST", "localhost.", "LocalHost.LocalDomain.", "BÜCHER.example", "bu\u0308cher.example", "127.0.0.1", "127.0.0.1.", "１２７．0．0．1", "[::1]", "[0:0::0:1]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::7f00:1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[::]", "0.0.0.0", "169.254.169.254", "[fd00:ec2::254]",
	}
	for name := range table {
		spellings = append(spellings, name)
	}
	c := client(t, Options{Rules: everything, Resolver: resolver(table)})
	for _, name := range spellings {
		have := do(t, c, Request{Method: "GET", URL: fmt.Sprintf("http://%s:%d/", name, at)})
		if !errors.Is(have.err, abi.ErrDenied) {
			t.Errorf("%s: %v", name, have.err)
		}
	}
	for _, name := range []string{"2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "127.0.1", "0", "0x0", "017700000001"} {
		have := do(t, c, Request{Method: "GET", URL: fmt.Sprintf("http://%s:%d/", name, at)})
		wantError(t, have.err, abi.ErrInvalid, "four decimal numbers")
	}
}

func TestRebinding(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.Header().Set("Connection", "close") })
	names := resolver(map[string]string{"good.example": "127.0.0.1, 127.0.0.2", "late.example": "127.0.0.2, 127.0.0.1", "none.example": ""})
	rule := good(at)
	rule.Host = "*.example"
	c := client(t, Options{Rules: []Rule{rule}, Resolver: names})
	// The checked answer is the dialled one: there is no second lookup that could return another address.
	if have := do(t, c, get(at, "/")); have.err != nil || names.lookups != 1 {
		t.Fatal(have.err, names.lookups)
	}
	wantDenied(t, do(t, c, get(at, "/")).err, "good.example has an address in 127.0.0.0/8 (loopback), which only the operator can allow")
	wantDenied(t, do(t, c, Request{Method: "GET", URL: fmt.Sprintf("http://late.example:%d/", at)}).err, "127.0.0.0/8 (loopback)")
	wantError(t, do(t, c, Request{Method: "GET", URL: fmt.Sprintf("http://none.example:%d/", at)}).err, abi.ErrUnavailable, fmt.Sprintf("none.example:%d: the name has no address", at))
}

func TestEveryAddressMustBeAllowed(t *testing.T) {
	at := serve(t, func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("the server was reached") })
	for _, addresses := range []string{"127.0.0.1 10.0.0.1", "10.0.0.1 127.0.0.1", "127.0.0.1 ::1", "127.0.0.1 ::ffff:10.0.0.1", "127.0.0.1 169.254.169.254", "fe80::1%lo 127.0.0.1"} {
		c := client(t, Options{Rules: []Rule{good(at)}, Resolver: resolver(map[string]string{"good.example": addresses})})
		have := do(t, c, get(at, "/"))
		wantDenied(t, have.err, "good.example has an address in")
		denied, _ := errors.AsType[*abi.Error](have.err)
		// No manifest can allow it, and only the person who starts the call learns the address.
		if wants := denied.Denial.Wants; wants != nil && wants.Remedy("x") != "" || strings.Contains(string(capability.JSON(denied.Denial)), "10.0.0.1") {
			t.Errorf("%+v", denied.Denial)
		}
	}
}

// TestSocketIsChecked checks that the check at the socket works even if the earlier check accepted an address.
func TestSocketIsChecked(t *testing.T) {
	d := &dialer{policy: addressPolicy{allowed: loopback}}
	if err := d.control(t.Context(), "tcp4", "127.0.0.1:80", nil); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"127.0.0.2:80", "[::1]:80", "[::ffff:10.0.0.1]:80", "0.0.0.0:80", "nonsense"} {
		if err := d.control(t.Context(), "tcp4", address, nil); err == nil {
			t.Errorf("%s passes", address)
		}
	}
}

func TestSeveralAddressesAreTried(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, "here") })
	rule := good(at)
	rule.Addresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c := client(t, Options{Rules: []Rule{rule}, Resolver: resolver(map[string]string{"good.example": "127.0.0.3 127.0.0.2 127.0.0.1"})})
	if have := do(t, c, get(at, "/")); have.err != nil || have.text != "here" {
		t.Fatal(have.err)
	}
}

func TestAddressInRule(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) { _, _ = io.WriteString(w, r.Host) })
	listener := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at)
	named := Rule{Scheme: "http", Host: "127.0.0.1", Port: at}
	any := Rule{Scheme: "http", Host: "*", Port: at}
	url := "http://" + listener.String() + "/"
	if have := do(t, client(t, Options{Rules: []Rule{any, named}}), Request{Method: "GET", URL: url}); have.err != nil || have.text != listener.String() {
		t.Fatal(have.err)
	}
	if have := do(t, client(t, Options{Rules: []Rule{named}}), Request{Method: "GET", URL: fmt.Sprintf("http://[::ffff:127.0.0.1]:%d/", at)}); have.err != nil {
		t.Fatal(have.err)
	}
	// Detected at once, before any network access:
	_, err := client(t, Options{Rules: []Rule{any}}).Start(t.Context(), Request{Method: "GET", URL: url})
	wantDenied(t, err, "loopback")
	_, err = client(t, Options{Rules: []Rule{named}, Own: listening(listener)}).Start(t.Context(), Request{Method: "GET", URL: url})
	wantDenied(t, err, "one of Stile's own listeners, which no rule can allow")
	for _, own := range []string{listener.String(), fmt.Sprintf("[::]:%d", at), fmt.Sprintf("0.0.0.0:%d", at)} {
		c := client(t, Options{Rules: []Rule{good(at)}, Own: listening(netip.MustParseAddrPort(own))})
		wantDenied(t, do(t, c, get(at, "/")).err, "one of Stile's own listeners")
	}
}

func listening(at netip.AddrPort) *Listeners {
	l := &Listeners{}
	l.Add(at)
	return l
}

// TestListenerThatComesLater checks that a new listener is refused at once, also by grants that were made earlier.
func TestListenerThatComesLater(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.Header().Set("Connection", "close") })
	own := &Listeners{}
	c := client(t, Options{Rules: []Rule{good(at)}, Own: own})
	if have := do(t, c, get(at, "/")); have.err != nil {
		t.Fatal(have.err)
	}
	remove := own.Add(netip.AddrPortFrom(netip.IPv6Unspecified(), at))
	wantDenied(t, do(t, c, get(at, "/")).err, "one of Stile's own listeners, which no rule can allow")
	remove()
	if have := do(t, c, get(at, "/")); have.err != nil {
		t.Fatal(have.err)
	}
}

func TestBodyIsLimited(t *testing.T) {
	bomb := packed["gzip"](make([]byte, 64<<20))
	handlers := map[string]nethttp.HandlerFunc{
		"endless": func(w nethttp.ResponseWriter, r *nethttp.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		},
		"announced": func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.Header().Set("Content-Length", "1000000000000")
			w.(nethttp.Flusher).Flush()
			<-r.Context().Done()
		},
		"bomb": func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		},
		"br bomb": func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write(packed["br"](make([]byte, 64<<20)))
		},
		"zstd bomb": func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			w.Header().Set("Content-Encoding", "zstd")
			_, _ = w.Write(packed["zstd"](make([]byte, 64<<20)))
		},
		"skippable frames": func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.Header().Set("Content-Encoding", "zstd")
			skippable := bytes.Repeat([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, 1000)
			for r.Context().Err() == nil {
				if _, err := w.Write(skippable); err != nil {
					return
				}
			}
		},
		"empty members": func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			empty := bytes.Repeat(packed["gzip"](nil), 1000)
			for r.Context().Err() == nil {
				if _, err := w.Write(empty); err != nil {
					return
				}
			}
		},
	}
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) { handlers[r.FormValue("is")](w, r) })
	rule := good(at)
	rule.MaxResponse = 100_000
	c := client(t, Options{Rules: []Rule{rule}})
	for name := range handlers {
		exchange, err := c.Start(t.Context(), get(at, "/?is="+strings.ReplaceAll(name, " ", "+")))
		if err != nil {
			t.Fatal(err)
		}
		if head, err := exchange.Head(t.Context()); err != nil || head.Status != 200 {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := exchange.Text(t.Context(), 1<<40); !errors.Is(err, abi.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := exchange.Blob(t.Context(), nil); !errors.Is(err, abi.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		_ = exchange.Close()
	}
	if err := c.call.held.Reserve(64 << 20); err != nil {
		t.Fatal("what failed is still charged:", err)
	}
}

// TestMalformedResponses checks that whatever a server sends instead of HTTP ends in an error.
func TestMalformedResponses(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, answer := range map[string]string{
		"nothing":               "",
		"not http":              "SSH-2.0-OpenSSH_9.9\r\n",
		"http 0.9":              "<html>",
		"huge status line":      "HTTP/1.1 200 " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"huge header":           ok + "X-A: " + strings.Repeat("a", 80<<10) + "\r\n\r\n",
		"many headers":          ok + strings.Repeat("X-A: a\r\n", 20<<10) + "\r\n",
		"early hints for ever":  strings.Repeat("HTTP/1.1 103 Early Hints\r\nX-A: a\r\n\r\n", 20<<10) + ok + "\r\n",
		"no colon":              ok + "X\r\n\r\n",
		"two lengths":           ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"negative length":       ok + "Content-Length: -1\r\n\r\n",
		"odd length":            ok + "Content-Length: +1\r\n\r\na",
		"unknown encoding":      ok + "Transfer-Encoding: gzip\r\n\r\na",
		"short body":            ok + "Content-Length: 10\r\n\r\nabc",
		"short chunk":           ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nab",
		"bad chunk":             ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
		"huge chunk":            ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nab\r\n",
		"long chunk extensions": ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("a", 2000)+"\r\na\r\n", 1000) + "0\r\n\r\n",
		"long trailer":          ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"other protocol":        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
		"two statuses":          "HTTP/1.1 2 00\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			at := serveRaw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, answer) })
			have := do(t, client(t, Options{Rules: []Rule{good(at)}}), get(at, "/"))
			wantError(t, have.err, abi.ErrUnavailable, "")
			if len(have.err.Error()) > 1000 {
				t.Fatalf("the error has %d bytes", len(have.err.Error()))
			}
		})
	}
}

func TestHeadersWithoutNameAreDropped(t *testing.T) {
	at := serveRaw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX A: b\r\nX-C: d\r\nContent-Length: 0\r\n\r\n")
	})
	have := do(t, client(t, Options{Rules: []Rule{good(at)}}), get(at, "/"))
	if want := []Header{{"content-length", "0"}, {"x-c", "d"}}; !reflect.DeepEqual(have.head.Headers, want) {
		t.Fatalf("%q, %v", have.head.Headers, have.err)
	}
}

func TestTimeLimits(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.URL.Path == "/body" {
			w.(nethttp.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	silent := serveRaw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-")
		_, _ = io.Copy(io.Discard, conn)
	})
	for name, request := range map[string]Request{"headers": get(at, "/"), "body": get(at, "/body"), "half a header": get(silent, "/")} {
		t.Run(name, func(t *testing.T) {
			request.Timeout = new(uint32(100))
			c := client(t, Options{Rules: []Rule{good(at), good(silent)}})
			wantError(t, do(t, c, request).err, abi.ErrTimedOut, "")
			request.Timeout = nil
			c = client(t, Options{Rules: []Rule{good(at), good(silent)}, Timeout: 100 * time.Millisecond})
			wantError(t, do(t, c, request).err, abi.ErrTimedOut, "")
			request.Timeout = new(uint32(0))
			wantError(t, do(t, c, request).err, abi.ErrTimedOut, "")
		})
	}
}

// TestEachStepIsTimed checks that every step of a hop has its own timeout. The exchange's would come much later.
func TestEachStepIsTimed(t *testing.T) {
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	const drip = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n"
	at := serveRaw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, drip)
		_, _ = io.Copy(io.Discard, conn)
	})
	inBody := serveRaw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, drip+"\r\nabc")
		_, _ = io.Copy(io.Discard, conn)
	})
	packed := serveRaw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, drip+"Content-Encoding: zstd\r\n\r\n\x28\xb5")
		_, _ = io.Copy(io.Discard, conn)
	})
	tls := good(port(t, silent.Addr()))
	tls.Scheme = "https"
	const short = 50 * time.Millisecond
	for name, test := range map[string]struct {
		timeouts Timeouts
		resolver Resolver
		rule     Rule
	}{
		"dial":   {Timeouts{Dial: short}, &stuckResolver{asked: make(chan struct{}, 1)}, good(at)},
		"TLS":    {Timeouts{TLS: short}, nil, tls},
		"header": {Timeouts{Header: short}, nil, good(at)},
		"body":   {Timeouts{Stall: short}, nil, good(inBody)},
		"packed": {Timeouts{Stall: short}, nil, good(packed)},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, Options{Rules: []Rule{test.rule}, Resolver: test.resolver, Timeouts: test.timeouts})
			request := Request{Method: "GET", URL: test.rule.origin() + "/"}
			wantError(t, do(t, c, request).err, abi.ErrTimedOut, "")
		})
	}
}

// TestCloseEndsEverything checks that an exchange that is closed, or whose call ends, leaves no goroutine and no connection.
func TestCloseEndsEverything(t *testing.T) {
	for _, test := range []struct{ name, path string }{{"before the head", "/"}, {"in the body", "/body"}} {
		for _, how := range []string{"close", "call", "operation"} {
			t.Run(test.name+" by "+how, func(t *testing.T) {
				began, ended := make(chan struct{}), make(chan struct{})
				at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
					if r.URL.Path == "/body" {
						_, _ = io.WriteString(w, "start")
						w.(nethttp.Flusher).Flush()
					}
					close(began)
					<-r.Context().Done()
					close(ended)
				})
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
				grant, err := New(Options{
					Rules: []Rule{good(at)}, Resolver: resolver(map[string]string{"good.example": "127.0.0.1"}), TempDir: t.TempDir(),
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				opened, err := grant.Open(ctx)
				if err != nil {
					t.Fatal(err)
				}
				operation, revoke := context.WithCancel(t.Context()) // a grant of something else that is used together with the client
				defer revoke()
				exchange, err := opened.(*Client).Start(operation, get(at, test.path))
				if err != nil {
					t.Fatal(err)
				}
				<-began
				switch how {
				case "call":
					cancel()
				case "operation":
					revoke()
				default:
					_ = exchange.Close()
				}
				<-ended
				if _, err := exchange.Text(t.Context(), 10); !errors.Is(err, abi.ErrUnavailable) {
					t.Fatal(err)
				}
				_ = exchange.Close()
			})
		}
	}
}

// TestCloseEndsDialAndHandshake checks that connections still being set up end with their exchange.
func TestCloseEndsDialAndHandshake(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	stuck := &stuckResolver{asked: make(chan struct{}, 1)}
	rule := Rule{Host: "good.example", Port: port(t, listener.Addr()), Addresses: loopback}
	for name, resolver := range map[string]Resolver{"dial": stuck, "handshake": resolver(map[string]string{"good.example": "127.0.0.1"})} {
		c := client(t, Options{Rules: []Rule{rule}, Resolver: resolver})
		exchange, err := c.Start(t.Context(), Request{Method: "GET", URL: fmt.Sprintf("https://good.example:%d/", rule.Port)})
		if err != nil {
			t.Fatal(err)
		}
		if name == "dial" {
			<-stuck.asked
		} else {
			conn, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
		}
		_ = exchange.Close()
	}
}

type stuckResolver struct{ asked chan struct{} }

func (s *stuckResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// The rule that is asked for has all of loopback, or only the private address; nothing asks for other addresses.
func TestRangeToAsk(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1": "127.0.0.0/8", "::1": "::1/128", "::ffff:127.0.0.9": "127.0.0.0/8", "10.1.2.3": "10.1.2.3/32", "fd00::7": "fd00::7/128",
		"169.254.169.254": "", "fd00:ec2::254": "", "224.0.0.1": "", "64:ff9b::7f00:1": "", "100.100.100.200": "",
	} {
		c := client(t, Options{Rules: []Rule{{Scheme: "http", Host: "good.example", Port: 80, Path: "/**"}}, Resolver: resolver(map[string]string{"good.example": address})})
		err := do(t, c, Request{Method: "GET", URL: "http://good.example/x"}).err
		wantDenied(t, err, "which only the operator can allow")
		denied, _ := errors.AsType[*abi.Error](err)
		got := ""
		if wants, ok := denied.Denial.Wants.(capability.Operators); ok {
			got = wants.Grant.(Rights).Remedy("network=http:x", wants.Grant)
		}
		if want != "" {
			want = "network=http:http://good.example/**,addresses=" + want
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

func TestFailuresKeepQuiet(t *testing.T) {
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := port(t, closed.Addr())
	_ = closed.Close()
	rule := good(at)
	rule.Host = "*.example"
	reset := serve(t, func(nethttp.ResponseWriter, *nethttp.Request) { panic(nethttp.ErrAbortHandler) })
	for name, want := range map[string]string{
		"good.example":    "connection refused",
		"unknown.example": "the name has no address",
		"broken.example":  "the name could not be looked up",
		"reset.example":   "the server closed the connection before the response was complete",
	} {
		port, rule := at, rule
		if name == "reset.example" {
			port = reset
		}
		rule.Port = port
		c := client(t, Options{Rules: []Rule{rule}, Resolver: leakyResolver{resolver(map[string]string{"good.example": "127.0.0.1", "reset.example": "127.0.0.1"})}})
		err := do(t, c, Request{Method: "GET", URL: fmt.Sprintf("http://%s:%d/path?token=k3y", name, port)}).err
		wantError(t, err, abi.ErrUnavailable, fmt.Sprintf("unavailable: %s:%d: %s", name, port, want))
		for _, secret := range []string{"127.0.0.1", "10.0.0.2", "resolv.conf", "path", "k3y"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

type leakyResolver struct{ Resolver }

func (l leakyResolver) LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error) {
	if name == "broken.example" {
		return nil, errors.New("/etc/resolv.conf names 10.0.0.2:53")
	}
	return l.Resolver.LookupNetIP(ctx, network, name)
}

func TestProxyVariablesAreIgnored(t *testing.T) {
	proxy := serve(t, func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("the proxy was used") })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, fmt.Sprintf("http://127.0.0.1:%d", proxy))
	}
	at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, "direct") })
	if have := do(t, client(t, Options{Rules: []Rule{good(at)}}), get(at, "/")); have.err != nil || have.text != "direct" {
		t.Fatal(have.err)
	}
}

// TestConnectionsAreNotShared checks that later calls of a grant reuse a connection, but not another rule or grant.
func TestConnectionsAreNotShared(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) { _, _ = io.WriteString(w, r.RemoteAddr) })
	grant := func() *Grant {
		first, second := good(at), good(at)
		first.Path, second.Path = "/first", "/second"
		g, err := New(Options{Rules: []Rule{first, second}, Resolver: resolver(map[string]string{"good.example": "127.0.0.1"})})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.CloseIdleConnections)
		return g
	}
	from := func(g *Grant, path string) string {
		have := do(t, open(t, g), get(at, path))
		if have.err != nil {
			t.Fatal(have.err)
		}
		return have.text
	}
	a, b := grant(), grant()
	first, again, second, other := from(a, "/first"), from(a, "/first"), from(a, "/second"), from(b, "/first")
	if first != again || first == second || first == other || second == other {
		t.Fatal(first, again, second, other)
	}
}

func TestPendingAndHeldAreLimited(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.Method == "GET" {
			_, _ = io.WriteString(w, strings.Repeat("a", 6000))
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // from here on the server detects a disconnect
		<-r.Context().Done()
	})
	rule := good(at)
	rule.Methods = []string{"GET", "POST"}
	c := client(t, Options{Rules: []Rule{rule}, Pending: 2, Held: 10_000})
	narrow, err := c.Narrow(t.Context(), c.Rules(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	post := get(at, "/")
	post.Method, post.Content = "POST", Content{Case: ContentText, Text: new(strings.Repeat("a", 6000))}
	first, err := c.Start(t.Context(), post)
	if err != nil {
		t.Fatal(err)
	}
	_, err = narrow.Start(t.Context(), post)
	wantError(t, err, abi.ErrExhausted, "10000 bytes")
	post.Content = Content{}
	second, err := narrow.Start(t.Context(), post)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Start(t.Context(), post)
	wantError(t, err, abi.ErrExhausted, "exchanges in progress: 2")
	_ = second.Close()
	wantError(t, do(t, c, get(at, "/")).err, abi.ErrExhausted, "10000 bytes")
	_ = first.Close()
	for range 3 {
		if have := do(t, c, get(at, "/")); have.err != nil || len(have.text) != 6000 {
			t.Fatal(have.err)
		}
	}
}

// TestHeadsAndRulesAreHeld checks that data without a body that a guest makes the host store is charged, too.
func TestHeadsAndRulesAreHeld(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		for i := range 1000 {
			w.Header().Set("X-"+strconv.Itoa(i), "")
		}
	})
	c := client(t, Options{Rules: []Rule{good(at)}, Held: 100_000})
	first, err := c.Start(t.Context(), get(at, "/"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantError(t, do(t, c, get(at, "/")).err, abi.ErrExhausted, "100000 bytes")
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	if have := do(t, c, get(at, "/")); have.err != nil {
		t.Fatal(have.err)
	}
	rules := []WitRule{{Host: "a", Path: strings.Repeat("/a", maxPattern/4)}}
	if _, err = c.Narrow(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	_, err = c.Narrow(t.Context(), rules)
	wantError(t, err, abi.ErrExhausted, "100000 bytes")
}

// TestMemoryOfAllCalls has many calls hold as many rules as they can. Others can still hold a few, and everything is given back.
func TestMemoryOfAllCalls(t *testing.T) {
	g := client(t, Options{Rules: []Rule{{Host: "a"}}}).grant
	rules := make([]WitRule, MaxRules)
	for i := range rules {
		rules[i].Host = "a"
	}
	ctx, cancel := context.WithCancel(t.Context())
	var refused int
	for range 20 {
		c, err := g.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = c.(*Client).Narrow(ctx, rules)
		}
		if !errors.Is(err, abi.ErrExhausted) {
			t.Fatal(err)
		}
		if strings.Contains(err.Error(), "in all calls") {
			refused++
		}
	}
	if refused < 10 {
		t.Errorf("%d of 20 calls are refused more", refused)
	}
	if _, err := open(t, g).Narrow(t.Context(), rules[:8]); err != nil {
		t.Errorf("another call: %v", err)
	}
	cancel()
	for allMemory.Free() < maxAllMemory {
		runtime.Gosched()
	}
}

// TestUsersShareMemory has one user's calls hold all the rules that they can. A call of another user holds as much as any call may, and so
// does one of a third.
func TestUsersShareMemory(t *testing.T) {
	g := client(t, Options{Rules: []Rule{{Host: "a"}}}).grant
	rules := make([]WitRule, MaxRules)
	for i := range rules {
		rules[i].Host = "a"
	}
	ctx, cancel := context.WithCancel(t.Context())
	hold := func(user string) error {
		ctx := turns.For(ctx, user)
		c, err := g.Open(abi.WithCall(ctx))
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = c.(*Client).Narrow(ctx, rules)
		}
		return err
	}
	const most = "bytes of contents, heads and rules held for http: 8388608 bytes"
	for range maxAllMemory / maxMemory {
		_ = hold("agent:busy")
	}
	wantError(t, hold("agent:busy"), abi.ErrExhausted, "in all calls: 67108864 bytes, of which agent:busy has at most half of what others leave")
	for _, user := range []string{"agent:other", "agent:third"} {
		wantError(t, hold(user), abi.ErrExhausted, most)
	}
	cancel()
	for allMemory.Free() < maxAllMemory {
		runtime.Gosched()
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		switch r.URL.Path {
		case "/away":
			nethttp.Redirect(w, r, "https://127.0.0.1/", nethttp.StatusFound)
		case "/headers":
			w.Header().Set("X-A", strings.Repeat("a", 100<<10))
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		case "/hang":
			<-r.Context().Done()
		default:
			_, _ = fmt.Fprintf(w, "%s %s", r.Proto, r.Host)
		}
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	rule := Rule{Host: "example.com", Port: port(t, server.Listener.Addr()), Addresses: loopback, MaxResponse: 1000}
	wrong := rule
	wrong.Host = "good.example"
	options := Options{
		Rules: []Rule{rule, wrong}, RootCAs: roots,
		Resolver: resolver(map[string]string{"example.com": "127.0.0.1", "good.example": "127.0.0.1"}),
	}
	c := client(t, options)
	at := func(host, path string) Request {
		return Request{Method: "GET", URL: fmt.Sprintf("https://%s:%d%s", host, rule.Port, path)}
	}
	if have := do(t, c, at("example.com", "/")); have.err != nil || have.text != fmt.Sprintf("HTTP/2.0 example.com:%d", rule.Port) {
		t.Fatal(have)
	}
	if counted := c.call.requests.Load(); counted != 1+handshake {
		t.Errorf("a request with a new connection counts as %d", counted)
	}
	wantDenied(t, do(t, c, at("example.com", "/away")).err, "no rule names the host 127.0.0.1")
	wantError(t, do(t, c, at("example.com", "/headers")).err, abi.ErrUnavailable, "")
	wantError(t, do(t, c, at("example.com", "/endless")).err, abi.ErrTooLarge, "")
	hang := at("example.com", "/hang")
	hang.Timeout = new(uint32(100))
	wantError(t, do(t, c, hang).err, abi.ErrTimedOut, "")
	wantError(t, do(t, c, at("good.example", "/")).err, abi.ErrUnavailable, fmt.Sprintf("good.example:%d: tls: failed to verify certificate", rule.Port))
	options.RootCAs = nil
	wantError(t, do(t, client(t, options), at("example.com", "/")).err, abi.ErrUnavailable, "certificate")
	plain := rule
	plain.Scheme = "http"
	options.Rules = []Rule{plain}
	if have := do(t, client(t, options), Request{Method: "GET", URL: fmt.Sprintf("http://example.com:%d/", rule.Port)}); have.err == nil && have.head.Status == 200 {
		t.Fatal(have)
	}
}

func TestConcurrentUse(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) { _, _ = io.WriteString(w, r.URL.Path) })
	c := client(t, Options{Rules: []Rule{good(at)}})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			path := "/" + strconv.Itoa(i)
			exchange, err := c.Start(t.Context(), get(at, path))
			if err != nil {
				t.Error(err)
				return
			}
			if i%3 == 0 {
				go func() { _ = exchange.Close() }()
			}
			text, err := exchange.Text(t.Context(), 100)
			if i%3 != 0 && (err != nil || text != path) {
				t.Errorf("%s: %q, %v", path, text, err)
			}
			_ = exchange.Close()
		})
	}
	all.Wait()
}

func TestHeaderSetsAreDisjoint(t *testing.T) {
	for _, name := range []string{"host", "proxy-x", "accept", "authorization", "cookie", "x-forwarded-for", "x-any", "content-length"} {
		if safeHeader(name) && (forbiddenHeader(name) || namedHeader(name)) || forbiddenHeader(name) && namedHeader(name) {
			t.Errorf("%s is in two sets", name)
		}
	}
}
