package browser

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
)

type secrets map[string]string

func (s secrets) Get(_ context.Context, name string) (string, error) { return s[name], nil }

// TestIntercept ends TLS in the proxy. Rules with a path, a method and a credential hold for each request of a page.
func TestIntercept(t *testing.T) {
	const secret = "a secret of some length"
	var posts, others int
	server := httptest.NewUnstartedServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		switch {
		case r.Method != nethttp.MethodGet:
			posts++
		case !strings.HasPrefix(r.URL.Path, "/in/"):
			others++
		}
		html(`<title>in</title><p>`+r.Header.Get("Authorization")+`</p><script>
const tries = [fetch('/in/data').then((r) => r.status), fetch('/out').then((r) => r.status), fetch('/in/x', {method: 'POST', body: 'x'}).then((r) => r.status)];
Promise.all(tries).then((all) => { document.title = all.join(' ') })</script>`).ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that refuse its certificate
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	rule, err := http.ParseRule(server.URL + "/in/**,credential=token")
	if err != nil {
		t.Fatal(err)
	}
	site := capability.NewSite(t.TempDir(), nil)
	site.Configure(http.Kind, http.Options{RootCAs: roots, Credentials: secrets{"token": secret}})
	defer func() { _ = site.Close() }()
	s := sessionAt(t, site, Rights{Rules: ruleList(rule), Intercept: true})
	open(t, s, server.URL+"/in/page")
	eventually(t, "the page has not tried", func() bool {
		p, err := s.Evaluate(t.Context(), "document.title", "[]")
		got := text(t, p, err)
		return got == `"200 403 403"`
	})
	p, err := s.Text(t.Context(), nil)
	if got := text(t, p, err); strings.Contains(got, secret) || !strings.Contains(got, "Bearer ***") {
		t.Errorf("the page has %q", got)
	}
	p, err = s.Open(t.Context(), server.URL+"/out?x")
	denied, _ := errors.AsType[*abi.Error](failed(t, p, err))
	if denied == nil || denied.Denial == nil || !strings.Contains(denied.Denial.Reason, "does not allow the path /out") {
		t.Errorf("got %v", denied)
	} else if remedy := denied.Denial.Wants.Remedy("b"); !strings.Contains(remedy, `"intercept":true`) || !strings.Contains(remedy, `"path":"/out"`) {
		t.Errorf("the remedy is %s", remedy)
	}
	if posts+others > 0 {
		t.Errorf("%d and %d requests got out", posts, others)
	}
	// A server with a certificate that nobody signed is refused by the proxy, as the browser verifies nothing.
	site.Configure(http.Kind, http.Options{Credentials: secrets{"token": secret}})
	s = sessionAt(t, site, Rights{Rules: ruleList(rule), Intercept: true})
	p, err = s.Open(t.Context(), server.URL+"/in/page")
	if o, err := take(t, p, err); err == nil && o.Page.Status != nethttp.StatusBadGateway || err != nil && !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("got %+v, %v", o.Page, err)
	}
}
