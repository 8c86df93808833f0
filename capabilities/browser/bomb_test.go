package browser

import (
	"context"
	"errors"
	"io"
	"net"
	nethttp "net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
)

// quick are times for pages that never end.
var quick = times{action: 4 * time.Second, load: time.Second, wait: time.Second, answer: 2 * time.Second, events: 20_000}

// quickSite is a site whose browser has less time and memory.
func quickSite(t *testing.T) *capability.Site {
	t.Helper()
	site := capability.NewSite(t.TempDir(), nil)
	site.Configure(Kind, EngineOptions{times: quick, Tabs: 4})
	t.Cleanup(func() {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	})
	return site
}

func bombs() nethttp.Handler {
	mux := nethttp.NewServeMux()
	for name, body := range map[string]string{
		"ok":           `<title>ok</title>fine`,
		"alerts":       `<title>alerts</title><script>while (true) alert('x'.repeat(1e5))</script>`,
		"prompts":      `<title>prompts</title><script>for (let i = 0; i < 200; i++) { prompt('x', 'y'); confirm('z') }</script>`,
		"loop":         `<title>loop</title><script>while (true);</script>`,
		"memory":       `<title>memory</title><script>const all = []; setInterval(() => { for (let i = 0; i < 8; i++) all.push(new Uint8Array(1 << 20).fill(all.length)) }, 5)</script>`,
		"popups":       `<title>popups</title><script>for (let i = 0; i < 300; i++) { window.open('/ok', '_blank'); window.open('about:blank', 'w' + i, 'popup') }</script>`,
		"prints":       `<title>prints</title><script>for (let i = 0; i < 300; i++) print()</script>`,
		"beforeunload": `<title>beforeunload</title><body onclick="1"><script>addEventListener('beforeunload', (e) => { e.preventDefault(); e.returnValue = 'stay'; return 'stay' })</script>`,
		"events":       `<title>events</title><script>const flood = () => { for (let i = 0; i < 500; i++) { const f = document.createElement('iframe'); document.body.append(f); f.remove() } setTimeout(flood) }; addEventListener('load', flood)</script><body>`,
		"nested":       `<title>nested</title><script>let d = document.documentElement; for (let i = 0; i < 5000; i++) { const n = document.createElement('div'); d.append('x', n); d = n }</script>`,
		"many":         `<title>many</title><body><script>document.body.innerHTML = '<p>x'.repeat(100000)</script>`,
		"title":        `<script>document.title = 'x'.repeat(1e8)</script>`,
		"clobbered":    `<title>clobbered</title><form id=f><input name=attributes><input name=childNodes><input name=querySelector><input name=parentElement></form><img name=body><img name=querySelector><img name=documentElement><p>seen</p>`,
		"replaced":     `<title>replaced</title><script>JSON.stringify = () => 'x'.repeat(5e6); Array.prototype.map = Array.prototype.push = Function.prototype.call = () => { throw 1 }; Document.prototype.querySelector = () => null</script><p>seen</p>`,
		"workers":      `<title>workers</title><script>for (let i = 0; i < 50; i++) new Worker(URL.createObjectURL(new Blob(['while (true);'])))</script>`,
		"reload":       `<title>reload</title><script>location.reload()</script>`,
		"history":      `<title>history</title><script>for (let i = 0; i < 1e4; i++) try { history.pushState(null, '', '#' + i) } catch { break }</script>`,
	} {
		mux.Handle("/"+name, html(body))
	}
	mux.HandleFunc("/redirects/", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		nethttp.Redirect(w, r, r.URL.Path+"x", nethttp.StatusFound)
	})
	mux.HandleFunc("/silent", func(_ nethttp.ResponseWriter, r *nethttp.Request) { <-r.Context().Done() })
	mux.Handle("/loads", html(`<title>loads</title>there<img src=/silent>`))
	mux.HandleFunc("/trickle", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		w.Header().Set("Content-Type", "text/html")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "<p>more")
			w.(nethttp.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	endless := func(kind string) nethttp.HandlerFunc {
		return func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.Header().Set("Content-Type", kind)
			for piece := []byte(strings.Repeat("<p>word ", 8192)); r.Context().Err() == nil; {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		}
	}
	mux.HandleFunc("/endless", endless("text/html"))
	mux.HandleFunc("/file", endless("application/octet-stream"))
	return mux
}

// TestBombs has pages that never end, or take what they can. Every action ends in its time, with an error that says why, and the browser
// is of use afterwards.
func TestBombs(t *testing.T) {
	url, rule := serve(t, bombs())
	site := quickSite(t)
	for _, c := range []struct {
		name string
		// want is what opening the page and reading it leads to: the title, or one of the errors.
		title string
		errs  []error
	}{
		{name: "alerts", errs: []error{abi.ErrTimedOut, abi.ErrExhausted}},
		{name: "prompts", title: "prompts"},
		{name: "loop", errs: []error{abi.ErrTimedOut}},
		{name: "popups", title: "popups"},
		{name: "prints", title: "prints"},
		{name: "nested", title: "nested", errs: []error{abi.ErrUnavailable}},
		{name: "many", title: "many", errs: []error{abi.ErrTimedOut, abi.ErrExhausted}},
		{name: "title", title: strings.Repeat("x", 1000) + "…", errs: []error{abi.ErrExhausted}},
		{name: "clobbered", title: "clobbered"},
		{name: "replaced", title: "replaced"},
		{name: "workers", title: "workers", errs: []error{abi.ErrTimedOut}},
		{name: "history", title: "history"},
		{name: "reload", title: "reload", errs: []error{abi.ErrExhausted, abi.ErrTimedOut}},
		{name: "redirects/", errs: []error{abi.ErrUnavailable}},
		{name: "silent", errs: []error{abi.ErrTimedOut}},
		{name: "loads", title: "loads"},
		{name: "trickle", title: ""},
		{name: "endless", errs: []error{abi.ErrExhausted, abi.ErrTimedOut, abi.ErrUnavailable}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sessionAt(t, site, Rights{Rules: ruleList(rule), Budget: Budget{Pages: 30, Megabytes: 20}})
			since := time.Now()
			p, err := s.Open(t.Context(), url+"/"+c.name)
			o, err := take(t, p, err)
			if err == nil {
				p, err = s.Markdown(t.Context())
				_, err = take(t, p, err)
			}
			if took := time.Since(since); took > 3*quick.action {
				t.Errorf("it took %v", took)
			}
			switch {
			case err == nil && o.Page != nil && (o.Page.Title == c.title):
			case err != nil && isOne(err, c.errs):
			default:
				t.Errorf("got %+v, %v, want %q or one of %v", o.Page, err, c.title, c.errs)
			}
			// The session is of use, at the latest after a second try.
			for try := range 2 {
				p, err := s.Open(t.Context(), url+"/ok")
				if o, err := take(t, p, err); err == nil && o.Page.Title == "ok" {
					break
				} else if try == 1 && !errors.Is(err, abi.ErrExhausted) {
					t.Errorf("afterwards: %+v, %v", o.Page, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func ruleList[T any](all ...T) []T { return all }

func isOne(err error, all []error) bool {
	for _, one := range all {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// TestMemoryOfPages has a page take memory until it is killed. The page of another session in the same browser goes on.
func TestMemoryOfPages(t *testing.T) {
	url, rule := serve(t, bombs())
	site := quickSite(t)
	site.Configure(Kind, EngineOptions{times: quick, Memory: 150 << 20})
	other := sessionAt(t, site, Rights{Rules: ruleList(rule)})
	open(t, other, url+"/ok")
	s := sessionAt(t, site, Rights{Rules: ruleList(rule)})
	p, err := s.Open(t.Context(), url+"/memory")
	_, _ = take(t, p, err)
	eventually(t, "it is not killed", func() bool {
		p, err := s.Evaluate(t.Context(), "1", "[]")
		_, err = take(t, p, err)
		if err == nil {
			return false
		}
		if errors.Is(err, abi.ErrTimedOut) {
			return false
		}
		if !errors.Is(err, abi.ErrExhausted) || !strings.Contains(err.Error(), "memory of a page: 150 MiB") {
			t.Errorf("got %v", err)
		}
		return true
	})
	p, err = other.Evaluate(t.Context(), "document.title", "[]")
	if got := text(t, p, err); got != `"ok"` {
		t.Errorf("the other page: %s", got)
	}
	if p := open(t, s, url+"/ok"); p.Title != "ok" {
		t.Errorf("afterwards: %+v", p)
	}
}

// TestEventsOfPages has a page flood the host with events.
func TestEventsOfPages(t *testing.T) {
	url, rule := serve(t, bombs())
	s := sessionAt(t, quickSite(t), Rights{Rules: ruleList(rule)})
	p, err := s.Open(t.Context(), url+"/events")
	if _, err = take(t, p, err); errors.Is(err, abi.ErrTimedOut) {
		err = nil
	}
	for end := time.Now().Add(time.Minute); err == nil && time.Now().Before(end); {
		p, err = s.Evaluate(t.Context(), "new Promise((done) => setTimeout(done, 50))", "[]")
		if _, err = take(t, p, err); errors.Is(err, abi.ErrTimedOut) {
			err = nil
		}
	}
	if !isOne(err, []error{abi.ErrExhausted, abi.ErrUnavailable}) {
		t.Errorf("got %v", err)
	}
}

// TestLoopsEnd has evaluate loop without end. The page is there afterwards.
func TestLoopsEnd(t *testing.T) {
	url, rule := serve(t, bombs())
	s := sessionAt(t, quickSite(t), Rights{Rules: ruleList(rule)})
	open(t, s, url+"/ok")
	for _, code := range []string{"while (true);", "new Promise(() => 0)", "() => { for (;;) {} }"} {
		p, err := s.Evaluate(t.Context(), code, "[]")
		if err := failed(t, p, err); !errors.Is(err, abi.ErrTimedOut) {
			t.Errorf("%s: got %v", code, err)
		}
		p, err = s.Evaluate(t.Context(), "location.pathname", "[]")
		if got := text(t, p, err); got != `"/ok"` {
			t.Errorf("after %s: got %s", code, got)
		}
	}
}

// TestUnload leaves a page that wants to keep its visitor.
func TestUnload(t *testing.T) {
	url, rule := serve(t, bombs())
	s := sessionAt(t, quickSite(t), Rights{Rules: ruleList(rule)})
	open(t, s, url+"/beforeunload")
	p, err := s.Click(t.Context(), "body")
	_, _ = take(t, p, err)
	if p := open(t, s, url+"/ok"); p.Title != "ok" {
		t.Errorf("got %+v", p)
	}
}

// TestLargeDownload downloads without end.
func TestLargeDownload(t *testing.T) {
	url, rule := serve(t, bombs())
	s := sessionAt(t, capability.NewSite(t.TempDir(), nil), Rights{Rules: ruleList(rule)})
	t.Cleanup(func() { _ = s.grant.engine.Close() })
	open(t, s, url+"/file")
	p, err := s.Download(t.Context())
	if err := failed(t, p, err); !errors.Is(err, abi.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// TestCallEnds checks that an action ends with its call, whatever the page does.
func TestCallEnds(t *testing.T) {
	url, rule := serve(t, bombs())
	site := quickSite(t)
	for _, page := range []string{"loop", "alerts", "silent", "trickle"} {
		s := sessionAt(t, site, Rights{Rules: ruleList(rule)})
		open(t, s, url+"/ok")
		ctx, cancel := context.WithCancel(t.Context())
		p, err := s.Open(ctx, url+"/"+page)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "it does not begin", func() bool {
			s.held.tab.mu.Lock()
			defer s.held.tab.mu.Unlock()
			return s.held.tab.loading
		})
		since := time.Now()
		cancel()
		<-p.Subscribe(ctx).Done()
		if took := time.Since(since); took > 100*time.Millisecond {
			t.Errorf("%s: the action took %v to end", page, took)
		}
		since = time.Now()
		_ = s.Close()
		if took := time.Since(since); took > 100*time.Millisecond {
			t.Errorf("%s: the session took %v to close", page, took)
		}
	}
}

// TestBudgets uses up each part of a budget.
func TestBudgets(t *testing.T) {
	url, rule := serve(t, bombs())
	site := quickSite(t)
	for _, c := range []struct {
		budget Budget
		want   string
	}{
		{Budget{Pages: 2}, "exhausted: pages of the browser: 2; the option pages of the binding raises it"},
		{Budget{Seconds: 1}, "exhausted: seconds of the browser: 1; the option seconds of the binding raises it"},
	} {
		s := sessionAt(t, site, Rights{Rules: ruleList(rule), Budget: c.budget})
		var err error
		for end := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(end); {
			var p *Pending
			if c.budget.Pages > 0 {
				p, err = s.Open(t.Context(), url+"/ok")
			} else if p, err = s.Open(t.Context(), url+"/ok"); err == nil {
				if _, err = take(t, p, err); err != nil {
					break // the time was up while it loaded
				}
				p, err = s.Evaluate(t.Context(), "new Promise((done) => setTimeout(done, 200))", "[]")
			}
			_, err = take(t, p, err)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestManyAtOnce opens 50 pages at once, with places for four.
func TestManyAtOnce(t *testing.T) {
	var now, most atomic.Int64
	url, rule := serve(t, nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		html(`<title>ok</title>`).ServeHTTP(w, r)
	}))
	site := capability.NewSite(t.TempDir(), nil)
	site.Configure(Kind, EngineOptions{Tabs: 4})
	defer func() { _ = site.Close() }()
	var all sync.WaitGroup
	for range 50 {
		s := sessionAt(t, site, Rights{Rules: ruleList(rule)})
		all.Go(func() {
			defer func() { _ = s.Close() }()
			p, err := s.Open(t.Context(), url)
			if _, err = take(t, p, err); err != nil {
				t.Error(err)
				return
			}
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			p, err = s.Text(t.Context(), nil)
			if _, err = take(t, p, err); err != nil {
				t.Error(err)
			}
			now.Add(-1)
		})
	}
	all.Wait()
	if n := most.Load(); n > 4 {
		t.Errorf("%d pages at once", n)
	}
}

// TestPopups checks that a page gets no other window.
func TestPopups(t *testing.T) {
	url, rule := serve(t, bombs())
	s := sessionAt(t, quickSite(t), Rights{Rules: ruleList(rule)})
	open(t, s, url+"/popups")
	var targets struct{ TargetInfos []struct{ Type, URL string } }
	if err := s.held.tab.browser.Call(t.Context(), "", "Target.getTargets", nil, &targets); err != nil {
		t.Fatal(err)
	}
	if n := len(targets.TargetInfos); n > 3 {
		t.Errorf("%d targets: %+v", n, targets)
	}
}

// TestPagesShareTime opens two pages in one call. Their time counts together.
func TestPagesShareTime(t *testing.T) {
	url, rule := serve(t, bombs())
	c, err := Rights{Rules: ruleList(rule), Budget: Budget{Seconds: 2}}.Open(t.Context(), quickSite(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(abi.WithCall(t.Context()))
	defer cancel()
	var all []*Session
	for range 2 {
		opened, err := c.(*Grant).Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s := opened.(*Session)
		defer func() { _ = s.Close() }()
		open(t, s, url+"/ok")
		all = append(all, s)
	}
	for _, s := range all {
		eventually(t, "it does not end", func() bool {
			p, err := s.Evaluate(t.Context(), "new Promise((done) => setTimeout(done, 100))", "[]")
			_, err = take(t, p, err)
			return err != nil && strings.Contains(err.Error(), "seconds of the browser: 2")
		})
	}
	b := all[0].budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent > 3*time.Second || b != all[1].budget {
		t.Errorf("they were open for %v", b.spent)
	}
}

// TestWorkOfPages has a page take all processors. Its processor time is counted, and it ends when the time is over.
func TestWorkOfPages(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are measured on Linux only")
	}
	url, rule := serve(t, bombs())
	s := sessionAt(t, quickSite(t), Rights{Rules: ruleList(rule)})
	open(t, s, url+"/ok")
	const loop = "for (let i = 0; i < 4; i++) new Worker(URL.createObjectURL(new Blob(['while (true);'])))"
	p, err := s.Evaluate(t.Context(), loop, "[]")
	if _, err := take(t, p, err); err != nil {
		t.Fatal(err)
	}
	work := func() time.Duration {
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		return s.budget.work
	}
	eventually(t, "it is not counted", func() bool { return work() > time.Second })
	s.budget.charge(s.budget.limit() - work())
	p, err = s.Evaluate(t.Context(), "1", "[]")
	if _, err := take(t, p, err); err == nil || !strings.Contains(err.Error(), "seconds of the browser: 600, of processor time") {
		t.Errorf("got %v", err)
	}
	p, err = s.Open(t.Context(), url+"/ok")
	if _, err := take(t, p, err); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("another page: %v", err)
	}
}

// TestProxyOfLastingPage has the proxy of a page that no call pays for work longer than pages may be open.
func TestProxyOfLastingPage(t *testing.T) {
	url, rule := serve(t, bombs())
	c, err := Rights{Rules: ruleList(rule)}.Open(t.Context(), quickSite(t))
	if err != nil {
		t.Fatal(err)
	}
	g := c.(*Grant).Lasting()
	defer func() { _ = g.Close() }()
	var proxy context.Context
	exits := g.open
	g.open = func(ctx context.Context, l net.Listener, b *budget) (exit, error) {
		proxy = ctx
		return exits(ctx, l, b)
	}
	opened, err := g.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*Session)
	defer func() { _ = s.Close() }()
	open(t, s, url+"/ok")
	if err := abi.Work(proxy, time.Second); err != nil {
		t.Error(err)
	}
	if err := abi.Work(proxy, 10*time.Minute); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("got %v", err)
	}
	p, err := s.Text(t.Context(), nil)
	if _, err := take(t, p, err); err == nil || !strings.Contains(err.Error(), "of processor time") {
		t.Errorf("the page: %v", err)
	}
	open(t, s, url+"/ok") // another page
}
