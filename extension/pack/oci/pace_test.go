package oci_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stilehost/stile/extension/pack/oci"
)

// inMemory is a listener whose connections have no socket, so that a test can set the clock.
type inMemory struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (l *inMemory) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *inMemory) Close() error {
	close(l.closed)
	return nil
}

func (*inMemory) Addr() net.Addr { return &net.TCPAddr{} }

func (l *inMemory) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	l.connections <- there
	return here, nil
}

// TestSlowRegistry has registries that never end: they say nothing, send or take a byte now and then, or are busy. A pull and a push end all
// the same, also when they are cancelled. A registry that is merely slow is waited for.
func TestSlowRegistry(t *testing.T) {
	p := sample()
	component := godigest.FromBytes(p.Component).String()
	// drip sends something every so often, of which the first part is a true answer's.
	drip := func(every time.Duration, part int, text []byte) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !get(r, component) {
				return false
			}
			for len(text) > 0 {
				n := min(part, len(text))
				if _, err := w.Write(text[:n]); err != nil || http.NewResponseController(w).Flush() != nil {
					break
				}
				text = text[n:]
				select {
				case <-time.After(every):
				case <-r.Context().Done():
				}
			}
			return true
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	// only is silent about one kind of request, after everything else went well.
	only := func(what string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool { return get(r, what) && silent(w, r) }
	}
	// heads sends the beginning of an answer without end.
	heads := func(every time.Duration, part string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return false
			}
			defer func() { _ = c.Close() }()
			_, err = io.WriteString(c, "HTTP/1.1 ")
			for err == nil {
				_ = c.SetReadDeadline(time.Now().Add(every))
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
					return true // the other side has closed it
				}
				_, err = io.WriteString(c, part)
			}
			return true
		}
	}
	// pages has a list of referrers that goes on, each page late.
	pages := func(w http.ResponseWriter, r *http.Request) bool {
		if !get(r, "/referrers/") {
			return false
		}
		select {
		case <-time.After(20 * time.Second):
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		w.Header().Set("Link", "<"+r.URL.Path+`?more>; rel="next"`)
		_, _ = io.WriteString(w, `{"schemaVersion":2,"mediaType":"`+ocispec.MediaTypeImageIndex+`","manifests":[]}`)
		return true
	}
	// token asks for a token that never comes.
	token := func(w http.ResponseWriter, r *http.Request) bool {
		if get(r, "/token") {
			return silent(w, r)
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://127.0.0.1:5000/token",service="s"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	for _, c := range []struct {
		name   string
		attack func(http.ResponseWriter, *http.Request) bool
		push   bool
		cancel time.Duration // when the caller ends it
		want   error
		within time.Duration
	}{
		{"silent", silent, false, 0, oci.ErrSlow, time.Minute},
		{"silent to a push", silent, true, 0, oci.ErrSlow, time.Minute},
		{"silent about the manifest", only("/manifests/"), false, 0, oci.ErrSlow, time.Minute},
		{"silent about signatures", only("/referrers/"), false, 0, oci.ErrSlow, time.Minute},
		{"signatures without end", pages, false, 0, oci.ErrSlow, 3 * time.Minute},
		{"no token", token, false, 0, oci.ErrSlow, time.Minute},
		{"a head that does not end", heads(time.Second, "2"), false, 0, oci.ErrSlow, time.Minute},
		{"heads before the head", heads(time.Second, "103 Early Hints\r\n\r\nHTTP/1.1 "), false, 0, oci.ErrSlow, time.Minute},
		{"a byte a minute", drip(time.Minute, 1, p.Component), false, 0, oci.ErrSlow, 2 * time.Minute},
		{"a byte a second", drip(time.Second, 1, p.Component), false, 0, oci.ErrSlow, 3 * time.Minute},
		{"a byte a second, cancelled", drip(time.Second, 1, p.Component), false, 40 * time.Second, context.Canceled, 40 * time.Second},
		{"silent, cancelled", silent, false, time.Second, context.Canceled, time.Second},
		{"slow", drip(10*time.Second, 20_000, p.Component), false, 0, nil, 2 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &intercepted{Handler: newRegistry(true)}
				l := &inMemory{make(chan net.Conn), make(chan struct{})}
				server := &http.Server{Handler: h}
				go func() { _ = server.Serve(l) }()
				defer func() { _ = server.Close() }()
				opts := oci.Dialling(plain, l.dial)
				if !c.push {
					if _, err := oci.Push(t.Context(), "127.0.0.1:5000/notes:1", p, nil, opts); err != nil {
						t.Fatal(err)
					}
				}
				h.attack = c.attack
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				start := time.Now()
				var err error
				if c.push {
					_, err = oci.Push(ctx, "127.0.0.1:5000/notes:1", p, nil, opts)
				} else {
					_, err = oci.Pull(ctx, "127.0.0.1:5000/notes:1", opts)
				}
				if took := time.Since(start); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || took > c.within {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// TestUploadStalls has a registry read nothing of what is pushed.
func TestUploadStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, over := newRegistry(true), make(chan struct{})
		defer close(over)
		l := &inMemory{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/") {
				_, _ = io.CopyN(io.Discard, r.Body, 1)
				<-over
				return
			}
			store.ServeHTTP(w, r)
		})}
		go func() { _ = server.Serve(l) }()
		defer func() { _ = server.Close() }()
		_, err := oci.Push(t.Context(), "127.0.0.1:5000/notes:1", sample(), nil, oci.Dialling(plain, l.dial))
		fails(t, err, oci.ErrSlow)
	})
}
