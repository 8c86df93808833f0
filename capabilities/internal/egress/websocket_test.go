package egress

import (
	"bufio"
	"io"
	"net"
	nethttp "net/http"
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities/http"
)

var upgrade = []string{"Connection: keep-alive, Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"}

// echoing is a server of WebSockets, more or less.
func echoing(w nethttp.ResponseWriter, r *nethttp.Request) {
	if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" || r.Header.Get("Sec-Websocket-Key") == "" {
		nethttp.Error(w, "no WebSocket", nethttp.StatusUpgradeRequired)
		return
	}
	conn, in, err := w.(nethttp.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nhello ")
	_, _ = io.Copy(conn, in)
}

// speak uses a WebSocket whose handshake was sent.
func speak(t *testing.T, p net.Conn, in *bufio.Reader) {
	t.Helper()
	response, err := nethttp.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != nethttp.StatusSwitchingProtocols || response.Header.Get("Upgrade") != "websocket" || response.Header.Get("Sec-Websocket-Accept") != "x" {
		t.Fatalf("got %s %v", response.Status, response.Header)
	}
	_, _ = io.WriteString(p, "\x00frames\xff")
	got := make([]byte, len("hello \x00frames\xff"))
	if _, err := io.ReadFull(in, got); err != nil || string(got) != "hello \x00frames\xff" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestWebSocket opens WebSockets without TLS: as browsers do, in a tunnel, and in absolute form.
func TestWebSocket(t *testing.T) {
	rule := web(t, echoing)
	h := start(t, []http.Rule{rule})
	p := h.connect(at(rule))
	p.send(append([]string{"GET /chat HTTP/1.1", "Host: " + at(rule)}, upgrade...)...)
	speak(t, p, p.in)
	p = h.dial()
	p.send(append([]string{"GET http://" + at(rule) + "/chat HTTP/1.1", "Host: " + at(rule)}, upgrade...)...)
	speak(t, p, p.in)
}

// TestOtherUpgrades asks for connections that would carry requests the proxy does not see.
func TestOtherUpgrades(t *testing.T) {
	rule := web(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		_, _ = io.WriteString(w, "upgrade "+r.Header.Get("Upgrade")+r.Header.Get("Http2-Settings")+r.Header.Get("Connection"))
	})
	h := start(t, []http.Rule{rule})
	for _, lines := range [][]string{
		{"GET http://" + at(rule) + "/ HTTP/1.1", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"},
		{"GET http://" + at(rule) + "/ HTTP/1.1", "Connection: Upgrade", "Upgrade: TLS/1.0, HTTP/1.1"},
		{"GET http://" + at(rule) + "/ HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket, h2c"},
		{"GET http://" + at(rule) + "/ HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket", "Upgrade: h2c"},
		{"GET http://" + at(rule) + "/ HTTP/1.1", "Upgrade: websocket"},
		{"POST http://" + at(rule) + "/ HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket"},
		{"GET http://" + at(rule) + "/ HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket", "Content-Length: 1\r\n\r\nx"},
	} {
		p := h.dial()
		p.send(append([]string{lines[0], "Host: " + at(rule)}, lines[1:]...)...)
		if status, text := p.answer("GET"); status != nethttp.StatusOK || text != "upgrade " {
			t.Errorf("%s: status %d, %s", lines, status, text)
		}
	}
	for _, answer := range []string{"Upgrade: h2c", "Upgrade: websocket, h2c", "X-None: x"} {
		rule := raw(t, func(c net.Conn) {
			if _, err := nethttp.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"+answer+"\r\n\r\nsecret")
			}
		})
		h := start(t, []http.Rule{rule})
		p := h.dial()
		p.send(append([]string{"GET http://" + at(rule) + "/ HTTP/1.1", "Host: " + at(rule)}, upgrade...)...)
		if have := p.ended(); !strings.HasPrefix(have, "HTTP/1.1 502 ") || strings.Contains(have, "secret") {
			t.Errorf("%s: got %q", answer, have)
		}
	}
}
