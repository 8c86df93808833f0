package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	nethttp "net/http"
	"slices"
	"strings"
	"sync"
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
	client, server := net.Pipe()
	defer func() { _ = server.Close() }()
	config := &tls.Config{ServerName: name, NextProtos: protocols, InsecureSkipVerify: name == "", MinVersion: tls.VersionTLS12}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(client, config).HandshakeContext(t.Context()) // it waits for an answer until the pipe is closed
	}()
	_, bytes, err := readHello(server)
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	<-done
	return bytes
}

// fragments splits the message of a record into records of n bytes.
func fragments(record []byte, n int) (split []byte) {
	for part := range slices.Chunk(record[5:], n) {
		split = append(split, record[0], record[1], record[2], byte(len(part)>>8), byte(len(part)))
		split = append(split, part...)
	}
	return split
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
		_ = p.Close()
	}
}

// TestHelloInPieces sends a ClientHello byte by byte, in records of one byte, and with the request for the tunnel.
func TestHelloInPieces(t *testing.T) {
	whole := hello(t, "good.example", "h2", "http/1.1")
	received := make(chan []byte, 1)
	rule := encrypted(raw(t, func(c net.Conn) {
		all, _ := io.ReadAll(c)
		received <- all
	}))
	h := start(t, []http.Rule{rule})
	for name, sent := range map[string][]byte{"whole": whole, "records of a byte": fragments(whole, 1), "records of 100 bytes": fragments(whole, 100)} {
		for _, step := range []int{1, 7, len(sent)} {
			p := h.connect(at(rule))
			for part := range slices.Chunk(sent, step) {
				if _, err := p.Write(part); err != nil {
					t.Fatalf("%s in steps of %d: %v", name, step, err)
				}
			}
			_ = closeWrite(p.Conn)
			if have := <-received; !bytes.Equal(have, sent) {
				t.Errorf("%s in steps of %d: the server got %d bytes of %d", name, step, len(have), len(sent))
			}
		}
	}
	p := h.dial()
	_, _ = p.Write(append([]byte("CONNECT "+at(rule)+" HTTP/1.1\r\nHost: "+at(rule)+"\r\n\r\n"), whole...))
	if status, text := p.answer("CONNECT"); status != nethttp.StatusOK {
		t.Fatalf("status %d, %s", status, text)
	}
	_ = closeWrite(p.Conn)
	if have := <-received; !bytes.Equal(have, whole) {
		t.Errorf("the server got %d bytes of %d", len(have), len(whole))
	}
}

// TestOtherProtocols starts a tunnel for https with something else. Neither side may learn anything of the other.
func TestOtherProtocols(t *testing.T) {
	whole := hello(t, "good.example")
	received := make(chan string, 1)
	rule := encrypted(raw(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "SSH-2.0-server\r\n")
		all, _ := io.ReadAll(c)
		received <- string(all)
	}))
	h := start(t, []http.Rule{rule})
	for name, sent := range map[string]string{
		"HTTP":               "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n",
		"HTTP/2":             "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"SSH":                "SSH-2.0-client\r\n",
		"SMTP":               "EHLO good.example\r\n",
		"SSL 2":              "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + strings.Repeat("x", 37),
		"a TLS alert":        "\x15\x03\x01\x00\x02\x01\x00",
		"TLS data":           "\x17\x03\x03\x00\x05hello",
		"a record of noise":  "\x16\x03\x01\x00\x05noise",
		"a ServerHello":      "\x16\x03\x01\x00\x06\x02\x00\x00\x02\x03\x03",
		"only a first byte":  "\x16",
		"a cut ClientHello":  string(whole[:len(whole)-1]),
		"an endless hello":   string(endless()),
		"nothing":            "",
		"an endless nothing": strings.Repeat("\x16\x03\x01\x00\x00", 1000),
		"HTTP in a record":   "\x16\x03\x01\x00\x10GET / HTTP/1.1\r\n",
	} {
		p := h.connect(at(rule))
		_, _ = io.WriteString(p, sent) // the proxy may have closed already
		_ = closeWrite(p.Conn)
		if have := p.ended(); have != "" {
			t.Errorf("%s: the client got %q", name, have)
		}
		if have := <-received; have != "" {
			t.Errorf("%s: the server got %q", name, have)
		}
		if refused := h.refused(); !strings.Contains(refused, "does not begin with a TLS handshake") && sent != "" {
			t.Errorf("%s: refused %q", name, refused)
		}
	}
}

// endless is the start of a ClientHello of 16 MiB.
func endless() []byte {
	message := append([]byte{1, 0xff, 0xff, 0xff}, make([]byte, 1<<20)...)
	return fragments(append([]byte{0x16, 3, 1, 0, 0}, message...), 1<<14)
}

// TestHalfClosed ends one direction of a tunnel. The other continues.
func TestHalfClosed(t *testing.T) {
	first := hello(t, "good.example")
	rule := encrypted(raw(t, func(c net.Conn) {
		all, _ := io.ReadAll(c)
		_, _ = c.Write(append([]byte("goodbye to "), all[len(first):]...))
	}))
	h := start(t, []http.Rule{rule})
	p := h.connect(at(rule))
	_, _ = p.Write(append(first, "ada"...))
	_ = closeWrite(p.Conn)
	if have := p.ended(); have != "goodbye to ada" {
		t.Errorf("the client got %q", have)
	}
}

// TestBytesAreExact lets many tunnels carry all they can. Together they carry what the limit says.
func TestBytesAreExact(t *testing.T) {
	first := hello(t, "good.example")
	for name, serve := range map[string]func(net.Conn){
		"up":   func(net.Conn) {},
		"down": func(c net.Conn) { _, _ = io.Copy(c, zeros{}) },
		"both": func(c net.Conn) { _, _ = io.CopyN(c, zeros{}, 300_000) },
	} {
		t.Run(name, func(t *testing.T) {
			var up, down, charged counter
			rule := encrypted(raw(t, func(c net.Conn) {
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = io.Copy(&up, c)
				}()
				serve(c)
				if name == "up" || name == "both" {
					<-done
				}
				_ = c.Close()
				<-done
			}))
			const limit = 3_141_593
			h := start(t, []http.Rule{rule}, func(h *harness) {
				h.options.Limits.Bytes = limit
				h.options.Charge = func(n int) error { charged.add(n); return nil }
			})
			var tunnels sync.WaitGroup
			open := make([]*peer, 16)
			for i := range open {
				open[i] = h.connect(at(rule))
			}
			for _, p := range open {
				tunnels.Go(func() {
					_, _ = p.Write(first)
					if name != "down" {
						tunnels.Go(func() { _, _ = io.Copy(p.Conn, zeros{}) })
					}
					_, _ = io.Copy(&down, p)
				})
			}
			tunnels.Wait()
			p := h.dial()
			p.send("CONNECT "+at(rule)+" HTTP/1.1", "Host: "+at(rule))
			if status, _ := p.answer("CONNECT"); status != nethttp.StatusServiceUnavailable {
				t.Errorf("afterwards, a tunnel is answered with %d", status)
			}
			_ = h.proxy.Close()
			if charged.get() != limit {
				t.Errorf("charged %d of %d", charged.get(), limit)
			}
			// When the proxy ends a connection, what a peer had not read yet is lost.
			lost := int64(len(open) * len(first))
			if sum := up.get() + down.get(); sum > limit || name == "down" && sum < limit-lost {
				t.Errorf("carried %d up and %d down, %d of %d", up.get(), down.get(), sum, limit)
			}
			if refused := h.refused(); !strings.Contains(refused, "exhausted: bytes carried by the proxy: 3141593") {
				t.Errorf("refused %s", refused)
			}
		})
	}
}

// TestChargeRefuses ends a connection that is not paid for.
func TestChargeRefuses(t *testing.T) {
	rule := web(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.CopyN(w, zeros{}, 1<<20) })
	var charged counter
	h := start(t, []http.Rule{rule}, func(h *harness) {
		h.options.Charge = func(n int) error {
			if charged.add(n) > 100_000 {
				return errors.New("no budget")
			}
			return nil
		}
	})
	p := h.dial()
	p.send("GET http://"+at(rule)+"/ HTTP/1.1", "Host: "+at(rule))
	if have := len(p.ended()); have > 110_000 {
		t.Errorf("got %d bytes", have)
	}
}
