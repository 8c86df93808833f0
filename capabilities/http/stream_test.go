package http

import (
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
)

// partOf reads one part as text.
func partOf(t *testing.T, e *Exchange, offset uint64, n uint32) (string, error) {
	t.Helper()
	part, err := e.Blob(t.Context(), &Part{offset, n})
	if err != nil {
		return "", err
	}
	defer func() { _ = part.Close() }()
	return part.Text(t.Context(), 1<<20)
}

// TestPartsArrive checks that bytes that have arrived can be read while the rest is still pending, and read repeatedly.
func TestPartsArrive(t *testing.T) {
	next := make(chan string)
	at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		for text := range next {
			_, _ = io.WriteString(w, text)
			w.(nethttp.Flusher).Flush()
		}
	})
	c := client(t, Options{Rules: []Rule{good(at)}})
	exchange, err := c.Start(t.Context(), get(at, "/"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exchange.Close() }()
	after := func(n uint64) *abi.Pollable { return exchange.Subscribe(t.Context(), Stage{Case: StageBody, Body: &n}) }
	first := after(0)
	if first.IsReady() {
		t.Fatal("ready before anything came")
	}
	next <- "data: 1\n\n"
	<-first.Done()
	for _, want := range []string{"data: 1\n\n", "data"} {
		if have, err := partOf(t, exchange, 0, uint32(len(want))); err != nil || have != want {
			t.Fatalf("%q, %v", have, err)
		}
	}
	if have, err := partOf(t, exchange, 6, 100); err != nil || have != "1\n\n" {
		t.Fatalf("%q, %v", have, err)
	}
	second := after(9)
	if second.IsReady() || exchange.Subscribe(t.Context(), Stage{Case: StageWhole}).IsReady() || !after(8).IsReady() {
		t.Fatal("ready too early, or not when it is")
	}
	go func() {
		next <- "data: 2\n\n"
		close(next)
	}()
	<-second.Done()
	// Without Subscribe, the read itself waits.
	if have, err := partOf(t, exchange, 9, 100); err != nil || have != "data: 2\n\n" {
		t.Fatalf("%q, %v", have, err)
	}
	if have, err := partOf(t, exchange, 18, 100); err != nil || have != "" {
		t.Fatalf("the end is %q, %v", have, err)
	}
	if !after(18).IsReady() || !after(1<<63).IsReady() {
		t.Fatal("the end is not ready")
	}
	if have, err := partOf(t, exchange, 1<<63, 1); err != nil || have != "" {
		t.Fatalf("%q, %v", have, err)
	}
	if text, err := exchange.Text(t.Context(), 100); err != nil || text != "data: 1\n\ndata: 2\n\n" {
		t.Fatalf("%q, %v", text, err)
	}
	if _, err := partOf(t, exchange, 0, 0); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
	whole, err := exchange.Blob(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = whole.Close()
	if _, err := partOf(t, exchange, 0, 1); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
	_ = exchange.Close()
	if _, err := partOf(t, exchange, 0, 1); err == nil || !after(0).IsReady() {
		t.Fatal("a closed exchange has parts")
	}
	if c.call.held.Reserve(64<<20) != nil {
		t.Fatal("the call is still charged")
	}
}

func TestPartsEndWithTheBody(t *testing.T) {
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		_, _ = io.WriteString(w, strings.Repeat("a", 300_000))
		if r.URL.Path == "/cut" {
			panic(nethttp.ErrAbortHandler)
		}
	})
	rule := good(at)
	rule.MaxResponse = 1 << 20
	c := client(t, Options{Rules: []Rule{rule}, Held: 600_000})
	exchange, err := c.Start(t.Context(), get(at, "/"))
	if err != nil {
		t.Fatal(err)
	}
	<-exchange.Subscribe(t.Context(), Stage{Case: StageWhole}).Done()
	one, err := exchange.Blob(t.Context(), &Part{0, 1 << 30})
	if err != nil || one.Size(t.Context()) != abi.MaxBytes {
		t.Fatal(one, err)
	}
	if _, err := exchange.Blob(t.Context(), &Part{0, 1 << 30}); !errors.Is(err, abi.ErrExhausted) {
		t.Fatal("parts are not charged:", err)
	}
	if err := errors.Join(one.Close(), exchange.Close()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]*abi.Error{"/cut": abi.ErrUnavailable, "/denied": abi.ErrDenied} {
		c, request := c, get(at, path)
		if path == "/denied" {
			to := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
				nethttp.Redirect(w, r, "http://evil.example/", nethttp.StatusFound)
			})
			c, request = client(t, Options{Rules: []Rule{good(to)}}), get(to, "/")
		}
		exchange, err := c.Start(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for at := uint64(0); err == nil; {
			<-exchange.Subscribe(t.Context(), Stage{Case: StageBody, Body: &at}).Done()
			var text string
			text, err = partOf(t, exchange, at, 1<<20)
			at += uint64(len(text))
			if err == nil && text == "" {
				err = fmt.Errorf("it ended at %d", at)
			}
		}
		wantError(t, err, want, "")
		_ = exchange.Close()
	}
}
