package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/sha256hex"
)

// HTTPOptions configure a handler. Holder is required.
type HTTPOptions struct {
	// Holder returns the viewer that a bearer token belongs to. It is called for each request, must be safe for concurrent use, and
	// must take the same time for every wrong token. [Tokens] makes one.
	Holder func(token string) (v lifecycle.Viewer, ok bool)
	// Hosts are the values of Host that are answered, with port. All other names that point to this address are refused. Default:
	// localhost and the loopback addresses, with any port.
	Hosts []string
	// Origins are the sites whose pages may send requests, e.g. "https://app.example.com". Default: only pages served under the same
	// host. A client that is not a browser sends no Origin and needs none.
	Origins []string
	// MaxBody is the largest request, in bytes. Default 16 MiB.
	MaxBody int64
	// Idle is how long a silent session is kept. Default one hour.
	Idle time.Duration
	// MaxBodies bounds the bytes of the requests that an agent has under way, in all its sessions. Default twice MaxBody. All agents of the
	// process share 64 MiB. If there is no room, a request gets status 503: the largest one that is still arriving, of the agent whose
	// arriving requests have the most.
	MaxBodies int64
	// MaxRequests is how many requests an agent may have under way, in all its sessions. An open stream counts as one. Default 256.
	MaxRequests int
	// MaxSessions is how many sessions an agent may have at once. Requests of protocol versions without sessions count too. One more
	// session takes the place of the one that has had no request for longest, if there is one without. Default 64.
	MaxSessions int
}

const (
	// A body must arrive, and a message must be accepted, within these times.
	readTime  = 30 * time.Second
	writeTime = 30 * time.Second
)

// minToken is the smallest length of a token: 128 bits in base64.
const minToken = 22

// Tokens returns an [HTTPOptions.Holder] for a fixed set of tokens of at least 22 characters each. It keeps only their hashes.
func Tokens(tokens map[string]lifecycle.Viewer) (func(token string) (lifecycle.Viewer, bool), error) {
	type holder struct {
		hash   [sha256.Size]byte
		viewer lifecycle.Viewer
	}
	var holders []holder
	for token, viewer := range tokens {
		if len(token) < minToken {
			return nil, fmt.Errorf("mcp: a token has fewer than %d characters", minToken)
		}
		holders = append(holders, holder{sha256.Sum256([]byte(token)), viewer})
	}
	return func(token string) (v lifecycle.Viewer, ok bool) {
		hash := sha256.Sum256([]byte(token))
		for _, h := range holders { // it always compares all of them
			if subtle.ConstantTimeCompare(hash[:], h.hash[:]) == 1 {
				v, ok = h.viewer, true
			}
		}
		return v, ok
	}, nil
}

// Handler returns a handler that speaks streamable HTTP at every path. Use it in a separate server that bounds the time for headers
// and listens on a loopback address or with TLS.
func (s *Server) Handler(o HTTPOptions) (http.Handler, error) {
	o.defaults()
	h := &httpHandler{server: s, options: o}
	if o.Holder == nil {
		return nil, errors.New("mcp: Holder is needed")
	}
	h.sessions, h.sessionless = h.streamable(false), h.streamable(true)
	h.authorised = auth.RequireBearerToken(h.verify, &auth.RequireBearerTokenOptions{Scopes: []string{tokenScope}, AllowMissingExpiration: true})(http.HandlerFunc(h.serve))
	return h, nil
}

// sessionless is the first version of the protocol in which each HTTP request stands alone. A question to a person is then part of the
// server's answer, and the client repeats the call with the reply.
const sessionless = "2026-07-28"

// streamable returns the SDK's handler for the versions with sessions, or for those without.
func (h *httpHandler) streamable(stateless bool) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		e, err := h.endpoint(r)
		if err != nil {
			return nil
		}
		return e.sdk
	}, &sdk.StreamableHTTPOptions{
		Stateless: stateless, PropagateRequestCancellation: true, SessionTimeout: h.options.Idle, MaxRequestBodyBytes: h.options.MaxBody,
		Logger:                     slog.New(warnings{h.server.options.Logger.Handler()}),
		DisableLocalhostProtection: true, // ServeHTTP is stricter
	})
}

func (o *HTTPOptions) defaults() {
	if o.MaxBody == 0 {
		o.MaxBody = maxLine
	}
	if o.MaxBodies == 0 {
		o.MaxBodies = 2 * o.MaxBody
	}
	if o.MaxRequests == 0 {
		o.MaxRequests = maxRequests
	}
	if o.Idle == 0 {
		o.Idle = time.Hour
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 64
	}
	o.Hosts, o.Origins = slices.Clone(o.Hosts), slices.Clone(o.Origins)
}

type httpHandler struct {
	server      *Server
	options     HTTPOptions
	sessions    http.Handler // of the versions before sessionless
	sessionless http.Handler
	authorised  http.Handler
}

// ServeHTTP implements http.Handler.
func (h *httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.ContentLength != 0 { // for every sender, also if the body is discarded; net/http lifts it when the body is read
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime))
	}
	if !h.isHost(r.Host) {
		http.Error(w, "not served under this name", http.StatusMisdirectedRequest)
		return
	}
	if !h.isOrigin(r) {
		http.Error(w, "not for pages of another site", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), takenKey{}, &taken{}))
	defer cancel()
	if fields := strings.Fields(r.Header.Get("Authorization")); len(fields) == 2 { // all other senders are refused
		go h.watch(ctx, cancel, fields[1])
	}
	h.authorised.ServeHTTP(w, r.WithContext(ctx))
}

// watchInterval bounds how long a call continues after its token was revoked.
const watchInterval = 100 * time.Millisecond

// watch ends a request, whether an open stream or a running call, when its token is revoked.
func (h *httpHandler) watch(ctx context.Context, end func(), token string) {
	ticks, stop := h.server.options.ticks(watchInterval)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		if _, ok := h.options.Holder(token); !ok {
			end()
			return
		}
	}
}

func (h *httpHandler) isHost(host string) bool {
	if len(h.options.Hosts) > 0 {
		return slices.Contains(h.options.Hosts, host)
	}
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1", "[::1]"}, name)
}

// isOrigin compares the Origin with a Host that was already checked.
func (h *httpHandler) isOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return len(origins) == 1 && (origins[0] == scheme+r.Host || slices.Contains(h.options.Origins, origins[0]))
}

const (
	tokenScope = "stile" // the purpose of a token; answers with status 401 name it
	holderKey  = "holder"
	contextKey = "context"
	allowedKey = "allowed"
)

// verify finds the holder of a token.
func (h *httpHandler) verify(_ context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
	viewer, ok := h.options.Holder(token)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{
		Scopes: []string{tokenScope},
		UserID: sha256hex.Of([]byte(token)), // the SDK binds sessions to it
		Extra:  map[string]any{holderKey: viewer, contextKey: r.Context(), allowedKey: func() error { return h.allowed(token) }},
	}, nil
}

// errToken is the error of a call whose token was revoked before the call began.
var errToken = fmt.Errorf("the token was revoked: %w", context.Canceled)

func (h *httpHandler) allowed(token string) error {
	if _, ok := h.options.Holder(token); !ok {
		return errToken
	}
	return nil
}

// allowed returns a function that checks whether the sender of a message may still start calls. It is nil if its right cannot be
// revoked.
func allowed(extra *sdk.RequestExtra) func() error {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	f, _ := extra.TokenInfo.Extra[allowedKey].(func() error)
	return f
}

// requestContext is the context of the HTTP request that brought a message. It is nil if no request did.
func requestContext(extra *sdk.RequestExtra) context.Context {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	ctx, _ := extra.TokenInfo.Extra[contextKey].(context.Context)
	return ctx
}

// endpoint returns the endpoint of the viewer whose token a request has.
func (h *httpHandler) endpoint(r *http.Request) (*endpoint, error) {
	viewer, ok := auth.TokenInfoFromContext(r.Context()).Extra[holderKey].(lifecycle.Viewer)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return h.server.endpoint(viewer) //nolint:contextcheck // it outlives the request
}

// serve serves a request with a token.
func (h *httpHandler) serve(w http.ResponseWriter, r *http.Request) {
	e, err := h.endpoint(r)
	if err != nil {
		if !errors.Is(err, ErrClosed) {
			h.server.options.Logger.Error("serve the holder of a token", "error", err)
		}
		http.Error(w, "not served", http.StatusServiceUnavailable)
		return
	}
	under, _ := r.Context().Value(takenKey{}).(*taken)
	under.traffic = e.traffic
	defer under.giveBack()
	if !under.request(h.options.MaxRequests) {
		http.Error(w, fmt.Sprintf("more than %d requests at once", h.options.MaxRequests), http.StatusTooManyRequests)
		return
	}
	handler := h.sessions
	id := r.Header.Get("Mcp-Session-Id")
	if r.Header.Get("Mcp-Protocol-Version") >= sessionless {
		handler, id = h.sessionless, ""
	}
	check, most := checkIDs, 0
	switch {
	case handler == h.sessions && id != "":
		most = maxLater
	case handler == h.sessions:
		most = maxRest
	}
	if handler == h.sessions && id == "" {
		check = checkFirst
	}
	if r.Method == http.MethodPost && !h.readBody(w, r, under, check, most) {
		return
	}
	if handler == h.sessions && id != "" {
		defer e.use(id)()
	}
	switch {
	case r.Method == http.MethodPost && id == "" && e.connections() >= h.options.MaxSessions && !e.endIdle():
		http.Error(w, "too many sessions and requests at once", http.StatusTooManyRequests)
		return
	case r.Method == http.MethodDelete && id != "":
		// The SDK waits for the running calls, so they end first.
		if s := e.find(id, auth.TokenInfoFromContext(r.Context()).UserID); s != nil {
			s.end()
		}
	}
	handler.ServeHTTP(&patientWriter{w, http.NewResponseController(w)}, r)
	if handler == h.sessions && id == "" {
		e.use(w.Header().Get("Mcp-Session-Id"))() // a new session was last used now
	}
}

// readBody reads the body of a request, and refuses messages that do not pass a check. If the request belongs to a session, most is
// how many bytes the SDK may keep of it: arguments of calls are taken out of a longer body.
func (h *httpHandler) readBody(w http.ResponseWriter, r *http.Request, under *taken, check func(body []byte) (json.RawMessage, *jsonrpc.Error), most int) (ok bool) {
	reader := &bodyReader{
		ctx: r.Context(), body: http.MaxBytesReader(w, r.Body, h.options.MaxBody), under: under, most: h.options.MaxBodies, control: http.NewResponseController(w),
	}
	body, err := reader.readAll()
	if err == nil {
		err = under.parse(r.Context())
	}
	if errors.Is(err, errBodies) {
		w.Header().Set("Connection", "close") // the rest of the body is not read
		http.Error(w, fmt.Sprintf("the requests under way have more than %d bytes together", h.options.MaxBodies), http.StatusTooManyRequests)
		return false
	}
	if errors.Is(err, errBusy) {
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return false
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		http.Error(w, fmt.Sprintf("the body has more than %d bytes", h.options.MaxBody), http.StatusRequestEntityTooLarge)
		return false
	}
	if err != nil {
		http.Error(w, "the body did not arrive", http.StatusBadRequest)
		return false
	}
	id, bad := check(body)
	if bad == nil && most > 0 {
		var rest []byte
		if rest, under.stowed, bad = stow(body, most); bad != nil {
			id = idOf(body)
		}
		body = rest
	}
	if bad != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		if text, err := errorMessage(id, bad); err == nil {
			_, _ = w.Write(text) // a client that is gone needs no answer
		}
		return false
	}
	if most == maxLater && !under.queue(r.Header.Get("Mcp-Session-Id"), messagesIn(body)) {
		http.Error(w, fmt.Sprintf("the session has more than %d messages under way", maxQueued), http.StatusTooManyRequests)
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}

// patientWriter gives a client a limited time for each write, however long the stream is.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Unwrap is for http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *patientWriter) Write(p []byte) (n int, err error) {
	w.limited(func() { n, err = w.ResponseWriter.Write(p) })
	return n, err
}

// FlushError is for http.ResponseController.
func (w *patientWriter) FlushError() (err error) {
	w.limited(func() { err = w.control.Flush() })
	return err
}

// limited removes the deadline afterwards, because a stream of HTTP/2 would otherwise end between writes.
func (w *patientWriter) limited(do func()) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime)) // a writer without deadlines has no slow client
	do()
	_ = w.control.SetWriteDeadline(time.Time{})
}
