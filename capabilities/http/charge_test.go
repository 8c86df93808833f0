package http

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
)

// Bytes on the network are charged to the meter with which the request was started. Received bytes are not charged
// again when they are decoded or read.
func TestBytesAreCharged(t *testing.T) {
	const large = 100_000
	var requests int
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		requests++
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("x", large))
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			_, _ = io.WriteString(packed, strings.Repeat("x", large))
			_ = packed.Close()
		case "/header":
			w.Header().Set("X-Large", strings.Repeat("x", 10_000))
		case "/again":
			nethttp.Redirect(w, r, "/small", nethttp.StatusTemporaryRedirect)
		}
	})
	rule := good(at)
	rule.Methods = []string{"*"}
	c := client(t, Options{Rules: []Rule{rule}})
	text := strings.Repeat("x", 10_000)
	send := Content{Case: ContentText, Text: &text}
	for _, test := range []struct {
		name, path    string
		content       Content
		enough, short int64 // bytes
		requests      int   // that a server sees if the budget is short
	}{
		{"a body received", "/large", Content{}, large + 1000, large, 1},
		{"a packed body", "/packed", Content{}, 2000, 200, 1},
		{"headers received", "/header", Content{}, 11_000, 10_000, 1},
		{"a body sent", "/small", send, 11_000, 10_000, 0},
		{"a body sent twice", "/again", send, 21_000, 20_000, 1},
		{"a URL", "/small?" + text[:5000], Content{}, 6000, 5000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := get(at, test.path)
			if r.Content = test.content; r.Content.Case != ContentNone {
				r.Method = "POST"
			}
			if err := charged(t, c, r, test.enough); err != nil {
				t.Error(err)
			}
			requests = 0
			wantError(t, charged(t, c, r, test.short), abi.ErrExhausted, "")
			if requests != test.requests {
				t.Error(fmt.Sprint(requests, " requests were sent"))
			}
		})
	}
}

// charged runs a request to its end, with its own meter.
func charged(t *testing.T, c *Client, r Request, bytes int64) error {
	t.Helper()
	exchange, err := c.Start(abi.WithMeter(t.Context(), &captest.Meter{Left: bytes}), r)
	if err != nil {
		return err
	}
	defer func() { _ = exchange.Close() }()
	if _, err := exchange.Head(t.Context()); err != nil {
		return err
	}
	_, err = exchange.Text(t.Context(), 1<<20)
	return err
}

// TestReceivingTakesTime has a body that is neither compressed nor looked through for a credential.
func TestReceivingTakesTime(t *testing.T) {
	const size = 512 << 10
	at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = w.Write(make([]byte, size)) })
	receive := func(charge func(time.Duration) error) error {
		opened, err := client(t, Options{Rules: []Rule{good(at)}}).grant.Open(abi.WithWork(t.Context(), charge))
		if err != nil {
			t.Fatal(err)
		}
		return do(t, opened.(*Client), get(at, "/")).err
	}
	var charged work
	if err := receive(charged.add); err != nil || charged.all() < size*contentWork {
		t.Errorf("%v were charged, %v", charged.all(), err)
	}
	left := size * contentWork / 4
	wantError(t, receive(func(took time.Duration) error {
		if left -= took; left < 0 {
			return errors.New("over")
		}
		return nil
	}), abi.ErrExhausted, "over")
}
