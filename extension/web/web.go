// Package web serves the pages on which a person reviews requests of extensions and decides, and sees what durable runs do. They work without JavaScript
// and load nothing from elsewhere. Anyone with the operator token may decide, so it is shown only on the terminal, never to
// a model.
package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
)

const (
	cookieName = "stile_operator"
	// sessionTime is how long a person stays signed in.
	sessionTime = 12 * time.Hour
	maxSessions = 100
	// maxForm bounds the body of a request.
	maxForm = 64 << 10
	// maxSignIn bounds the form to sign in, which anybody can send. A form takes up to 50 times its bytes when it is read.
	maxSignIn = 1 << 10
	// maxReviews is how many reviews are made at a time. One of a source of 16 MiB takes up to 960 MiB.
	maxReviews = 1
)

// Options configure a Handler. Manager and Hosts are needed.
type Options struct {
	Manager *lifecycle.Manager
	// Hosts are the values of Host that the pages answer to, with port, e.g. "127.0.0.1:7777". All others are refused, among them
	// names that an attacker made point to this address.
	Hosts []string
	// Person is the name under which decisions are recorded, e.g. "user:tom".
	Person string
	// TLS is set if the pages are served over TLS, so that the cookie is restricted to TLS.
	TLS bool
	// Runs are the durable runs. Default: no page shows any.
	Runs Runs
	// SignedIn is called with each request of a person who is signed in, before it is served. Default: nothing is called.
	SignedIn func(*http.Request)
	// Logger receives what the person does not see. Default: nothing is logged.
	Logger *slog.Logger
}

// Handler serves the pages. It is safe for concurrent use.
type Handler struct {
	options Options
	token   string
	mux     *http.ServeMux
	foreign *http.CrossOriginProtection
	reviews chan struct{} // has an element for each review that is made

	mu       sync.Mutex
	sessions map[string]place // by the hash of the cookie
}

// place is the path of a session's pages. A browser sends cookies to every port of the same name, but only to their path. So only a
// server that knows the path of a session can receive its cookie.
type place struct {
	path string
	end  time.Time
}

//go:embed page/*.html page/style.css
var files embed.FS

// pages are parsed on first use, because most commands show none.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"when": when, "short": lifecycle.ShortDigest, "texts": extension.ToolTexts, "line": printable.OneLine, "text": shown, "second": second}).ParseFS(files, "page/*.html"))
})

// New returns a handler and makes its operator token.
func New(o Options) *Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{options: o, token: secret(), mux: http.NewServeMux(), foreign: http.NewCrossOriginProtection(), reviews: make(chan struct{}, maxReviews), sessions: map[string]place{}}
	h.mux.HandleFunc("GET /sessions/{session}/{$}", h.signedIn(h.overview))
	h.mux.HandleFunc("GET /sessions/{session}/requests/{id}", h.signedIn(h.request))
	h.mux.HandleFunc("POST /sessions/{session}/requests/{id}", h.signedIn(h.decide))
	h.mux.HandleFunc("POST /sessions/{session}/questions/{id}", h.signedIn(h.answer))
	h.mux.HandleFunc("POST /sessions/{session}/revoke", h.signedIn(h.revoke))
	h.mux.HandleFunc("POST /sessions/{session}/sign-out", h.signedIn(h.signOut))
	if o.Runs != nil {
		h.handleRuns()
	}
	h.mux.Handle("GET /{$}", http.RedirectHandler("/sign-in", http.StatusSeeOther))
	h.mux.HandleFunc("GET /sign-in", h.signInPage)
	h.mux.HandleFunc("POST /sign-in", h.signIn)
	h.mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, files, "page/style.css")
	})
	return h
}

// Token returns the operator token: 256 random bits. Show it on a terminal only.
func (h *Handler) Token() string { return h.token }

// secret returns 256 random bits as text.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would come from the origin "null"
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if !slices.Contains(h.options.Hosts, r.Host) {
		h.fail(w, http.StatusMisdirectedRequest, "These pages are not served under this name.")
		return
	}
	if err := h.foreign.Check(r); err != nil || !h.sameOrigin(r) {
		h.fail(w, http.StatusForbidden, "This request came from another site.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	h.mux.ServeHTTP(w, r)
}

// sameOrigin requires that the Origin of a request that changes something, if present, is these pages. It also protects clients that
// send no Sec-Fetch-Site.
func (h *Handler) sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if r.Method == http.MethodGet || r.Method == http.MethodHead || origin == "" {
		return true
	}
	scheme := "http://"
	if h.options.TLS {
		scheme = "https://"
	}
	return origin == scheme+r.Host
}

// session is a person who is signed in.
type session struct {
	key string // the hash of the cookie
	// Home is the path that the pages of the session begin with, and its first page.
	Home string
	// Form is the secret in every form of the session.
	Form string
}

// signedIn serves a page only to a signed-in person, and accepts only forms that the page itself produced.
func (h *Handler) signedIn(page func(http.ResponseWriter, *http.Request, session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, ok := h.session(r)
		if !ok {
			if r.Method != http.MethodGet {
				h.fail(w, http.StatusUnauthorized, "You are not signed in any more.")
				return
			}
			http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
			return
		}
		if h.options.SignedIn != nil {
			h.options.SignedIn(r)
		}
		if r.Method == http.MethodPost {
			if err := r.ParseForm(); err != nil {
				h.fail(w, http.StatusBadRequest, "The form cannot be read.")
				return
			}
			if subtle.ConstantTimeCompare([]byte(r.PostForm.Get("form")), []byte(s.Form)) != 1 {
				h.fail(w, http.StatusForbidden, "This form is not one of this session. Load the page again.")
				return
			}
		}
		page(w, r, s)
	}
}

func (h *Handler) session(r *http.Request) (session, bool) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return session{}, false
	}
	key := hash(cookie.Value)
	h.mu.Lock()
	defer h.mu.Unlock()
	place, ok := h.sessions[key]
	if !ok || !strings.HasPrefix(r.URL.Path, place.path) {
		return session{}, false
	}
	if time.Now().After(place.end) {
		delete(h.sessions, key)
		return session{}, false
	}
	mac := hmac.New(sha256.New, []byte(h.token))
	mac.Write([]byte(key))
	return session{key, place.path, base64.RawURLEncoding.EncodeToString(mac.Sum(nil))}, true
}

func (h *Handler) signInPage(w http.ResponseWriter, _ *http.Request) {
	h.show(w, http.StatusOK, "sign-in.html", "")
}

func (h *Handler) signIn(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSignIn))
	form, wrong := url.ParseQuery(string(text)) // and not the query of the URL
	if err != nil || wrong != nil {
		h.fail(w, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	// Wrong tokens are not counted: nobody can guess 256 bits, and with a count, anybody could lock the person out.
	given := sha256.Sum256([]byte(form.Get("token")))
	right := sha256.Sum256([]byte(h.token))
	if subtle.ConstantTimeCompare(given[:], right[:]) != 1 {
		h.show(w, http.StatusUnauthorized, "sign-in.html", "This is not the token that the terminal shows.")
		return
	}
	value, now, path := secret(), time.Now(), "/sessions/"+secret()+"/"
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, place := range h.sessions {
		if len(h.sessions) >= maxSessions || now.After(place.end) {
			delete(h.sessions, key)
		}
	}
	h.sessions[hash(value)] = place{path, now.Add(sessionTime)}
	http.SetCookie(w, h.cookie(value, path, int(sessionTime.Seconds())))
	http.Redirect(w, r, path, http.StatusSeeOther)
}

func (h *Handler) cookie(value, path string, seconds int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: path, MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: h.options.TLS}
}

func (h *Handler) signOut(w http.ResponseWriter, r *http.Request, s session) {
	h.mu.Lock()
	delete(h.sessions, s.key)
	h.mu.Unlock()
	http.SetCookie(w, h.cookie("", s.Home, -1))
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

// Hosts returns the values of Host that reach a listener on a loopback address.
func Hosts(listener net.Addr) []string {
	host, port, err := net.SplitHostPort(listener.String())
	if err != nil {
		return nil
	}
	hosts := []string{net.JoinHostPort(host, port)}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		hosts = append(hosts, net.JoinHostPort("localhost", port))
	}
	return hosts
}
