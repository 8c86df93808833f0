package conformance

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// serverNames are the servers that every run has, each with a port of its own on 127.0.0.1.
var serverNames = []string{"A", "B"}

// servers are the places that guests try to reach. They count what really arrived.
type servers struct {
	ports map[string]string

	all []*http.Server

	mu      sync.Mutex
	arrived map[string][]string
	// told is called for /revoke and /cancel.
	told func(ctx context.Context, op, binding string) error
}

func startServers(ctx context.Context) (*servers, error) {
	s := &servers{ports: map[string]string{}, arrived: map[string][]string{}}
	for _, name := range serverNames {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start a server for the cases: %w", err), s.close())
		}
		_, s.ports[name], _ = net.SplitHostPort(listener.Addr().String())
		server := &http.Server{Handler: s.handler(name), ReadHeaderTimeout: 10 * time.Second}
		s.all = append(s.all, server)
		go func() { _ = server.Serve(listener) }() // it ends with close
	}
	return s, nil
}

func (s *servers) close() (err error) {
	for _, server := range s.all {
		err = errors.Join(err, server.Close())
	}
	return err
}

// begin forgets what arrived before.
func (s *servers) begin(told func(ctx context.Context, op, binding string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived, s.told = map[string][]string{}, told
}

// took returns what arrived at a server.
func (s *servers) took(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrived[name])
}

// handler answers requests to a server. It ignores errors of reading a body and of writing an answer: a client that goes away early, as some
// cases have it, is not the server's fault, and what the host makes of it is what the case looks at.
func (s *servers) handler(name string) http.Handler {
	mux := http.NewServeMux()
	text := func(w http.ResponseWriter, body string) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, body)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { text(w, "hello from "+name) })
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>page of "+name+"</title><p>hello from "+name+"</p>")
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		headers := map[string]string{}
		for key := range r.Header {
			if strings.HasPrefix(key, "X-") || key == "Authorization" || key == "Cookie" || key == "Content-Type" {
				headers[strings.ToLower(key)] = r.Header.Get(key)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "query": r.URL.RawQuery, "host": strings.Split(r.Host, ":")[0], "headers": headers, "body": string(body)})
	})
	mux.HandleFunc("/status", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.FormValue("code"))
		w.WriteHeader(min(max(code, 200), 599))
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.FormValue("code"))
		if err != nil {
			code = http.StatusFound
		}
		w.Header().Set("Location", r.FormValue("to"))
		w.WriteHeader(code)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.FormValue("n"))
		w.Header().Set("Location", "/loop?n="+strconv.Itoa(n+1))
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseInt(r.FormValue("bytes"), 10, 64)
		_, _ = io.CopyN(w, zeros{}, n)
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseInt(r.FormValue("bytes"), 10, 64)
		w.Header().Set("Content-Encoding", "gzip")
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		_, _ = io.CopyN(packed, zeros{}, n)
		_ = packed.Close()
	})
	mux.HandleFunc("/late", func(w http.ResponseWriter, r *http.Request) {
		late := time.NewTimer(500 * time.Millisecond)
		defer late.Stop()
		select {
		case <-late.C:
			text(w, "late")
		case <-r.Context().Done():
		}
	})
	for _, op := range []string{"revoke", "cancel"} {
		mux.HandleFunc("/"+op, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			told := s.told
			s.mu.Unlock()
			if err := told(r.Context(), op, r.FormValue("binding")); err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				text(w, err.Error())
				return
			}
			text(w, op+"d")
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if len(s.arrived[name]) < 1000 {
			s.arrived[name] = append(s.arrived[name], r.Method+" "+r.URL.Path)
		}
		s.mu.Unlock()
		mux.ServeHTTP(w, r)
	})
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
