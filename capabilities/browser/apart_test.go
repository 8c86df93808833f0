package browser

import (
	"errors"
	"fmt"
	nethttp "net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
)

// TestRedirects follows redirects to where no rule leads. The error is a denial that names it.
func TestRedirects(t *testing.T) {
	o := newOutside(t)
	url, rule := serve(t, nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		switch r.URL.Path {
		case "/out":
			nethttp.Redirect(w, r, o.url+"/x?secret", nethttp.StatusFound)
		case "/twice":
			nethttp.Redirect(w, r, "/out", nethttp.StatusTemporaryRedirect)
		case "/file":
			nethttp.Redirect(w, r, "file:///etc/passwd", nethttp.StatusFound)
		case "/data":
			nethttp.Redirect(w, r, "data:text/html,x", nethttp.StatusFound)
		default:
			html("<title>in</title>").ServeHTTP(w, r)
		}
	}))
	s := newSession(t, rule)
	for _, path := range []string{"/out", "/twice"} {
		p, err := s.Open(t.Context(), url+path)
		denied, _ := errors.AsType[*abi.Error](failed(t, p, err))
		if denied == nil || denied.Denial == nil {
			t.Errorf("%s: got %v", path, denied)
			continue
		}
		_, port, _ := strings.Cut(strings.TrimPrefix(o.url, "http://"), ":")
		want := fmt.Sprintf(`"bindings": { "b": {"browser":[{"scheme":"http","host":"127.0.0.1","port":%s}]} }`, port)
		if got := denied.Denial.Wants.Remedy("b"); got != want {
			t.Errorf("%s: the remedy is %s, want %s", path, got, want)
		}
		if strings.Contains(denied.Error(), "secret") {
			t.Errorf("%s: got %v", path, denied)
		}
	}
	for _, path := range []string{"/file", "/data"} {
		p, err := s.Open(t.Context(), url+path)
		if err := failed(t, p, err); !errors.Is(err, abi.ErrUnavailable) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if n := o.hits.Load(); n > 0 {
		t.Errorf("it got out %d times", n)
	}
	if p := open(t, s, url); p.Title != "in" {
		t.Errorf("got %+v", p)
	}
}

// TestContextsAreApart has one page leave something behind, and others look for it.
func TestContextsAreApart(t *testing.T) {
	var cached atomic.Int64
	url, rule := serve(t, nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.URL.Path == "/cached" {
			cached.Add(1)
			w.Header().Set("Cache-Control", "max-age=3600")
			return
		}
		html(`<title>x</title><script>fetch('/cached')</script>`).ServeHTTP(w, r)
	}))
	site := capability.NewSite(t.TempDir(), nil)
	defer func() { _ = site.Close() }()
	const keep = `(async () => { document.cookie = 'a=1; max-age=999'; localStorage.a = 1; sessionStorage.a = 1; await fetch('/cached');
await new Promise((done) => { indexedDB.open('a').onsuccess = done }); })()`
	const look = `(async () => [document.cookie, localStorage.a, sessionStorage.a, (await indexedDB.databases()).length])()`
	one, other := sessionAt(t, site, Rights{Rules: ruleList(rule)}), sessionAt(t, site, Rights{Rules: ruleList(rule)})
	for _, s := range []*Session{one, other} {
		open(t, s, url)
		p, err := s.Evaluate(t.Context(), look, "[]")
		if got := text(t, p, err); got != `["",null,null,0]` {
			t.Errorf("it finds %s", got)
		}
		p, err = s.Evaluate(t.Context(), keep, "[]")
		text(t, p, err)
	}
	if one.held.tab.browser.Pid() != other.held.tab.browser.Pid() {
		t.Error("one scope has two browsers")
	}
	p, err := one.Leave(t.Context())
	must(t, p, err)
	open(t, one, url)
	p, err = one.Evaluate(t.Context(), look, "[]")
	if got := text(t, p, err); got != `["",null,null,0]` {
		t.Errorf("after leaving, it finds %s", got)
	}
	p, err = one.Evaluate(t.Context(), keep, "[]")
	text(t, p, err)
	if n := cached.Load(); n < 3 {
		t.Errorf("a page was loaded %d times by three", n)
	}
}

// TestScopesAreApart checks that two extensions have two browsers.
func TestScopesAreApart(t *testing.T) {
	url, rule := serve(t, html(`<title>x</title>`))
	site := capability.NewSite(t.TempDir(), nil)
	defer func() { _ = site.Close() }()
	rights := Rights{Rules: ruleList(rule)}
	one := sessionAt(t, site, rights.Own("user.ada.one", "web").(Rights))
	two := sessionAt(t, site, rights.Own("user.ada.two", "web").(Rights))
	open(t, one, url)
	open(t, two, url)
	if one.held.tab.browser.Pid() == two.held.tab.browser.Pid() {
		t.Error("they share a browser")
	}
}

// TestCrash kills the browser below a session. Its action fails, and the next one has a new browser.
func TestCrash(t *testing.T) {
	url, rule := serve(t, bombs())
	s := newSession(t, rule)
	open(t, s, url+"/ok")
	p, err := s.Evaluate(t.Context(), "new Promise(() => 0)", "[]")
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(s.held.tab.browser.Pid())
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := failed(t, p, nil); !errors.Is(err, abi.ErrUnavailable) || !strings.Contains(err.Error(), "the browser crashed") {
		t.Errorf("got %v", err)
	}
	p, err = s.Text(t.Context(), nil)
	if err := failed(t, p, err); !strings.Contains(err.Error(), "the browser crashed") {
		t.Errorf("got %v", err)
	}
	if p := open(t, s, url+"/ok"); p.Title != "ok" {
		t.Errorf("afterwards: %+v", p)
	}
}

// TestPageCrash has a page crash alone.
func TestPageCrash(t *testing.T) {
	url, rule := serve(t, bombs())
	s := newSession(t, rule)
	open(t, s, url+"/ok")
	s.held.tab.browser.Send(s.held.tab.session, "Page.crash", nil)
	<-s.held.tab.over.Done()
	p, err := s.Text(t.Context(), nil)
	if err := failed(t, p, err); err == nil || !strings.Contains(err.Error(), "the page crashed") {
		t.Errorf("got %v", err)
	}
	if p := open(t, s, url+"/ok"); p.Title != "ok" {
		t.Errorf("afterwards: %+v", p)
	}
}

func TestMarkdown(t *testing.T) {
	site := capability.NewSite(t.TempDir(), nil)
	defer func() { _ = site.Close() }()
	for _, c := range []struct{ html, want string }{
		{`<h1>One</h1><h2>Two <em>three</em></h2>text`, "# One\n\n## Two *three*\n\ntext"},
		{`<p>a<p>b<br>c`, "a\n\nb  \nc"},
		{`<a href="/x y">l</a> <a href="javascript:1">j</a> <a>n</a>`, "[l](BASE/x%20y) j n"},
		{`<ul><li>a<li>b<ul><li>c<li>d</ul><li>e</ul>after`, "- a\n- b\n  - c\n  - d\n- e\n\nafter"},
		{`<ol start=3><li>a<li><p>b<p>c</ol>`, "3. a\n4. b\n   c"},
		{`<table><tr><th>H<th>I<tr><td>1|2<td><b>x</b></table>`, "| H | I |\n| --- | --- |\n| 1\\|2 | **x** |"},
		{"<pre><code class=language-go>a\n  b `c`</code></pre>", "```go\na\n  b `c`\n```"},
		{"<pre>x ``` y</pre>", "````\nx ``` y\n````"},
		{`<p>use <code>f(x)</code> and *stars* [x] _y_ &lt;b>`, "use `f(x)` and \\*stars\\* \\[x\\] \\_y\\_ \\<b>"},
		{`<blockquote><p>q<p>r</blockquote>`, "> q\n> \n> r"},
		{`<img src=/i.png alt="A picture"><img src=/j.png>`, "![A picture](BASE/i.png)"},
		{`<p style="display:none">no</p><p hidden>no</p><p aria-hidden=true>no</p><script>1</script><style>x</style><p>yes`, "yes"},
		{`<input name=q value=v><input type=password name=p value=secret><input type=checkbox checked> on <button>Go</button>`, `\[`},
		{`<div>a<div>b</div>c</div><section>d</section>`, "a\n\nb\n\nc\n\nd"},
		{`<a href=/card><h3>Title</h3><p>Words</p></a>`, "### Title\n\nWords"},
		{`<dl><dt>t<dd>d</dl><hr>`, "t\n\nd\n\n---"},
	} {
		url, rule := serve(t, html(c.html))
		s := sessionAt(t, site, Rights{Rules: ruleList(rule)})
		open(t, s, url)
		p, err := s.Markdown(t.Context())
		got := strings.ReplaceAll(text(t, p, err), url, "BASE")
		_ = s.Close()
		if c.want == `\[` {
			if strings.Contains(got, "secret") || !strings.Contains(got, "[q: v]") || !strings.Contains(got, "[x]") || !strings.Contains(got, "[Go]") {
				t.Errorf("%s: got %q", c.html, got)
			}
		} else if got != c.want {
			t.Errorf("%s: got %q, want %q", c.html, got, c.want)
		}
	}
}
