package egress

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities/http"
)

// malformed are requests that parsers read in different ways, or that are too large. Each is without its first line and Host.
var malformed = map[string]string{
	"two lengths":                  "Content-Length: 5\r\nContent-Length: 5\r\n",
	"two different lengths":        "Content-Length: 5\r\nContent-Length: 6\r\n",
	"a list of lengths":            "Content-Length: 5, 5\r\n",
	"a length and chunks":          "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
	"chunks and a length":          "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
	"chunks twice":                 "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
	"chunks in a list":             "Transfer-Encoding: gzip, chunked\r\n",
	"identity":                     "Transfer-Encoding: identity\r\n",
	"an unknown encoding":          "Transfer-Encoding: xchunked\r\n",
	"a quoted encoding":            "Transfer-Encoding: \"chunked\"\r\n",
	"a vertical tab":               "Transfer-Encoding: \x0bchunked\r\n",
	"an encoding with parameters":  "Transfer-Encoding: chunked;q=1\r\n",
	"a signed length":              "Content-Length: +5\r\n",
	"a negative length":            "Content-Length: -1\r\n",
	"a hexadecimal length":         "Content-Length: 0x5\r\n",
	"a length with an underscore":  "Content-Length: 1_0\r\n",
	"a length of nothing":          "Content-Length: \r\n",
	"a huge length":                "Content-Length: 99999999999999999999\r\n",
	"a space before the colon":     "Content-Length : 5\r\n",
	"a space before the name":      " Content-Length: 5\r\n",
	"a folded line":                "X-A: b\r\n c\r\n",
	"a folded first line":          "\tX-A: b\r\n",
	"a bare LF":                    "X-A: b\nX-C: d\r\n",
	"a bare CR":                    "X-A: b\rX-C: d\r\n",
	"a NUL":                        "X-A: b\x00c\r\n",
	"a control character":          "X-A: b\x01c\r\n",
	"no colon":                     "X-A\r\n",
	"no name":                      ": b\r\n",
	"a name with a space":          "X A: b\r\n",
	"a name that is not ASCII":     "X-\u00e4: b\r\n",
	"another Host":                 "Host: evil.example\r\n",
	"another Host in lower case":   "host: evil.example\r\n",
	"another expectation":          "Expect: 200-ok\r\n",
	"two expectations":             "Expect: 100-continue\r\nExpect: 100-continue\r\n",
	"many fields":                  strings.Repeat("X-A: b\r\n", maxFields),
	"a long field":                 "X-A: " + strings.Repeat("b", maxHead) + "\r\n",
	"a long name":                  strings.Repeat("b", maxHead) + ": c\r\n",
	"fields of many bytes":         strings.Repeat("X-A: "+strings.Repeat("b", 1000)+"\r\n", 66),
	"a field that ends with CRCR":  "X-A: b\r\r\n",
	"a Host that is another place": "\r\nHost: evil.example\r\n\x00",
}

// TestMalformedRequests sends them to the proxy, in absolute form and in a tunnel. The server must see none.
func TestMalformedRequests(t *testing.T) {
	var seen counter
	rule := web(t, func(nethttp.ResponseWriter, *nethttp.Request) { seen.add(1) })
	h := start(t, []http.Rule{rule})
	try := func(p *peer, name, text string) {
		_, _ = io.WriteString(p, text) // the proxy may have answered already
		status, answer := p.answer("POST")
		if status != nethttp.StatusBadRequest && status != nethttp.StatusRequestHeaderFieldsTooLarge || seen.get() != 0 {
			t.Errorf("%s: status %d, %s", name, status, answer)
		}
		if rest := p.ended(); rest != "" {
			t.Errorf("%s: also got %q", name, rest)
		}
		_ = p.Close()
	}
	for name, fields := range malformed {
		if strings.HasPrefix(fields, "\r\n") {
			continue // this is a valid request, and then another
		}
		rest := "Host: " + at(rule) + "\r\n" + fields + "\r\nhello"
		try(h.dial(), name, "POST http://"+at(rule)+"/ HTTP/1.1\r\n"+rest)
		try(h.connect(at(rule)), name+", in a tunnel", "POST / HTTP/1.1\r\n"+rest)
		try(h.dial(), name+", for a tunnel", "CONNECT "+at(rule)+" HTTP/1.1\r\n"+rest)
	}
	host := "Host: " + at(rule)
	good := "http://" + at(rule) + "/"
	for _, text := range []string{
		"GET " + good + " HTTP/1.1", "GET " + good + " HTTP/1.1\r\nHost: ", "GET " + good + " HTTP/1.1\r\nHost: evil.example",
		"GET " + good + " HTTP/1.1\r\n" + host + "1", "GET  " + good + " HTTP/1.1\r\n" + host, "GET " + good + "  HTTP/1.1\r\n" + host,
		"GET\t" + good + "\tHTTP/1.1\r\n" + host, " GET " + good + " HTTP/1.1\r\n" + host, "\r\nGET " + good + " HTTP/1.1\r\n" + host,
		"GET " + good + "a b HTTP/1.1\r\n" + host, "GET " + good + "\u00e4 HTTP/1.1\r\n" + host, "GET " + good + " HTTP/1.2\r\n" + host,
		"GET " + good + " HTTP/2.0\r\n" + host, "GET " + good + " http/1.1\r\n" + host, "GET " + good + "\r\n" + host, "PRI * HTTP/2.0\r\n" + host,
		"GET " + good + "#x HTTP/1.1\r\n" + host, "GET " + good + "?a#x HTTP/1.1\r\n" + host, "GET " + good + "\\x HTTP/1.1\r\n" + host,
		"GET " + good + "%zz HTTP/1.1\r\n" + host, "GET " + good + strings.Repeat("x", 8<<10) + " HTTP/1.1\r\n" + host,
		"GET / HTTP/1.1\r\n" + host, "GET * HTTP/1.1\r\n" + host, "OPTIONS * HTTP/1.1\r\n" + host, "GET " + at(rule) + " HTTP/1.1\r\n" + host,
		"GET //" + at(rule) + "/ HTTP/1.1\r\n" + host, "GET https://" + at(rule) + "/ HTTP/1.1\r\n" + host, "GET ftp://" + at(rule) + "/ HTTP/1.1\r\n" + host,
		"GET ws://" + at(rule) + "/ HTTP/1.1\r\n" + host, "GET file:///etc/passwd HTTP/1.1\r\n" + host, "GET http:///x HTTP/1.1\r\n" + host,
		"GET http://user:secret@" + at(rule) + "/ HTTP/1.1\r\n" + host, "GET http://" + at(rule) + "@evil.example/ HTTP/1.1\r\n" + host,
		"GET http:/" + at(rule) + "/ HTTP/1.1\r\n" + host, "GET http:\\\\" + at(rule) + "/ HTTP/1.1\r\n" + host,
		"TRACE " + good + " HTTP/1.1\r\n" + host, "TRACK " + good + " HTTP/1.1\r\n" + host, "G@T " + good + " HTTP/1.1\r\n" + host,
		strings.Repeat("M", 100) + " " + good + " HTTP/1.1\r\n" + host,
		"CONNECT " + good + " HTTP/1.1\r\n" + host, "CONNECT good.example HTTP/1.1\r\n" + host, "CONNECT / HTTP/1.1\r\n" + host,
		"CONNECT " + at(rule) + "/ HTTP/1.1\r\n" + host, "CONNECT " + at(rule) + " HTTP/1.1\r\nHost: evil.example",
		"CONNECT good.example:0 HTTP/1.1\r\n" + host, "CONNECT good.example:65536 HTTP/1.1\r\n" + host, "CONNECT good.example: HTTP/1.1\r\n" + host,
		"CONNECT user@" + at(rule) + " HTTP/1.1\r\n" + host, "CONNECT " + at(rule) + " HTTP/1.1\r\nContent-Length: 5\r\n" + host,
		"CONNECT " + at(rule) + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + host,
		"GET " + good + " HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" + host,
	} {
		try(h.dial(), text, text+"\r\n\r\nhello")
	}
	for _, text := range []string{
		"GET " + good + " HTTP/1.1\r\n" + host, "GET * HTTP/1.1\r\n" + host, "OPTIONS * HTTP/1.1\r\n" + host,
		"GET https://" + at(rule) + "/ HTTP/1.1\r\n" + host, "CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80", "GET /#x HTTP/1.1\r\n" + host,
	} {
		try(h.connect(at(rule)), "in a tunnel, "+text, text+"\r\n\r\n")
	}
}

// TestOtherHostInTunnel asks in a tunnel for another host of the same server.
func TestOtherHostInTunnel(t *testing.T) {
	rule := web(t, func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("the server was asked") })
	evil := rule
	evil.Host = "evil.example"
	h := start(t, []http.Rule{rule, evil}) // that a rule allows the other host changes nothing
	for _, host := range []string{at(evil), "evil.example", "good.example", "good.example:80", "sub." + at(rule), at(rule) + "/", at(rule) + "@" + at(evil)} {
		p := h.connect(at(rule))
		p.send("GET / HTTP/1.1", "Host: "+host)
		if status, text := p.answer("GET"); status != nethttp.StatusForbidden {
			t.Errorf("Host %s: status %d, %s", host, status, text)
		}
		if refused := h.refused(); !strings.Contains(refused, "the request in the tunnel names the host") {
			t.Errorf("Host %s: refused %s", host, refused)
		}
	}
}

// TestMalformedBodies sends bodies in chunks that are wrong. The server must not take what follows for a request.
func TestMalformedBodies(t *testing.T) {
	for name, content := range map[string]string{
		"a size that is too large":    "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
		"a negative size":             "-1\r\nhello\r\n0\r\n\r\n",
		"a prefix":                    "0x5\r\nhello\r\n0\r\n\r\n",
		"a bare LF after the size":    "5\nhello\r\n0\r\n\r\n",
		"a bare LF after the data":    "5\r\nhello\n0\r\n\r\n",
		"data beyond the size":        "5\r\nhello, world\r\n0\r\n\r\n",
		"an endless extension":        "5;" + strings.Repeat("x", 8<<10) + "\r\nhello\r\n0\r\n\r\n",
		"an endless trailer":          "0\r\n" + strings.Repeat("X-A: b\r\n", 8<<10) + "\r\n",
		"a trailer with a bare LF":    "0\r\nX-A: b\n\r\n",
		"an end in the middle":        "5\r\nhel",
		"a space before the size":     " 5\r\nhello\r\n0\r\n\r\n",
		"an extension with a bare LF": "5;a\nb\r\nhello\r\n0\r\n\r\n",
	} {
		var requests, incomplete counter
		server := httptest.NewServer(nethttp.HandlerFunc(func(_ nethttp.ResponseWriter, r *nethttp.Request) {
			requests.add(1)
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				incomplete.add(1)
			}
		}))
		rule := http.Rule{Scheme: "http", Host: "good.example", Port: port(t, server.URL), Addresses: loopback}
		h := start(t, []http.Rule{rule})
		p := h.dial()
		p.send("POST http://"+at(rule)+"/ HTTP/1.1", "Host: "+at(rule), "Transfer-Encoding: chunked\r\n\r\n"+content+"GET http://"+at(rule)+"/second HTTP/1.1", "Host: "+at(rule))
		_ = closeWrite(p.Conn)
		all := p.ended()
		_ = h.proxy.Close()
		server.Close() // it waits for requests
		if strings.Count(all, "HTTP/1.1 200") > 0 || requests.get() > 1 || requests.get() != incomplete.get() {
			t.Errorf("%s: %d requests, %d of them incomplete; got %q", name, requests.get(), incomplete.get(), all)
		}
	}
}

// TestForwarding compares what a client sends with what the server gets.
func TestForwarding(t *testing.T) {
	got := make(chan string, 1)
	rule := raw(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		request, err := nethttp.ReadRequest(in)
		if err != nil {
			return
		}
		var text bytes.Buffer
		fmt.Fprintf(&text, "%s %s %s\n", request.Method, request.RequestURI, request.Host)
		for _, name := range slices.Sorted(maps.Keys(request.Header)) {
			fmt.Fprintf(&text, "%s: %s\n", name, strings.Join(request.Header[name], " | "))
		}
		fmt.Fprintf(&text, "%d %v ", request.ContentLength, request.TransferEncoding)
		_, _ = io.Copy(&text, request.Body)
		fmt.Fprintf(&text, " %v", request.Trailer)
		got <- text.String()
		_, _ = io.WriteString(c, "HTTP/1.1 200 \xff\r\nContent-Length: 2\r\nConnection: x-private\r\nX-Private: a\r\nProxy-Authenticate: Basic\r\n"+
			"Proxy-Status: b\r\nKeep-Alive: timeout=5\r\nUpgrade: h2c\r\nTrailer: X-End\r\nX-Kept: c\r\n\r\nok")
	})
	h := start(t, []http.Rule{rule})
	p := h.dial()
	p.send("POST http://"+at(rule)+"/a//b/../c%2fd?e=%20&f=[] HTTP/1.1", "Host: "+at(rule), "Proxy-Connection: keep-alive", "Proxy-Authorization: Basic c2VjcmV0",
		"proxy-x: y", "Connection: close, X-Hop, te", "X-Hop: 1", "TE: trailers", "Keep-Alive: 5", "Upgrade: h2c", "HTTP2-Settings: AAM", "Trailer: X-End",
		"Expect: 100-continue", "Cookie: a=b", "Cookie: c=d", "Authorization: Bearer own", "User-Agent: test", "Accept-Encoding: gzip",
		"Transfer-Encoding: CHUNKED\r\n\r\n3;ext=1\r\nhel\r\n2\r\nlo\r\n0\r\nX-End: z")
	want := "POST /a//b/../c%2fd?e=%20&f=[] " + at(rule) + "\nAccept-Encoding: gzip\nAuthorization: Bearer own\nCookie: a=b | c=d\nUser-Agent: test\n-1 [chunked] hello map[]"
	if have := <-got; have != want {
		t.Errorf("the server got:\n%s\nwant:\n%s", have, want)
	}
	have := p.ended()
	if !strings.HasPrefix(have, "HTTP/1.1 100 Continue\r\n\r\n") {
		t.Errorf("the client got no 100: %s", have)
	}
	_, have, _ = strings.Cut(have, "\r\n\r\n")
	if want := "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\nX-Kept: c\r\n\r\nok"; have != want {
		t.Errorf("the client got:\n%q\nwant:\n%q", have, want)
	}
}

// quiet drops what net/http logs about servers.
func quiet(t *testing.T) {
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
}

// TestMalformedResponses has servers that lie about their responses. The client must not see a second response.
func TestMalformedResponses(t *testing.T) {
	quiet(t)
	ok := "HTTP/1.1 200 OK\r\n"
	for name, c := range map[string]struct{ sent, want string }{
		"not HTTP":                {"SSH-2.0-server\r\n", "502"},
		"nothing":                 {"", "502"},
		"two lengths":             {ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!", "502"},
		"a negative length":       {ok + "Content-Length: -2\r\n\r\nok", "502"},
		"a length and chunks":     {ok + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "200 hello"},
		"an unknown encoding":     {ok + "Transfer-Encoding: gzip\r\n\r\nok", "502"},
		"a huge head":             {ok + "X-A: " + strings.Repeat("b", 1<<20) + "\r\n\r\n", "502"},
		"a field without a name":  {ok + ": b\r\nContent-Length: 2\r\n\r\nok", "502"},
		"more than the length":    {ok + "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nevil!", "200 ok"},
		"a switch of protocols":   {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nsecret", "502"},
		"many informative heads":  {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n", 3) + ok + "Content-Length: 2\r\n\r\nok", "200 ok"},
		"until the end":           {ok + "\r\nok", "200 ok"},
		"a request for a login":   {"HTTP/1.1 407 Proxy\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n", "407 "},
		"a head that never ends":  {ok + "X-A: b\r\n", "502"},
		"an old version":          {"HTTP/1.0 200 OK\r\n\r\nok", "200 ok"},
		"no content, with length": {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "204 "},
	} {
		rule := raw(t, func(conn net.Conn) {
			if _, err := nethttp.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.WriteString(conn, c.sent)
			}
		})
		h := start(t, []http.Rule{rule})
		p := h.dial()
		p.send("GET http://"+at(rule)+"/ HTTP/1.1", "Host: "+at(rule), "Connection: close")
		status, text := p.answer("GET")
		have := fmt.Sprint(status, " ", text)
		if c.want == "502" {
			have, _, _ = strings.Cut(have, " ")
		}
		if have != c.want {
			t.Errorf("%s: have %q, want %q", name, have, c.want)
		}
		if rest := p.ended(); rest != "" {
			t.Errorf("%s: also got %q", name, rest)
		}
	}
}

// FuzzHead compares readHead with net/http: what it accepts, net/http reads in the same way.
func FuzzHead(f *testing.F) {
	for _, fields := range malformed {
		f.Add([]byte("POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\n" + fields + "\r\nhello"))
	}
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
	f.Add([]byte("CONNECT a:443 HTTP/1.0\r\n\r\n\x16\x03\x01"))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\nGET /"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReader(bytes.NewReader(data))
		h, err := readHead(in)
		if err != nil {
			return
		}
		for name := range h.forwarded() {
			if strings.HasPrefix(strings.ToLower(name), "proxy-") || slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Te", "Trailer"}, name) {
				t.Errorf("%s is forwarded", name)
			}
		}
		other := bufio.NewReader(bytes.NewReader(data))
		want, err := nethttp.ReadRequest(other)
		if err != nil {
			return // it is stricter about targets and Host, which are parsed later
		}
		if h.method != want.Method || h.target != want.RequestURI || h.length != want.ContentLength || h.minor != want.ProtoMinor {
			t.Errorf("have %s %s %d, net/http has %s %s %d", h.method, h.target, h.length, want.Method, want.RequestURI, want.ContentLength)
		}
		content, wrong := io.ReadAll(h.body(in))
		text, refused := io.ReadAll(want.Body)
		if wrong == nil && refused == nil && !bytes.Equal(content, text) {
			t.Errorf("the body is %q, for net/http %q", content, text)
		}
		if wrong == nil && refused != nil && !errors.Is(refused, io.ErrUnexpectedEOF) && !strings.Contains(refused.Error(), "railer") && !strings.Contains(refused.Error(), "malformed MIME") {
			t.Errorf("net/http refuses the body: %v", refused)
		}
		if wrong == nil && refused == nil {
			rest, _ := io.ReadAll(in)
			others, _ := io.ReadAll(other)
			if !bytes.Equal(rest, others) {
				t.Errorf("%q follows, for net/http %q", rest, others)
			}
		}
	})
}

// FuzzHello reads anything as a ClientHello.
func FuzzHello(f *testing.F) {
	f.Add([]byte("\x16\x03\x01\x00\x05noise"))
	f.Add(endless()[:1<<10])
	f.Fuzz(func(t *testing.T, data []byte) {
		_, seen, err := readHello(&memory{in: bytes.NewReader(data)})
		if err == nil && (!bytes.HasPrefix(data, seen) || len(seen) > maxHello || len(seen) < 5 || seen[0] != tlsHandshake) {
			t.Errorf("read %q of %q", seen, data)
		}
	})
}

// memory is a connection that reads from memory. Its other methods panic.
type memory struct {
	net.Conn
	in io.Reader
}

func (m *memory) Read(p []byte) (int, error) { return m.in.Read(p) }
