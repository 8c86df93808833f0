package main

import (
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/internal/errkind"
)

// signalsPath is what the path of a mailbox's address begins with.
const signalsPath = "/signals/"

// parseSignalsURL reads STILE_SIGNALS, and returns what addresses of mailboxes begin with.
func parseSignalsURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return "", errors.New(`this is no address of a server; write it like "https://hooks.example.com", or http for this machine`)
	}
	return strings.TrimSuffix(text, "/") + signalsPath, nil
}

// postsAt is what takes posts to addresses: a [durable.Runs].
type postsAt interface {
	HasAddress(ctx context.Context, token string) (bool, error)
	Post(ctx context.Context, token string, headers map[string][]string, m durable.Message) (delivered bool, err error)
}

const (
	// maxPosts is how many posts are read at once.
	maxPosts = 64
	// postTime is how long a post may take.
	postTime = 10 * time.Second
	// From one source, and to one address, a post may come each postEvery, and so many more at once.
	postEvery   = 200 * time.Millisecond
	sourceBurst = 50
	postBurst   = 100
)

// posts serves the addresses of mailboxes. Nothing in an answer tells an address of a run that has ended from one that never was.
type posts struct {
	at                 postsAt
	logger             *slog.Logger
	sources, addresses *meter
	reading            chan struct{}
}

func newPosts(at postsAt, logger *slog.Logger) *posts {
	return &posts{at: at, logger: logger, sources: newMeter(sourceBurst), addresses: newMeter(postBurst), reading: make(chan struct{}, maxPosts)}
}

// ServeHTTP implements [http.Handler].
func (p *posts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	refuse := func(status int, text string) {
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.Header().Set("Connection", "close") // what is left of its body is not read
		http.Error(w, text, status)
	}
	if !p.sources.allow(source(r), time.Now()) {
		refuse(http.StatusTooManyRequests, "too many requests; try again later")
		return
	}
	token, ok := strings.CutPrefix(r.URL.EscapedPath(), signalsPath)
	if ok = ok && r.Method == http.MethodPost && len(token) == 43; ok {
		var err error
		if ok, err = p.at.HasAddress(r.Context(), token); err != nil {
			p.failed(w, err)
			return
		}
	}
	if !ok {
		refuse(http.StatusNotFound, "not found")
		return
	}
	if !p.addresses.allow(token, time.Now()) {
		refuse(http.StatusTooManyRequests, "too many requests; try again later")
		return
	}
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	default:
		refuse(http.StatusServiceUnavailable, "too many requests at once; try again later")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, durable.MaxMessage))
	if errkind.Is[*http.MaxBytesError](err) {
		refuse(http.StatusRequestEntityTooLarge, "a message has at most 64 KiB")
		return
	}
	if err != nil {
		refuse(http.StatusBadRequest, "the message did not arrive whole")
		return
	}
	delivered, err := p.at.Post(r.Context(), token, r.Header, durable.Message{Data: body, Key: r.Header.Get("Idempotency-Key"), From: "its address, from outside"})
	if problem := new(durable.SecretError); errors.As(err, &problem) {
		p.logger.Error(problem.Error())
	}
	switch {
	case errors.Is(err, durable.ErrSignature):
		refuse(http.StatusUnauthorized, "not authorised")
	case errors.Is(err, durable.ErrAddress):
		refuse(http.StatusNotFound, "not found")
	case errkind.Is[*durable.FullError](err):
		refuse(http.StatusTooManyRequests, "the mailbox is full; try again later")
	case errkind.Is[*durable.MessageError](err):
		refuse(http.StatusBadRequest, err.Error())
	case err != nil:
		p.failed(w, err)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(map[string]bool{"delivered": delivered})
	}
}

func (p *posts) failed(w http.ResponseWriter, err error) {
	p.logger.Error("a signal could not be taken", "error", err)
	http.Error(w, "try again later", http.StatusServiceUnavailable)
}

// source is the network from which a request comes, as the proxy says last: an address of IPv4, or 64 bits of one of IPv6. Only this machine can
// connect, so it is empty without a proxy that says it.
func source(r *http.Request) string {
	said := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
	ip, err := netip.ParseAddr(strings.TrimSpace(said[strings.LastIndexByte(said, ',')+1:]))
	if err != nil {
		return ""
	}
	bits := 32
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		bits = 64
	}
	network, err := ip.Prefix(bits)
	if err != nil {
		return ""
	}
	return network.String()
}

// meter limits how often something may happen for each name. Names share one of a fixed number of places, so strangers cannot fill memory.
type meter struct {
	seed  maphash.Seed
	burst int

	mu     sync.Mutex
	places [4096]time.Time // when all that happened is paid for
}

func newMeter(burst int) *meter { return &meter{seed: maphash.MakeSeed(), burst: burst} }

func (m *meter) allow(name string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	place := &m.places[maphash.String(m.seed, name)%uint64(len(m.places))]
	paid := *place
	if paid.Before(now) {
		paid = now
	}
	if paid.Sub(now) > time.Duration(m.burst-1)*postEvery {
		return false
	}
	*place = paid.Add(postEvery)
	return true
}

// servePosts serves addresses of mailboxes, and nothing else, until ctx ends.
func servePosts(ctx context.Context, s *streams, runs *durable.Runs, address, addressFile string) error {
	if err := checkPostsListen(address); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return &usageError{err}
	}
	defer func() { _ = listener.Close() }() // the server may have closed it
	if addressFile != "" {
		if err := writeFile(addressFile, []byte(listener.Addr().String()+"\n")); err != nil {
			return err
		}
	}
	logger := slog.New(&warnings{streams: s})
	h := &http.Server{
		Handler: newPosts(runs, logger), ReadHeaderTimeout: postTime, ReadTimeout: postTime, WriteTimeout: 2 * postTime, IdleTimeout: postTime, MaxHeaderBytes: maxHeader,
		ConnContext: withConnection, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // strangers' requests are not logged
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(newConnections(listener, maxConnections)) }()
	s.say("stile: taking signals at http://%s%s", listener.Addr(), signalsPath)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if h.Shutdown(shutdown) != nil {
		return h.Close()
	}
	return nil
}

// checkPostsListen refuses to take signals over a network without TLS, which a proxy adds.
func checkPostsListen(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usagef("--listen %s: %w", address, err)
	}
	if !isLoopback(host) {
		return usagef("--listen %s is reachable from other machines; listen on 127.0.0.1, and have a proxy with TLS pass POST requests for %s on", address, signalsPath)
	}
	return nil
}
