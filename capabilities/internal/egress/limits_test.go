package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/http"
)

// held starts a server that answers nothing, and reports each connection.
func held(t *testing.T) (http.Rule, chan struct{}) {
	reached := make(chan struct{}, 100)
	return raw(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		reached <- struct{}{}
		_, _ = io.Copy(io.Discard, c)
	}), reached
}

// states brings connections of a proxy into each state in which they can be. The rule is for http and https.
func states(t *testing.T, h *harness, rule http.Rule, reached chan struct{}) map[string]*peer {
	t.Helper()
	host := "Host: " + at(rule)
	open := map[string]*peer{
		"connected": h.dial(), "in a head": h.dial(), "in a body": h.dial(), "waiting for a response": h.dial(),
		"before a handshake": h.connect(at(rule)), "in a ClientHello": h.connect(at(rule)), "in a tunnel": h.connect(at(rule)),
		"waiting for a response in a tunnel": h.connect(at(rule)), "before a request in a tunnel": h.connect(at(rule)),
	}
	_, _ = io.WriteString(open["in a head"], "GET http://")
	open["in a body"].send("POST http://"+at(rule)+"/ HTTP/1.1", host, "Content-Length: 10\r\n\r\nhello")
	<-reached
	open["waiting for a response"].send("GET http://"+at(rule)+"/ HTTP/1.1", host)
	<-reached
	_, _ = io.WriteString(open["in a ClientHello"], "\x16\x03\x01\x01\x00")
	_, _ = open["in a tunnel"].Write(hello(t, "good.example"))
	<-reached
	open["waiting for a response in a tunnel"].send("GET / HTTP/1.1", host)
	<-reached
	return open
}

// TestCloseEndsEverything closes a proxy, or ends its context, while connections are in all states.
func TestCloseEndsEverything(t *testing.T) {
	for name, end := range map[string]func(*Proxy, context.CancelFunc){
		"Close":           func(p *Proxy, _ context.CancelFunc) { _ = p.Close() },
		"the context":     func(_ *Proxy, cancel context.CancelFunc) { cancel() },
		"Close and again": func(p *Proxy, _ context.CancelFunc) { _ = p.Close(); _ = p.Close() },
	} {
		rule, reached := held(t)
		h := start(t, []http.Rule{rule, encrypted(rule)})
		ctx, cancel := context.WithCancel(t.Context())
		h.options.Limits = Limits{}
		proxy, err := New(ctx, h.options)
		if err != nil {
			t.Fatal(err)
		}
		l := listen(t)
		served := make(chan error, 1)
		go func() { served <- proxy.Serve(l) }()
		h.at = l.Addr().String()
		open := states(t, h, rule, reached)
		end(proxy, cancel)
		for state, p := range open {
			if have := p.ended(); have != "" {
				t.Errorf("%s: %s got %q", name, state, have)
			}
		}
		if err := <-served; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := proxy.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		late := listen(t)
		if err := proxy.Serve(late); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := late.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: a listener stays open: %v", name, err)
		}
		if len(proxy.open) != 0 || len(proxy.places) != 0 {
			t.Errorf("%s: %d open, %d places taken", name, len(proxy.open), len(proxy.places))
		}
		cancel()
	}
}

// TestTimeLimits lets connections in all states do nothing.
func TestTimeLimits(t *testing.T) {
	for name, limits := range map[string]Limits{"idle": {Idle: 100 * time.Millisecond}, "total": {Total: 300 * time.Millisecond}} {
		rule, reached := held(t)
		h := start(t, []http.Rule{rule, encrypted(rule)}, func(h *harness) { h.options.Limits = limits })
		for state, p := range states(t, h, rule, reached) {
			if have := p.ended(); have != "" {
				t.Errorf("%s: %s got %q", name, state, have)
			}
		}
	}
}

// TestTotalEndsActive ends a tunnel that always carries something.
func TestTotalEndsActive(t *testing.T) {
	rule := web(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.Copy(w, zeros{}) })
	h := start(t, []http.Rule{rule}, func(h *harness) { h.options.Limits = Limits{Total: 100 * time.Millisecond, Bytes: 1 << 40} })
	p := h.dial()
	p.send("GET http://"+at(rule)+"/ HTTP/1.1", "Host: "+at(rule))
	_, _ = io.Copy(io.Discard, p)
	if _, err := p.Write([]byte("x")); err == nil {
		_, err = p.Read(make([]byte, 1))
		if err == nil {
			t.Error("the connection did not end")
		}
	}
}

// TestSlowHeads sends heads that never end, a byte at a time.
func TestSlowHeads(t *testing.T) {
	rule, _ := held(t)
	h := start(t, []http.Rule{rule, encrypted(rule)}, func(h *harness) { h.options.Limits.Head = 100 * time.Millisecond })
	for _, name := range []string{"a head", "a ClientHello", "a head in a tunnel"} {
		p := h.dial()
		if name != "a head" {
			p = h.connect(at(rule))
		}
		var sending sync.WaitGroup
		sending.Go(func() {
			text := "GET http://" + strings.Repeat("a", 1<<30>>15)
			if name == "a ClientHello" {
				text = string(endless())
			}
			ticks := time.NewTicker(5 * time.Millisecond) // far less than a head may take
			defer ticks.Stop()
			for _, c := range []byte(text) {
				if _, err := p.Write([]byte{c}); err != nil {
					return
				}
				<-ticks.C
			}
		})
		have := p.ended()
		_ = p.Close()
		sending.Wait()
		if (name == "a ClientHello") != (have == "") || have != "" && !strings.HasPrefix(have, "HTTP/1.1 408 ") {
			t.Errorf("%s: got %q", name, have)
		}
	}
}

// TestManyConnections opens 10,000 connections that do nothing. All but the allowed ones end, and take no memory.
func TestManyConnections(t *testing.T) {
	const allowed, all = 256, 10_000
	h := start(t, nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	open := make([]net.Conn, all)
	for i := range open {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.at)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		open[i] = conn
	}
	closed := 0
	for _, conn := range open[allowed:] {
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			closed++
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if closed != all-allowed || len(h.proxy.places) != allowed {
		t.Errorf("%d connections ended, %d places are taken", closed, len(h.proxy.places))
	}
	refusals := h.taken()
	if len(refusals) != all-allowed || refusals[0].Error() != "exhausted: connections to the proxy: 256" {
		t.Errorf("%d refusals, the first: %v", len(refusals), refusals[:min(1, len(refusals))])
	}
	if grown := int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse); grown > 16<<20 {
		t.Errorf("the connections take %d bytes", grown)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
}

// TestPlacesComeBack uses more connections than are allowed at a time, one after another.
func TestPlacesComeBack(t *testing.T) {
	rule := web(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	h := start(t, []http.Rule{rule}, func(h *harness) { h.options.Limits.Connections = 1 })
	for range 20 {
		for status := 0; status != nethttp.StatusOK; { // the proxy may still end the last connection
			p := h.dial()
			p.send("GET http://"+at(rule)+"/ HTTP/1.1", "Host: "+at(rule), "Connection: close")
			status, _ = p.answer("GET")
			_ = p.Close()
		}
	}
}

// TestClientLeaves checks that a request ends when its client leaves.
func TestClientLeaves(t *testing.T) {
	reached, left := make(chan struct{}), make(chan struct{})
	rule := web(t, func(_ nethttp.ResponseWriter, r *nethttp.Request) {
		close(reached)
		<-r.Context().Done()
		close(left)
	})
	h := start(t, []http.Rule{rule})
	p := h.dial()
	p.send("GET http://"+at(rule)+"/ HTTP/1.1", "Host: "+at(rule))
	<-reached
	_ = p.Close()
	<-left
}

// TestKeepAlive sends many requests over one connection, some at once.
func TestKeepAlive(t *testing.T) {
	rule := web(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		text, _ := io.ReadAll(r.Body)
		w.(nethttp.Flusher).Flush() // so that the length is unknown
		_, _ = w.Write(text)
		_, _ = io.WriteString(w, r.URL.Path)
	})
	h := start(t, []http.Rule{rule})
	p := h.dial()
	for i := range 20 {
		request := fmt.Sprintf("POST http://%s/%d HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n%02d\r\n0\r\n\r\n", at(rule), i, at(rule), i)
		_, _ = io.WriteString(p, request+"GET http://"+at(rule)+"/second HTTP/1.1\r\nHost: "+at(rule)+"\r\n\r\n")
		if status, text := p.answer("POST"); status != nethttp.StatusOK || text != fmt.Sprintf("%02d/%d", i, i) {
			t.Fatalf("request %d: status %d, %q", i, status, text)
		}
		if status, text := p.answer("GET"); status != nethttp.StatusOK || text != "/second" {
			t.Fatalf("second request %d: status %d, %q", i, status, text)
		}
	}
	p.send("HEAD http://"+at(rule)+"/ HTTP/1.0", "Host: "+at(rule))
	if have := p.ended(); !strings.HasPrefix(have, "HTTP/1.1 200 OK\r\nConnection: close\r\n") || !strings.HasSuffix(have, "\r\n\r\n") {
		t.Errorf("got %q", have)
	}
}

// TestEventStream reads parts of a response while it arrives.
func TestEventStream(t *testing.T) {
	next := make(chan struct{})
	rule := web(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			w.(nethttp.Flusher).Flush()
			<-next
		}
	})
	h := start(t, []http.Rule{rule})
	p := h.dial()
	p.send("GET http://"+at(rule)+"/ HTTP/1.1", "Host: "+at(rule))
	response, err := nethttp.ReadResponse(p.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) || !lines.Scan() {
			t.Fatalf("event %d: %q", i, lines.Text())
		}
		next <- struct{}{}
	}
}
