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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
)

// TestHeadsAreCharged has a head of many short fields, which take far more time than their size suggests.
func TestHeadsAreCharged(t *testing.T) {
	const fields = 5000
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		for i := range fields {
			w.Header()[fmt.Sprintf("A%x", i)] = []string{""}
		}
		if r.URL.Path == "/again" {
			nethttp.Redirect(w, r, "/", nethttp.StatusFound)
		}
	})
	for _, c := range []struct {
		path  string
		heads int64
	}{{"/", 1}, {"/again", 2}} {
		var charged work
		ctx := abi.WithWork(t.Context(), charged.add)
		grant, err := New(Options{Rules: []Rule{good(at)}, Resolver: resolver(map[string]string{"good.example": "127.0.0.1"})})
		if err != nil {
			t.Fatal(err)
		}
		defer grant.CloseIdleConnections()
		opened, err := grant.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		e, err := opened.(*Client).Start(ctx, get(at, c.path))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Head(ctx); err != nil {
			t.Fatal(err)
		}
		_ = e.Close()
		if charged.all() < time.Duration(c.heads*fields)*fieldWork {
			t.Errorf("%s: %v were charged", c.path, charged.all())
		}
	}
}

// TestManyParameters has a media type with thousands of parameters, which is not parsed.
func TestManyParameters(t *testing.T) {
	long := "text/plain"
	for i := range 9000 {
		long += fmt.Sprintf(";%x=b", i)
	}
	if made := testing.AllocsPerRun(1, func() {
		if kind := mediaType(long); kind != "" {
			t.Errorf("the type is %.20s", kind)
		}
	}); made > 0 {
		t.Errorf("it took %v allocations", made)
	}
	if kind := mediaType("text/plain; charset=utf-8"); kind == "" || mediaType("text plain") != "" {
		t.Error(kind)
	}
}

// TestServerThatReadsNothing has an HTTP/2 server send a head, and then pings whose answers it does not read.
func TestServerThatReadsNothing(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.Config.ErrorLog = log.New(io.Discard, "", 0)
	certified.StartTLS()
	defer certified.Close()
	// Set before there are connections, so that few answers fit on the way.
	small := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		return errors.Join(err, failed)
	}}
	listener, err := small.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer func() { _ = listener.Close() }()
	all.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		secure := tls.Server(conn, &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
		if _, err := secure.Read(make([]byte, 1)); err != nil {
			return
		}
		// SETTINGS, and HEADERS of stream 1 with :status 200.
		if _, err := secure.Write([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88")); err != nil {
			return
		}
		ping := []byte("\x00\x00\x08\x06\x00\x00\x00\x00\x00 a ping ")
		for range 10 {
			ping = append(ping, ping...)
		}
		for err == nil {
			_, err = secure.Write(ping)
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	at := port(t, listener.Addr())
	c := client(t, Options{
		Rules: []Rule{{Host: "example.com", Port: at, Path: "/**", Addresses: loopback}}, RootCAs: roots,
		Resolver: resolver(map[string]string{"example.com": "127.0.0.1"}), Timeout: time.Second, Timeouts: Timeouts{Stall: time.Second},
	})
	e, err := c.Start(t.Context(), Request{Method: "GET", URL: fmt.Sprintf("https://example.com:%d/", at)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Text(t.Context(), 100); err == nil {
		t.Error("there is a body")
	}
	_ = e.Close() // if its writes did not end, the exchange would last as long as the server likes
}
