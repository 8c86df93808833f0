package web

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/guesttest"
)

var (
	own    = extension.Scope{Kind: extension.Agent, Owner: "a"}
	viewer = lifecycle.Viewer{Agent: "a"}
)

// site is the pages over a real manager.
type site struct {
	*httptest.Server
	t       *testing.T
	handler *Handler
	manager *lifecycle.Manager
	client  *http.Client
	runs    *runsOfTest
	// home is where the session that was begun last has its pages; "~" stands for it in the paths of do.
	home string
}

func newSite(t *testing.T) *site {
	t.Helper()
	cacheDir, keyDir := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := toolchain.New(t.Context(), h, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	state := extension.NewState(dir, func(console.Level, string) {})
	m, err := lifecycle.Open(t.Context(), lifecycle.Options{
		Dir: dir, Host: h, State: state, Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return tools, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	runs := &runsOfTest{}
	handler := New(Options{Manager: m, Hosts: Hosts(server.Listener.Addr()), Person: "user:tom", Runs: runs})
	server.Config.Handler = handler
	server.Start()
	t.Cleanup(func() {
		server.Close()
		for _, c := range []io.Closer{m, state, tools, h} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &site{server, t, handler, m, &http.Client{Jar: jar}, runs, "/sessions/none"}
}

// asks has an agent write an extension that needs a person.
func (s *site) asks(name, description string) lifecycle.Release {
	s.t.Helper()
	w, err := s.manager.Write(s.t.Context(), lifecycle.Draft{
		Scope: own, Author: "agent:a", Signer: "tom <tom@example.com>",
		Manifest: fmt.Appendf(nil, `{"name": %q, "version": "1.0.0", "description": %q, "tools": ["get"], "permissions": {"kv": true}}`, name, description),
		Files: map[string][]byte{"tool.ts": []byte(`import { extension } from "stile";
export default extension({ tools: { get: { description: "Gets", input: { type: "object" }, run: () => 1 } } });`)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if w.Release.State != lifecycle.Pending {
		s.t.Fatalf("it is %s", w.Release.State)
	}
	return w.Release
}

// do makes a request and returns status and body.
func (s *site) do(method, path string, form url.Values, change func(*http.Request)) (int, string) {
	s.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	if under, ok := strings.CutPrefix(path, "~"); ok {
		path = s.home + under
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(r)
	}
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if path == "/sign-in" && response.Request.URL.Path != path {
		s.home = strings.TrimSuffix(response.Request.URL.Path, "/")
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin"} {
		if got := response.Header.Get(name); got != want {
			s.t.Errorf("%s %s: %s is %q", method, path, name, got)
		}
	}
	if csp := response.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") {
		s.t.Errorf("%s %s: the policy is %q", method, path, csp)
	}
	if strings.Contains(string(text), s.handler.Token()) {
		s.t.Errorf("%s %s: the page has the operator token", method, path)
	}
	return response.StatusCode, string(text)
}

func (s *site) signIn() {
	s.t.Helper()
	if status, text := s.do("POST", "/sign-in", url.Values{"token": {s.handler.Token()}}, nil); status != http.StatusOK || !strings.Contains(text, "Waiting for you") {
		s.t.Fatalf("sign in: %d %s", status, text)
	}
}

var formField = regexp.MustCompile(`name="form" value="([^"]+)"`)

// form is the value that the forms of the session carry.
func (s *site) form() string {
	s.t.Helper()
	_, text := s.do("GET", "~/", nil, nil)
	found := formField.FindStringSubmatch(text)
	if found == nil {
		s.t.Fatalf("the page has no form: %s", text)
	}
	return found[1]
}

// Anybody can send a form to sign in, so it is small. A token in the address, which others may see, is no form.
func TestSignInIsSmall(t *testing.T) {
	s := newSite(t)
	token := url.Values{"token": {s.handler.Token()}}
	large := url.Values{"token": {s.handler.Token()}}
	for i := range 300 {
		large.Set(fmt.Sprint(i), "")
	}
	if status, _ := s.do("POST", "/sign-in", large, nil); status != http.StatusBadRequest {
		t.Errorf("a form of %d bytes: %d", len(large.Encode()), status)
	}
	if status, _ := s.do("POST", "/sign-in?"+token.Encode(), url.Values{}, nil); status != http.StatusUnauthorized {
		t.Errorf("a token in the address: %d", status)
	}
	s.signIn()
}

// Nothing that is not the person, on the page that was shown, decides anything.
func TestAttacks(t *testing.T) {
	s := newSite(t)
	r := s.asks("notes", "Keeps notes")
	path := fmt.Sprintf("~/requests/%d", r.ID)
	decision := func(form string) url.Values {
		return url.Values{"form": {form}, "digest": {r.Digest}, "decision": {"approve"}}
	}

	for _, target := range []string{"/", "~/", path} {
		if status, text := s.do("GET", target, nil, nil); status != http.StatusOK || !strings.Contains(text, "Operator token") || strings.Contains(text, "notes") {
			t.Errorf("%s without a session: %d %s", target, status, text)
		}
	}
	if status, _ := s.do("POST", path, decision("x"), nil); status != http.StatusUnauthorized {
		t.Errorf("a decision without a session: %d", status)
	}
	s.signIn()
	form := s.form()
	for _, c := range []struct {
		name   string
		form   url.Values
		change func(*http.Request)
		status int
	}{
		{"no form", url.Values{"digest": {r.Digest}, "decision": {"approve"}}, nil, http.StatusForbidden},
		{"another form", decision("AAAA"), nil, http.StatusForbidden},
		{"form in the query only", url.Values{"digest": {r.Digest}, "decision": {"approve"}}, func(r *http.Request) { r.URL.RawQuery = "form=" + url.QueryEscape(form) }, http.StatusForbidden},
		{"another origin", decision(form), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		{"null origin", decision(form), func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		{"another port", decision(form), func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, http.StatusForbidden},
		{"another site", decision(form), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		{"same site", decision(form), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		{"rebound name", decision(form), func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		{"no digest", url.Values{"form": {form}, "decision": {"approve"}}, nil, http.StatusConflict},
		{"another digest", url.Values{"form": {form}, "decision": {"approve"}, "digest": {strings.Repeat("0", 64)}}, nil, http.StatusConflict},
		{"no decision", url.Values{"form": {form}, "digest": {r.Digest}}, nil, http.StatusBadRequest},
		{"large", url.Values{"form": {form}, "digest": {r.Digest}, "decision": {"approve"}, "reason": {strings.Repeat("x", 1<<20)}}, nil, http.StatusBadRequest},
	} {
		if status, text := s.do("POST", path, c.form, c.change); status != c.status {
			t.Errorf("%s: got %d, want %d\n%s", c.name, status, c.status, text)
		}
	}
	if status, _ := s.do("GET", path+"?decision=approve&digest="+r.Digest+"&form="+url.QueryEscape(form), nil, nil); status != http.StatusOK {
		t.Errorf("got %d", status)
	}
	for _, target := range []string{"~/requests/0", "~/requests/x", "~/requests/99999999999999999999"} {
		if status, _ := s.do("GET", target, nil, nil); status != http.StatusNotFound {
			t.Errorf("%s: got %d", target, status)
		}
	}
	if now, err := s.manager.Release(t.Context(), r.ID); err != nil || now.State != lifecycle.Pending {
		t.Fatalf("it was decided: %+v, %v", now, err)
	}
	if status, _ := s.do("POST", path, decision(form), func(r *http.Request) { r.Header.Set("Origin", s.URL) }); status != http.StatusOK {
		t.Errorf("the person's decision: %d", status)
	}
	if status, _ := s.do("POST", path, decision(form), nil); status != http.StatusConflict {
		t.Errorf("a second decision: %d", status)
	}
	if status, _ := s.do("POST", "~/sign-out", url.Values{"form": {form}}, nil); status != http.StatusOK {
		t.Errorf("sign out: %d", status)
	}
	if status, _ := s.do("POST", "~/revoke", url.Values{"form": {form}, "scope": {"agent:a"}, "name": {"notes"}}, nil); status != http.StatusUnauthorized {
		t.Errorf("a decision after the end of the session: %d", status)
	}
	if r, err := s.manager.Call(t.Context(), lifecycle.Call{Viewer: viewer, Tool: "notes_get"}); err != nil || string(r.Output) != "1" {
		t.Errorf("got %s, %v", r.Output, err)
	}
}

// Only the token opens the pages, and whoever tries others does not keep the person out.
func TestWrongTokens(t *testing.T) {
	s := newSite(t)
	token := s.handler.Token()
	if bits, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(bits) != 32 {
		t.Errorf("the token has %d bytes, %v", len(bits), err)
	}
	for i, wrong := range append(slices.Repeat([]string{"wrong"}, 50), "", token[1:], token+"x", strings.ToUpper(token)) {
		if status, _ := s.do("POST", "/sign-in", url.Values{"token": {wrong}}, nil); status != http.StatusUnauthorized {
			t.Errorf("attempt %d: got %d", i, status)
		}
	}
	s.signIn()
}

// What an author wrote is text on the page, whatever it is.
func TestHostileText(t *testing.T) {
	s := newSite(t)
	r := s.asks("notes", `</p><script>alert(1)</script><img src=x onerror=alert(1)> {{.Session}}`)
	s.signIn()
	_, text := s.do("GET", fmt.Sprintf("~/requests/%d", r.ID), nil, nil)
	if strings.Contains(text, "<script") || strings.Contains(text, "<img") || !strings.Contains(text, "&lt;script&gt;") || !strings.Contains(text, "{{.Session}}") {
		t.Errorf("got %s", text)
	}
	if !strings.Contains(text, "<dt>Signed by</dt><dd>tom &lt;tom@example.com&gt;</dd>") {
		t.Errorf("it does not say who signed it: %s", text)
	}
}

// Hidden characters are shown, wherever they come from.
func TestHiddenCharacters(t *testing.T) {
	s := newSite(t)
	const hidden = "a\u202eb\u200fc\U000e0041"
	w, err := s.manager.Write(t.Context(), lifecycle.Draft{
		Scope: own, Author: "agent:a", Via: hidden,
		Manifest: []byte(`{"name": "notes", "version": "1.0.0", "description": "d", "tools": ["get"], "permissions": {"kv": true}}`),
		Files: map[string][]byte{"tool.ts": []byte(`import { extension } from "stile";
export default extension({ tools: { get: { description: "` + hidden + `", input: { type: "object" }, run: () => 1 } } });`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.signIn()
	path := fmt.Sprintf("~/requests/%d", w.Release.ID)
	_, before := s.do("GET", path, nil, nil)
	if status, _ := s.do("POST", path, url.Values{"form": {s.form()}, "digest": {w.Release.Digest}, "decision": {"deny"}, "reason": {hidden + "\x1b"}}, nil); status != http.StatusOK {
		t.Errorf("got %d", status)
	}
	_, after := s.do("GET", path, nil, nil)
	if !strings.Contains(before, `<dd>a\u202eb\u200fc\U000e0041</dd>`) || !strings.Contains(after, `denied: a\u202eb`) {
		t.Errorf("got %s", after)
	}
	if strings.ContainsAny(before+after, "\u202e\u200f\U000e0041\x1b") {
		t.Error("there are hidden characters on the page")
	}
}

// Methods, paths and hosts that a browser would not send lead nowhere.
func TestOddRequests(t *testing.T) {
	s := newSite(t)
	r := s.asks("notes", "Keeps notes")
	s.signIn()
	path := fmt.Sprintf("~/requests/%d", r.ID)
	form := url.Values{"form": {s.form()}, "digest": {r.Digest}, "decision": {"approve"}}
	for _, c := range []struct {
		method, path string
		form         url.Values
		change       func(*http.Request)
		status       int
	}{
		{"HEAD", path, nil, nil, http.StatusOK},
		{"OPTIONS", path, nil, nil, http.StatusMethodNotAllowed},
		{"PUT", path, form, nil, http.StatusMethodNotAllowed},
		{"TRACE", path, nil, nil, http.StatusMethodNotAllowed},
		{"HEAD", path + "?" + form.Encode(), nil, nil, http.StatusOK},
		{"GET", path + "?" + form.Encode(), nil, func(r *http.Request) { r.Header.Set("X-HTTP-Method-Override", "POST") }, http.StatusOK},
		{"GET", "/page/style.css", nil, nil, http.StatusNotFound},
		{"GET", "/style.css/../web.go", nil, nil, http.StatusNotFound},
		{"GET", "/%2e%2e/web.go", nil, nil, http.StatusNotFound},
		{"GET", "~/requests/1/", nil, nil, http.StatusNotFound},
		{"POST", path, form, func(r *http.Request) { r.Host = "localhost" }, http.StatusMisdirectedRequest},
		{"POST", path, form, func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, http.StatusMisdirectedRequest},
		{"POST", path, form, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusForbidden},
		{"POST", path, form, func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=x") }, http.StatusForbidden},
	} {
		if status, text := s.do(c.method, c.path, c.form, c.change); status != c.status {
			t.Errorf("%s %s: got %d, want %d\n%s", c.method, c.path, status, c.status, text)
		}
	}
	if now, err := s.manager.Release(t.Context(), r.ID); err != nil || now.State != lifecycle.Pending {
		t.Errorf("it was decided: %+v, %v", now, err)
	}
}

// Every session has a cookie of its own, which is for its own pages: not for those of another session, nor for a server on another
// port of the same name, to which a browser sends what is for all paths. A cookie that somebody chose is none.
func TestSessions(t *testing.T) {
	s := newSite(t)
	cookies := func(target string) []*http.Cookie {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		return s.client.Jar.Cookies(u)
	}
	chosen := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: "chosen"}) }
	if status, _ := s.do("POST", "/sign-in", url.Values{"token": {s.handler.Token()}}, chosen); status != http.StatusOK {
		t.Errorf("got %d", status)
	}
	home, form := s.home, s.form()
	own := cookies(s.URL + home + "/")
	if len(own) != 1 || own[0].Value == "chosen" {
		t.Errorf("the cookies are %v", own)
	}
	for _, target := range []string{s.URL + "/", s.URL + "/sign-in", s.URL + "/sessions/", "http://127.0.0.1:1/", "http://127.0.0.1:1/sessions/"} {
		if sent := cookies(target); len(sent) != 0 {
			t.Errorf("%s is sent %v", target, sent)
		}
	}
	s.signIn()
	if s.home == home || s.form() == form {
		t.Error("the session is the one before")
	}
	steal := func(r *http.Request) { r.Header.Set("Cookie", own[0].String()) }
	s.client.Jar = nil
	if _, text := s.do("GET", "~/", nil, steal); !strings.Contains(text, "Operator token") {
		t.Errorf("the cookie of one session opens the pages of another: %s", text)
	}
	s.home = home
	if _, text := s.do("GET", "~/", nil, steal); !strings.Contains(text, "Waiting for you") {
		t.Errorf("the cookie does not open its pages: %s", text)
	}
	for range maxSessions + 10 {
		s.client.Jar, _ = cookiejar.New(nil)
		s.signIn()
	}
	if n := len(s.handler.sessions); n > maxSessions {
		t.Errorf("there are %d sessions", n)
	}
}

// A person approves and revokes in a real browser, in which no script runs: the policy of the pages allows none.
func TestInChromium(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no Chromium")
		}
		t.Skip("there is no Chromium: apt-get install chromium")
	}
	s := newSite(t)
	r := s.asks("notes", "Keeps notes")
	neighbour := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<main>%q</main>", r.Cookies())
	}))
	defer neighbour.Close()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	late := time.AfterFunc(5*time.Minute, cancel)
	defer late.Stop()
	revoke := `button[aria-label="Revoke notes of agent:a"]`
	open := fmt.Sprintf(`a[href="requests/%d"]`, r.ID)
	page := func(actions ...chromedp.Action[chromedp.Void]) string {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			t.Fatal(err)
		}
		text, err := chromedp.Run(ctx, chromedp.OuterHTML("main"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	page(
		chromedp.Navigate(s.URL+"/"), chromedp.SendKeys("#token", s.handler.Token()), chromedp.Click("button"), chromedp.WaitVisible(open),
	)
	request := page(chromedp.Click(open), chromedp.WaitVisible("button[value=approve]"))
	for _, want := range []string{"Keeps notes", r.Digest, "agent:a", "<code>kv</code>"} {
		if !strings.Contains(request, want) {
			t.Errorf("the request does not show %q: %s", want, request)
		}
	}
	if after := page(chromedp.Click("button[value=approve]"), chromedp.WaitVisible(revoke)); !strings.Contains(after, "user:tom") {
		t.Errorf("got %s", after)
	}
	if gone := page(chromedp.Click(revoke), chromedp.WaitNotPresent(revoke)); !strings.Contains(gone, "No extension is active") {
		t.Errorf("got %s", gone)
	}
	sent := page(
		chromedp.Click(`a[href="runs"]`), chromedp.WaitVisible(`a[href="runs/r0"]`), chromedp.Click(`a[href="runs/r0"]`), chromedp.WaitVisible("#mailbox"),
		chromedp.SendKeys("#mailbox", "approved"), chromedp.Click("button[value=signal]"), chromedp.WaitNotPresent("button[value=retry]"), chromedp.WaitVisible("button[value=cancel]"),
	)
	if !strings.Contains(sent, "&lt;script&gt;") || !slices.Equal(s.runs.did, []string{"signal r0 approved null"}) {
		t.Errorf("got %v, %s", s.runs.did, sent)
	}
	if wide, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > innerWidth`)); err != nil || wide {
		t.Errorf("the page is wider than the window: %v", err)
	}
	if child := page(chromedp.Click(`a[href="c1"]`), chromedp.WaitVisible(`form[action="c1"]`)); !strings.Contains(child, "Run <code>c1</code>") {
		t.Errorf("got %s", child)
	}
	if text := page(chromedp.Navigate(neighbour.URL + "/")); text != "<main>[]</main>" {
		t.Errorf("another port is sent the cookie: %s", text)
	}
}

// TestReviewsTakeTurns asks for one more review than are made at a time, and leaves.
func TestReviewsTakeTurns(t *testing.T) {
	s := newSite(t)
	r := s.asks("notes", "Notes")
	s.signIn()
	path := fmt.Sprintf("%s/requests/%d", s.home, r.ID)
	at, err := url.Parse(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	for range maxReviews {
		s.handler.reviews <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	request.AddCookie(s.client.Jar.Cookies(at)[0])
	cancel()
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, request)
	if answer.Body.Len() > 0 {
		t.Errorf("one more review is made: %s", answer.Body)
	}
	for range maxReviews {
		<-s.handler.reviews
	}
	if status, body := s.do("GET", fmt.Sprintf("~/requests/%d", r.ID), nil, nil); status != 200 || !strings.Contains(body, "kv") {
		t.Errorf("afterwards: %d %s", status, body)
	}
}

// The page about a component without source says so, and what is known of it.
func TestPageOfComponent(t *testing.T) {
	s := newSite(t)
	s.signIn()
	w, err := s.manager.Write(t.Context(), lifecycle.Draft{
		Scope: own, Author: "agent:a", Via: "test", Origin: "the file <b>x</b>.wasm",
		Manifest:  []byte(`{"name": "opaque", "version": "1.0.0", "description": "d", "tools": ["get"]}`),
		Component: guesttest.WithProducers(guesttest.Guest{}.Component(t), map[string]map[string]string{"language": {"<script>": "1"}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, page := s.do("GET", fmt.Sprintf("~/requests/%d", w.Release.ID), nil, nil)
	for _, want := range []string{
		"None to read.", "a component without source, from the file &lt;b&gt;x&lt;/b&gt;.wasm", "What is known of the component", "says of itself, unchecked: language &lt;script&gt; 1",
		"exports: stile:extension/tools@0.1.0", "only compute, with code that nobody can read", "&#43;no source to read",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
}
