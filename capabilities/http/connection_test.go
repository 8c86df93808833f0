package http

import (
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
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/stilehost/stile/abi"
)

// frame is an HTTP/2 frame.
func frame(kind, flags, stream byte, payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, stream}) + payload
}

// The frame types.
const (
	frameData, frameHeaders, framePriority, frameSettings, framePing, frameGoAway, frameWindow, frameContinuation = 0, 1, 2, 4, 6, 7, 8, 9
)

// flood is a response that costs more than its content.
type flood struct {
	name             string
	begin, unit, end string        // unit is sent repeatedly
	plain            bool          // without TLS, and so over HTTP/1.1
	record           int           // bytes of a write, if not 16 KiB
	most             uint16        // version of TLS
	perByte          time.Duration // must be charged
}

func floods() []flood {
	settings, status := frame(frameSettings, 0, 0, ""), "\x88" // an indexed ":status: 200"
	open, done := settings+frame(frameHeaders, 4, 1, status), frame(frameData, 1, 1, "")
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	headers := func(block string) string { return frame(frameHeaders, 4, 3, block) }
	all := []flood{
		{name: "pings", unit: frame(framePing, 0, 0, " a ping "), perByte: frameWork + writeWork/17},
		{name: "settings", unit: settings, perByte: frameWork + writeWork/9},
		{name: "window sizes", unit: frame(frameSettings, 0, 0, strings.Repeat("\x00\x04\x00\x01\x00\x00", 2700))},
		{name: "windows", unit: frame(frameWindow, 0, 0, "\x00\x00\x00\x01")},
		{name: "windows of the stream", unit: frame(frameWindow, 0, 1, "\x00\x00\x00\x01")},
		{name: "empty data", unit: frame(frameData, 0, 1, "")},
		{name: "small data", unit: frame(frameData, 0, 1, "x"), perByte: frameWork * 8 / 10},
		{name: "padding", unit: frame(frameData, 8, 1, "\x00")},
		{name: "priorities", unit: frame(framePriority, 0, 3, "\x00\x00\x00\x00\x01")},
		{name: "unknown frames", unit: frame(99, 0, 0, "")},
		{name: "goaways", unit: frame(frameGoAway, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x00")},
		{name: "empty headers", unit: headers("")},
		{name: "static headers", unit: headers(strings.Repeat("\x90", 1200))},
		{name: "indexed headers", unit: headers(strings.Repeat("\x40\x01a\x00", 1000))},
		{name: "dynamic headers", unit: headers("\x40\x01a\x01b" + strings.Repeat("\xbe", 1400))},
		{name: "compressed headers", unit: headers(strings.Repeat("\x40\x81\x1f\x81\x1f", 1000))},
		{name: "continuations", begin: settings + frame(frameHeaders, 0, 1, status), unit: frame(frameContinuation, 0, 1, ""), end: frame(frameContinuation, 4, 1, "") + done},
		{name: "small records", unit: frame(frameData, 0, 1, "x"), record: 1, perByte: 20 * frameWork},
		{name: "small records of TLS 1.2", unit: frame(frameData, 0, 1, "x"), record: 1, most: tls.VersionTLS12, perByte: 20 * frameWork},
		{name: "chunks", plain: true, begin: chunked, unit: "1\r\nx\r\n", end: "0\r\n\r\n", perByte: byteWork * 8 / 10},
		{name: "chunks with extensions", plain: true, begin: chunked, unit: "1;aaaaaaaaaa\r\nx\r\n", end: "0\r\n\r\n", perByte: byteWork * 8 / 10},
		{name: "small writes", plain: true, begin: chunked, unit: "1\r\nx\r\n", record: 1, end: "0\r\n\r\n", perByte: byteWork * 8 / 10},
	}
	for i := range all {
		f := &all[i]
		if f.begin == "" {
			f.begin, f.end = open, done
		}
		if f.perByte == 0 {
			f.perByte = frameWork
		}
		if f.record == 0 {
			f.record = 16 << 10
		}
	}
	return all
}

// server sends floods on one connection.
type server struct {
	at    uint16
	roots *x509.CertPool
	sent  int          // after wait
	err   error        // of writing, after wait
	took  atomic.Int64 // processor time in ns, after wait; only on Linux
	close func() error
	all   sync.WaitGroup
}

// serve starts a server of total bytes.
func (f flood) serve(t *testing.T, total int) *server {
	certified := httptest.NewUnstartedServer(nil)
	certified.Config.ErrorLog = log.New(io.Discard, "", 0)
	certified.StartTLS()
	certified.Close()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{at: port(t, listener.Addr()), close: listener.Close}
	if !f.plain {
		s.roots = x509.NewCertPool()
		s.roots.AddCert(certified.Certificate())
	}
	t.Cleanup(s.wait)
	s.measured(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_ = conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
		if !f.plain {
			conn = tls.Server(conn, &tls.Config{
				Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12, MaxVersion: f.most, DynamicRecordSizingDisabled: true,
			})
		}
		if err := f.await(conn); err != nil {
			return
		}
		var reading sync.WaitGroup
		defer reading.Wait() // until the client closes the connection
		reading.Add(1)
		s.measured(func() {
			defer reading.Done()
			_, _ = io.Copy(io.Discard, conn)
		})
		write := func(text string) {
			for len(text) > 0 && s.err == nil {
				n := min(f.record, len(text))
				_, s.err = io.WriteString(conn, text[:n])
				text = text[n:]
			}
		}
		write(f.begin)
		part := strings.Repeat(f.unit, max(1, f.record/len(f.unit)))
		for ; s.sent < total && s.err == nil; s.sent += len(part) {
			write(part)
		}
		write(f.end)
	})
	return s
}

func (s *server) measured(do func()) {
	s.all.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		since := threadTime()
		do()
		s.took.Add(int64(threadTime() - since))
	})
}

// await reads the start of a request.
func (f flood) await(conn net.Conn) error {
	if f.plain {
		_, err := conn.Read(make([]byte, 1))
		return err
	}
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	for frames := http2.NewFramer(nil, conn); ; {
		read, err := frames.ReadFrame()
		if err != nil || read.Header().Type == http2.FrameHeaders {
			return err
		}
	}
}

// wait ends the server. It is called again at the end of a test.
func (s *server) wait() {
	_ = s.close()
	s.all.Wait()
}

// work counts what is charged.
type work struct{ ns atomic.Int64 }

// add is for [abi.WithWork].
func (w *work) add(took time.Duration) error {
	w.ns.Add(int64(took))
	return nil
}

func (w *work) all() time.Duration { return time.Duration(w.ns.Load()) }

// charging returns a client for example.com whose work is charged, and a URL. Without roots, it does not use TLS.
func charging(t *testing.T, at uint16, roots *x509.CertPool, charge func(time.Duration) error) (*Client, string) {
	rule, scheme := Rule{Host: "example.com", Port: at, Path: "/**", Addresses: loopback}, "https"
	if roots == nil {
		rule.Scheme, scheme = "http", "http"
	}
	c := client(t, Options{Rules: []Rule{rule}, RootCAs: roots, Resolver: resolver(map[string]string{"example.com": "127.0.0.1"})})
	opened, err := c.grant.Open(abi.WithWork(t.Context(), charge))
	if err != nil {
		t.Fatal(err)
	}
	return opened.(*Client), fmt.Sprintf("%s://example.com:%d/", scheme, at)
}

// TestFloods has servers send data that causes work and has no content. All of it is charged.
func TestFloods(t *testing.T) {
	quiet(t)
	const total = 64 << 10
	for _, f := range floods() {
		t.Run(f.name, func(t *testing.T) {
			var charged work
			s := f.serve(t, total)
			c, url := charging(t, s.at, s.roots, charged.add)
			if have := do(t, c, Request{Method: "GET", URL: url}); have.err != nil {
				t.Fatal(have.err)
			}
			c.grant.CloseIdleConnections()
			if s.wait(); charged.all() < time.Duration(s.sent)*f.perByte {
				t.Errorf("%v were charged for %d bytes", charged.all(), s.sent)
			}
		})
	}
}

// TestFloodsEnd has the same servers never stop. The client reads until the call has no processor time left, and no further.
func TestFloodsEnd(t *testing.T) {
	quiet(t)
	for _, f := range floods() {
		t.Run(f.name, func(t *testing.T) {
			s := f.serve(t, 1<<30)
			var left atomic.Int64
			left.Store(int64(150 * time.Millisecond)) // more than the handshake, on a slow machine too
			c, url := charging(t, s.at, s.roots, func(took time.Duration) error {
				if left.Add(-int64(took)) < 0 {
					return errors.New("nothing is left")
				}
				return nil
			})
			have := do(t, c, Request{Method: "GET", URL: url})
			wantError(t, have.err, abi.ErrExhausted, "processor time of the call, to read what the server sends: nothing is left")
			if over := time.Duration(-left.Load()); over > 6*maxBuffered*frameWork {
				t.Errorf("%v more were charged", over)
			}
			s.wait() // the connection ends too, now that no exchange uses it
		})
	}
}

// TestManyFloodsEnd has a call with many exchanges, to each of which a byte comes at a time. What is not charged yet does not grow with
// their number.
func TestManyFloodsEnd(t *testing.T) {
	const exchanges = 60
	for _, protocol := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP %d", protocol), func(t *testing.T) {
			server := httptest.NewUnstartedServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
				control := nethttp.NewResponseController(w)
				for r.Context().Err() == nil {
					if _, err := w.Write([]byte("x")); err != nil || control.Flush() != nil {
						return
					}
				}
			}))
			server.EnableHTTP2 = protocol == 2
			server.StartTLS()
			defer server.Close()
			roots := x509.NewCertPool()
			roots.AddCert(server.Certificate())
			var left atomic.Int64
			left.Store(int64(exchanges*2*handshakeWork + 500*time.Millisecond))
			c, url := charging(t, port(t, server.Listener.Addr()), roots, func(took time.Duration) error {
				if left.Add(-int64(took)) < 0 {
					return errors.New("nothing is left")
				}
				return nil
			})
			var all sync.WaitGroup
			for range exchanges {
				all.Go(func() {
					if have := do(t, c, Request{Method: "GET", URL: url}); have.err == nil {
						t.Error("a body without end has ended")
					}
				})
			}
			all.Wait()
			c.grant.CloseIdleConnections()
			if over := time.Duration(-left.Load()); over > maxAhead+exchanges*2*maxSpent {
				t.Errorf("%v more were charged", over)
			}
		})
	}
}

// TestFloodsBetweenExchanges has a server send pings after its response is complete.
func TestFloodsBetweenExchanges(t *testing.T) {
	f := floods()[0]
	f.begin += f.end
	s := f.serve(t, 1<<30)
	c, url := charging(t, s.at, s.roots, func(time.Duration) error { return nil })
	if have := do(t, c, Request{Method: "GET", URL: url}); have.err != nil {
		t.Fatal(have.err)
	}
	if s.wait(); s.err == nil {
		t.Error("the connection stayed open")
	}
}

// TestContentIsNotWork sends only content. Little is charged for the connection.
func TestContentIsNotWork(t *testing.T) {
	const total = 1 << 20
	for _, protocol := range []int{1, 2} {
		server := httptest.NewUnstartedServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
			if r.ProtoMajor != protocol {
				t.Errorf("the request came over %s", r.Proto)
			}
			_, _ = w.Write(make([]byte, total))
		}))
		server.EnableHTTP2 = protocol == 2
		server.StartTLS()
		defer server.Close()
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		var charged work
		c, url := charging(t, port(t, server.Listener.Addr()), roots, charged.add)
		var before time.Duration
		for range 2 { // the second needs no handshake
			before = charged.all()
			if have := do(t, c, Request{Method: "GET", URL: url}); have.err != nil {
				t.Fatal(have.err)
			}
		}
		if took := charged.all() - before; took > total*frameWork/2 {
			t.Errorf("HTTP/%d: %v were charged", protocol, took)
		}
	}
}

// TestManyAddresses has a name with as many addresses as a DNS answer can have. The time to check them is charged.
func TestManyAddresses(t *testing.T) {
	at := serve(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	names := resolver(nil)
	many := make([]netip.Addr, 4000)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	names.answers["good.example"] = [][]netip.Addr{many}
	var charged work
	opened, err := client(t, Options{Rules: []Rule{good(at)}, Resolver: names}).grant.Open(abi.WithWork(t.Context(), charged.add))
	if err != nil {
		t.Fatal(err)
	}
	if have := do(t, opened.(*Client), get(at, "/")); have.err != nil {
		t.Fatal(have.err)
	}
	if charged.all() < time.Duration(len(many))*addressWork {
		t.Errorf("%v were charged", charged.all())
	}
}

// quiet drops net/http's log lines about unknown frames.
func quiet(t *testing.T) {
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
}
