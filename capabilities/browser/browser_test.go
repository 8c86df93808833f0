package browser

import (
	"context"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/wit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, []string{"pending.take"}, reflect.TypeFor[*Session](), reflect.TypeFor[*Pending]())
}

// loopback is where the servers of tests are.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// serve starts a server, and returns its URL and a rule that allows it.
func serve(t testing.TB, pages nethttp.Handler) (string, http.Rule) {
	t.Helper()
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	rule, err := http.ParseRule(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	rule.Addresses = loopback
	return server.URL, rule
}

// html answers every request with a page.
func html(body string) nethttp.Handler {
	return nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Type", "text/html;charset=utf-8")
		_, _ = fmt.Fprint(w, body)
	})
}

// newSession opens a session of a site of its own.
func newSession(t testing.TB, rules ...http.Rule) *Session {
	t.Helper()
	site := capability.NewSite(t.TempDir(), nil)
	t.Cleanup(func() {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	})
	return sessionAt(t, site, Rights{Rules: rules})
}

func sessionAt(t testing.TB, site *capability.Site, g Rights) *Session {
	t.Helper()
	c, err := g.Open(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	opened, err := c.(*Grant).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*Session)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// take waits for an action, and returns its outcome.
func take(t testing.TB, p *Pending, err error) (Outcome, error) {
	t.Helper()
	if err != nil {
		return Outcome{}, err
	}
	defer func() { _ = p.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return p.Take(ctx)
}

// must is take of an action that succeeds.
func must(t testing.TB, p *Pending, err error) Outcome {
	t.Helper()
	o, err := take(t, p, err)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func open(t testing.TB, s *Session, url string) *Page {
	t.Helper()
	p, err := s.Open(t.Context(), url)
	return must(t, p, err).Page
}

func text(t testing.TB, p *Pending, err error) string {
	t.Helper()
	return *must(t, p, err).Text
}

func TestRead(t *testing.T) {
	url, rule := serve(t, html(`<title>A page</title><h1>Hello</h1><p>It has <b>words</b> and <a href=/next>a link</a>.`))
	s := newSession(t, rule)
	if p := open(t, s, url); p.Title != "A page" || p.Status != 200 || p.URL != url+"/" {
		t.Errorf("got %+v", p)
	}
	p, err := s.Markdown(t.Context())
	want := "# Hello\n\nIt has **words** and [a link](" + url + "/next)."
	if got := text(t, p, err); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p, err = s.Text(t.Context(), new("h1"))
	if got := text(t, p, err); strings.TrimSpace(got) != "Hello" {
		t.Errorf("got %q", got)
	}
}
