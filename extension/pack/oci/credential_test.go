package oci_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stilehost/stile/extension/pack"
	"github.com/stilehost/stile/extension/pack/oci"
	"github.com/stilehost/stile/secret"
)

const password = "correct horse"

// elsewhere is a host that is not the registry. It remembers what it was told in confidence.
type elsewhere struct {
	http.Handler
	mu    sync.Mutex
	asked int
	told  []string
}

func (e *elsewhere) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	e.asked++
	for _, header := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
		if v := r.Header.Get(header); v != "" {
			e.told = append(e.told, header+": "+v)
		}
	}
	e.mu.Unlock()
	e.Handler.ServeHTTP(w, r)
}

func (e *elsewhere) check(t *testing.T) {
	t.Helper()
	if e.asked == 0 || len(e.told) > 0 {
		t.Errorf("another host was asked %d times, and told %q", e.asked, e.told)
	}
}

// basic lets in who knows the password.
func basic(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "ada" || pass != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="here"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// bearer lets in who has a token from the realm.
func bearer(realm string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-of-ada" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func tokens() http.Handler {
	return basic(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"token": "token-of-ada"})
	}))
}

func ada() oci.Options { return oci.Options{PlainHTTP: true, Username: "ada", Password: password} }

func TestCredentials(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"basic":  basic(newRegistry(true)),
		"bearer": bearer("http://"+serve(t, tokens())+"/token", newRegistry(true)),
	} {
		t.Run(name, func(t *testing.T) {
			ref := serve(t, h) + "/notes:1"
			s, _ := signature(t, sample())
			if _, err := oci.Push(t.Context(), ref, sample(), nil, plain); err == nil {
				t.Error("pushed without credentials")
			}
			if _, err := oci.Push(t.Context(), ref, sample(), []pack.Signature{s}, ada()); err != nil {
				t.Fatal(err)
			}
			if got := pull(t, ref, ada()); digest(t, got.Pack) != digest(t, sample()) {
				t.Errorf("got %+v", got)
			}
			wrong := ada()
			wrong.Password = "wrong horse"
			if _, err := oci.Pull(t.Context(), ref, wrong); err == nil || strings.Contains(err.Error(), "horse") {
				t.Errorf("with a wrong password: %v", err)
			}
		})
	}
}

// TestPasswordIsNotInErrors has a registry and its token service repeat the password in their answers.
func TestPasswordIsNotInErrors(t *testing.T) {
	repeat := func(w http.ResponseWriter, r *http.Request) {
		_, pass, ok := r.BasicAuth()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="here"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":"not with %s: %s"}]}`, r.Header.Get("Authorization"), pass)
	}
	realm := serve(t, http.HandlerFunc(repeat)) + "/token"
	for name, h := range map[string]http.Handler{
		"registry": http.HandlerFunc(repeat),
		"tokens":   bearer("http://"+realm, newRegistry(true)),
		"redirect": basic(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, pass, _ := r.BasicAuth()
			http.Redirect(w, r, "https://example.com/?p="+base64.StdEncoding.EncodeToString([]byte(pass)), http.StatusTemporaryRedirect)
		})),
	} {
		ref := serve(t, h) + "/notes:1"
		_, pulled := oci.Pull(t.Context(), ref, ada())
		_, pushed := oci.Push(t.Context(), ref, sample(), nil, ada())
		if pulled == nil || !strings.Contains(pulled.Error(), secret.Mark) {
			t.Errorf("%s: %v", name, pulled)
		}
		for _, err := range []error{pulled, pushed} {
			if err == nil || strings.Contains(err.Error(), password) ||
				strings.Contains(err.Error(), base64.StdEncoding.EncodeToString([]byte("ada:"+password))) ||
				strings.Contains(err.Error(), base64.StdEncoding.EncodeToString([]byte(password))) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestRedirectedBlobs is a registry whose blobs are at another host of the same name, as most large ones have it.
func TestRedirectedBlobs(t *testing.T) {
	store := newRegistry(true)
	blobs := &elsewhere{Handler: store}
	host := serve(t, blobs)
	h := &intercepted{Handler: store, attack: func(w http.ResponseWriter, r *http.Request) bool {
		if get(r, "/blobs/") {
			http.Redirect(w, r, "http://"+host+r.URL.Path, http.StatusTemporaryRedirect)
		}
		return get(r, "/blobs/")
	}}
	for name, h := range map[string]http.Handler{"basic": basic(h), "bearer": bearer("http://"+serve(t, tokens()), h)} {
		t.Run(name, func(t *testing.T) {
			ref := serve(t, h) + "/notes:1"
			if _, err := oci.Push(t.Context(), ref, sample(), nil, ada()); err != nil {
				t.Fatal(err)
			}
			if got := pull(t, ref, ada()); digest(t, got.Pack) != digest(t, sample()) {
				t.Errorf("got %+v", got)
			}
			blobs.check(t)
		})
	}
}

// TestCredentialsAskedForElsewhere is a registry that sends its user to a host that asks for the password.
func TestCredentialsAskedForElsewhere(t *testing.T) {
	for _, scheme := range []string{"Basic", "Bearer"} {
		for _, where := range []string{"/manifests/", "/blobs/", "/blobs/uploads/", "/referrers/"} {
			t.Run(scheme+" "+where, func(t *testing.T) {
				thief := &elsewhere{}
				evil := serve(t, thief)
				thief.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("WWW-Authenticate", scheme+` realm="http://`+evil+`/token"`)
					w.WriteHeader(http.StatusUnauthorized)
				})
				h := &intercepted{Handler: newRegistry(true)}
				ref := serve(t, basic(h)) + "/notes:1"
				if _, err := oci.Push(t.Context(), ref, sample(), nil, ada()); err != nil {
					t.Fatal(err)
				}
				h.attack = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.Contains(r.URL.Path, where) || r.Method == http.MethodHead {
						return false
					}
					http.Redirect(w, r, "http://"+evil+"/", http.StatusTemporaryRedirect)
					return true
				}
				if _, err := oci.Push(t.Context(), ref, another(), nil, ada()); err == nil && where != "/referrers/" {
					t.Error("pushed")
				}
				if _, err := oci.Pull(t.Context(), ref, ada()); err == nil && where != "/blobs/uploads/" {
					t.Error("pulled")
				}
				thief.check(t)
			})
		}
	}
}

// TestUploadElsewhere is a registry that would have uploads sent to another host.
func TestUploadElsewhere(t *testing.T) {
	store := newRegistry(true)
	uploads := &elsewhere{Handler: store}
	host := serve(t, uploads)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			answer := httptest.NewRecorder()
			store.ServeHTTP(answer, r)
			w.Header().Set("Location", "http://"+host+answer.Header().Get("Location"))
			w.WriteHeader(answer.Code)
			return
		}
		store.ServeHTTP(w, r)
	})
	ref := serve(t, basic(h)) + "/notes:1"
	if _, err := oci.Push(t.Context(), ref, sample(), nil, ada()); err == nil || uploads.asked > 0 {
		t.Errorf("another host was asked %d times: %v", uploads.asked, err)
	}
}

func TestPlainHTTPIsForLoopback(t *testing.T) {
	_, err := oci.Pull(t.Context(), "192.0.2.1:5000/notes:1", ada())
	fails(t, err, oci.ErrAddress)
	_, err = oci.Push(t.Context(), "[2001:db8::1]:5000/notes:1", sample(), nil, ada())
	fails(t, err, oci.ErrAddress)
}

func TestHTTPS(t *testing.T) {
	h := &intercepted{Handler: newRegistry(true)}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of those who do not believe the certificate
	s.StartTLS()
	t.Cleanup(s.Close)
	ref := strings.TrimPrefix(s.URL, "https://") + "/notes:1"
	opts := oci.Options{RootCAs: x509.NewCertPool()}
	opts.RootCAs.AddCert(s.Certificate())
	if _, err := oci.Push(t.Context(), ref, sample(), nil, opts); err != nil {
		t.Fatal(err)
	}
	if got := pull(t, ref, opts); digest(t, got.Pack) != digest(t, sample()) {
		t.Errorf("got %+v", got)
	}
	_, err := oci.Pull(t.Context(), ref, oci.Options{RootCAs: x509.NewCertPool()})
	if err == nil {
		t.Error("the registry was believed without a certificate")
	}

	inside := &elsewhere{Handler: newRegistry(true)}
	private := httptest.NewTLSServer(inside)
	t.Cleanup(private.Close)
	opts.RootCAs.AddCert(private.Certificate())
	for to, want := range map[string]error{
		private.URL + "/": oci.ErrAddress, // what only this machine reaches
		"https://169.254.169.254/latest/meta-data/":                        oci.ErrAddress,
		"https://[fd00::1]/":                                               oci.ErrAddress,
		fmt.Sprintf("http://%s/", serve(t, inside)):                        oci.ErrScheme,
		strings.Replace(private.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1): oci.ErrAddress,
	} {
		h.attack = func(w http.ResponseWriter, r *http.Request) bool {
			if get(r, "/blobs/") {
				http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			}
			return get(r, "/blobs/")
		}
		_, err := oci.Pull(t.Context(), ref, opts)
		fails(t, err, want)
	}
	if inside.asked > 0 {
		t.Errorf("what is inside was asked %d times", inside.asked)
	}
}
