// Package web serves the pages on which a person looks at what extensions ask for and decides. They work without JavaScript and
// load nothing from elsewhere. Whoever knows the operator token may decide, so it is shown on the terminal only, never to a model.
package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/stilehost/stile/extension/lifecycle"
)

const (
	cookieName = "stile_operator"
	// sessionTime is how long a person stays signed in.
	sessionTime = 12 * time.Hour
	maxSessions = 100
	// maxForm bounds the body of a request.
	maxForm = 64 << 10
)

// Options configure a Handler. Manager and Hosts are needed.
type Options struct {
	Manager *lifecycle.Manager
	// Hosts are the values of Host that the pages answer to, with port, e.g. "127.0.0.1:7777". Others are refused: a name that was made to
	// point here is not among them.
	Hosts []string
	// Person is whom decisions are written down under, e.g. "user:tom".
	Person string
	// TLS says that the pages are served over TLS, so that the cookie is for TLS only.
	TLS bool
	// Logger receives what the person is not told of. Default: nothing is logged.
	Logger *slog.Logger
}

// Handler serves the pages. It is safe for concurrent use.
type Handler struct {
	options Options
	token   string
	mux     *http.ServeMux
	foreign *http.CrossOriginProtection

	mu       sync.Mutex
	sessions map[string]time.Time // the end of each, by the hash of its cookie
}

//go:embed page/*.html page/style.css
var files embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{"when": when, "short": short}).ParseFS(files, "page/*.html"))

// New returns a handler and makes its operator token.
func New(o Options) *Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{options: o, token: secret(), mux: http.NewServeMux(), foreign: http.NewCrossOriginProtection(), sessions: map[string]time.Time{}}
	h.mux.HandleFunc("GET /{$}", h.signedIn(h.overview))
	h.mux.HandleFunc("GET /requests/{id}", h.signedIn(h.request))
	h.mux.HandleFunc("POST /requests/{id}", h.signedIn(h.decide))
	h.mux.HandleFunc("POST /revoke", h.signedIn(h.revoke))
	h.mux.HandleFunc("GET /sign-in", h.signInPage)
	h.mux.HandleFunc("POST /sign-in", h.signIn)
	h.mux.HandleFunc("POST /sign-out", h.signedIn(h.signOut))
	h.mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, files, "page/style.css")
	})
	return h
}

// Token is the operator token: 256 random bits. It is for a terminal.
func (h *Handler) Token() string { return h.token }

// secret is 256 random bits as text.
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

// sameOrigin demands of whatever changes something that its Origin, when there is one, is these pages: also of clients that send no
// Sec-Fetch-Site.
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
	// Form is what every form of the session carries: nobody else can know it.
	Form string
}

// signedIn serves a page to who is signed in, and of forms only those that the page itself gave.
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
	if end, ok := h.sessions[key]; !ok || time.Now().After(end) {
		delete(h.sessions, key)
		return session{}, false
	}
	mac := hmac.New(sha256.New, []byte(h.token))
	mac.Write([]byte(key))
	return session{key, base64.RawURLEncoding.EncodeToString(mac.Sum(nil))}, true
}

func (h *Handler) signInPage(w http.ResponseWriter, _ *http.Request) {
	h.show(w, http.StatusOK, "sign-in.html", "")
}

func (h *Handler) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		h.fail(w, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	// Wrong tokens are not counted: 256 bits cannot be guessed, and who counts lets anybody lock the person out.
	given := sha256.Sum256([]byte(r.PostForm.Get("token")))
	right := sha256.Sum256([]byte(h.token))
	if subtle.ConstantTimeCompare(given[:], right[:]) != 1 {
		h.show(w, http.StatusUnauthorized, "sign-in.html", "This is not the token that the terminal shows.")
		return
	}
	value, now := secret(), time.Now()
	before, _ := h.session(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, before.key) // its cookie is replaced
	for key, end := range h.sessions {
		if len(h.sessions) >= maxSessions || now.After(end) {
			delete(h.sessions, key)
		}
	}
	h.sessions[hash(value)] = now.Add(sessionTime)
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: int(sessionTime.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: h.options.TLS,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (h *Handler) signOut(w http.ResponseWriter, r *http.Request, s session) {
	h.mu.Lock()
	delete(h.sessions, s.key)
	h.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: h.options.TLS})
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

// Hosts are the values of Host under which a listener on a loopback address is reached.
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
