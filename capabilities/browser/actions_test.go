package browser

import (
	"bytes"
	"errors"
	"image/png"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
)

// site has the pages of the tests of actions.
func site() nethttp.Handler {
	mux := nethttp.NewServeMux()
	page := func(body string) nethttp.HandlerFunc { return html(body).ServeHTTP }
	mux.Handle("/{$}", page(`<title>Start</title>
<form action=/found><input id=q name=q placeholder=Search><select name=kind id=kind><option value=a>Apples<option value=b>Pears</select>
<input type=checkbox id=box name=box value=on><textarea id=area name=area></textarea><input type=file id=file><button class="go primary">Search now</button></form>
<a id=away href=/other target=_blank>Other</a> <a id=file-link href=/file>Get it</a>
<div id=out></div><div id=edit contenteditable>old</div>
<button id=late onclick="setTimeout(() => out.innerHTML = '<b id=came>It came</b>', 50)">Later</button>
<button id=covered style="position:absolute;left:0;top:500px">x</button><div id=cover style="position:absolute;left:0;top:490px;width:400px;height:100px;background:red"></div>
<p id=hidden style="display:none">never seen</p>
<script>for (const name of ['input', 'change']) q.addEventListener(name, () => out.textContent += name + ' ' + q.value + ';');
addEventListener('keydown', (e) => out.dataset.key = e.key + (e.ctrlKey ? ' ctrl' : ''));</script>`))
	mux.HandleFunc("/found", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		page("<title>Found</title><pre>"+r.URL.RawQuery+"</pre>")(w, r)
	})
	mux.Handle("/other", page("<title>Other</title>other"))
	mux.HandleFunc("/file", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="../../x.bin"`)
		_, _ = io.WriteString(w, "the file")
	})
	mux.HandleFunc("/missing", nethttp.NotFound)
	mux.Handle("/large", page(`<title>Large</title><script>document.write('<p>'.repeat(2000) + 'x'.repeat(3e6))</script>`))
	mux.Handle("/tall", page(`<title>Tall</title><div style="height:3000px">top</div><div id=small style="width:30px;height:20px;background:blue"></div>`))
	mux.Handle("/endless", page(`<div style="height:2000000px">x</div>`))
	return mux
}

func TestActions(t *testing.T) {
	url, rule := serve(t, site())
	s, ctx := newSession(t, rule), t.Context()
	takes := func(p *Pending, err error) (Outcome, error) { t.Helper(); return take(t, p, err) }
	if _, err := takes(s.Markdown(ctx)); !errors.Is(err, abi.ErrInvalid) || !strings.Contains(err.Error(), "call open first") {
		t.Errorf("without a page: %v", err)
	}
	open(t, s, url)
	must2 := func(p *Pending, err error) Outcome { t.Helper(); return must(t, p, err) }
	evaluate := func(code string) string {
		t.Helper()
		p, err := s.Evaluate(t.Context(), code, "[]")
		return text(t, p, err)
	}

	must2(s.Fill(ctx, "#q", "pears & plums"))
	must2(s.Fill(ctx, "#kind", "Pears"))
	must2(s.Fill(ctx, "#box", "true"))
	must2(s.Fill(ctx, "#area", "two\nlines"))
	must2(s.Fill(ctx, "#edit", "new"))
	if got, want := evaluate("[out.textContent, kind.value, box.checked, area.value, edit.textContent]"), `["input pears & plums;change pears & plums;","b",true,"two\nlines","new"]`; got != want {
		t.Errorf("after fill: %s, want %s", got, want)
	}
	if p := must2(s.Click(ctx, "button.go")).Page; p.Title != "Found" || !strings.HasSuffix(p.URL, "/found?q=pears+%26+plums&kind=b&box=on&area=two%0D%0Alines") {
		t.Errorf("after the form: %+v", p)
	}
	open(t, s, url)
	if p := must2(s.Click(ctx, "#away")).Page; p.Title != "Other" {
		t.Errorf("after a link with a target: %+v", p)
	}
	open(t, s, url)
	must2(s.Click(ctx, "#late"))
	if p := must2(s.WaitFor(ctx, Awaited{Case: AwaitedSelector, Selector: new("#came")})).Page; p.Title != "Start" {
		t.Errorf("waited: %+v", p)
	}
	must2(s.WaitFor(ctx, Awaited{Case: AwaitedText, Text: new("It came")}))
	must2(s.WaitFor(ctx, Awaited{Case: AwaitedURL, URL: new("http://*/")}))
	must2(s.Press(ctx, "Control+A"))
	if got := evaluate("out.dataset.key"); got != `"a ctrl"` && got != `"A ctrl"` {
		t.Errorf("pressed: %s", got)
	}
	must2(s.Fill(ctx, "#q", "x"))
	if p := must2(s.Press(ctx, "Enter")).Page; p.Title != "Found" {
		t.Errorf("after Enter: %+v", p)
	}
	if p := open(t, s, url+"/missing"); p.Status != 404 {
		t.Errorf("missing: %+v", p)
	}

	if o := must2(s.Download(ctx)); o.Case != OutcomeNothing {
		t.Errorf("without a download: %+v", o)
	}
	for _, get := range []func(){
		func() { open(t, s, url); must2(s.Click(t.Context(), "#file-link")) },
		func() { open(t, s, url+"/file") },
	} {
		get()
		o := must2(s.Download(ctx))
		if o.Case != OutcomeBlob {
			t.Fatalf("download: %+v", o)
		}
		if got, err := o.Blob.Text(ctx, 100); err != nil || got != "the file" {
			t.Errorf("download: %q, %v", got, err)
		}
		_ = o.Blob.Close()
	}

	open(t, s, url+"/tall")
	for _, c := range []struct {
		full     bool
		selector *string
		w, h     int
	}{{false, nil, 1280, 800}, {true, nil, 1280, 3036}, {false, new("#small"), 30, 20}} {
		o := must2(s.Screenshot(ctx, c.full, c.selector))
		data, err := io.ReadAll(o.Blob.Reader())
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil || picture.Width != c.w || picture.Height < c.h-20 || picture.Height > c.h+20 {
			t.Errorf("picture: %+v, %v, want %d x %d", picture, err, c.w, c.h)
		}
		_ = o.Blob.Close()
	}
	o := must2(s.PDF(ctx))
	if start, err := o.Blob.Bytes(ctx, 0, 5); err != nil || string(start) != "%PDF-" || o.Blob.MediaType(ctx) != "application/pdf" {
		t.Errorf("pdf: %q, %v", start, err)
	}
	_ = o.Blob.Close()
	must2(s.Leave(ctx))
	if _, err := takes(s.Markdown(ctx)); !errors.Is(err, abi.ErrInvalid) {
		t.Errorf("after leaving: %v", err)
	}
}

// failed is the error of an action.
func failed(t testing.TB, p *Pending, err error) error {
	t.Helper()
	_, err = take(t, p, err)
	if err == nil {
		t.Error("it did not fail")
		return errors.New("none")
	}
	return err
}

func TestErrorsTeach(t *testing.T) {
	url, rule := serve(t, site())
	s, ctx := newSession(t, rule), t.Context()
	open(t, s, url)
	for _, c := range []struct {
		name string
		do   func() (*Pending, error)
		want string
	}{
		{"nothing matches", func() (*Pending, error) { return s.Click(ctx, "button#search") }, `not found: no element matches button#search; near it: button.go.primary ("Search now"), input#q ("Search")`},
		{"no selector", func() (*Pending, error) { return s.Click(ctx, "###") }, `invalid: ### is not a CSS selector; write one like "#id", "button.save" or "input[name=q]"`},
		{"empty", func() (*Pending, error) { return s.Text(ctx, new(" ")) }, `invalid: the selector is empty`},
		{"covered", func() (*Pending, error) { return s.Click(ctx, "#covered") }, `invalid: #covered is covered by div#cover`},
		{"hidden", func() (*Pending, error) { return s.Click(ctx, "#hidden") }, `invalid: p#hidden ("never seen") is there, but it cannot be seen`},
		{"upload", func() (*Pending, error) { return s.Fill(ctx, "#file", "/etc/passwd") }, `invalid: files cannot be uploaded`},
		{"option", func() (*Pending, error) { return s.Fill(ctx, "#kind", "Plums") }, `invalid: select#kind has no such option; it has "Apples", "Pears"`},
		{"checkbox", func() (*Pending, error) { return s.Fill(ctx, "#box", "yes") }, `invalid: input#box is a checkbox: fill it with "true" or "false"`},
		{"no field", func() (*Pending, error) { return s.Fill(ctx, "#away", "x") }, `invalid: a#away ("Other") is no field; near it: `},
		{"key", func() (*Pending, error) { return s.Press(ctx, "Return") }, `invalid: there is no key "Return"; write one character, "Control+A", or one of ArrowDown`},
		{"thrown", func() (*Pending, error) { return s.Evaluate(ctx, "nothing.there", "[]") }, `invalid: the code failed in the page: ReferenceError: nothing is not defined`},
		{"syntax", func() (*Pending, error) { return s.Evaluate(ctx, "if (", "[]") }, `invalid: the code failed in the page: SyntaxError`},
		{"arguments", func() (*Pending, error) { return s.Evaluate(ctx, "1", "{") }, `invalid: the arguments are not a list as JSON`},
		{"cyclic", func() (*Pending, error) { return s.Evaluate(ctx, "window", "[]") }, `invalid: the code failed in the page: TypeError: Converting circular structure`},
		{"both", func() (*Pending, error) { return s.Screenshot(ctx, true, new("#q")) }, `invalid: a picture is of the full page or of an element, not both`},
		{"scheme", func() (*Pending, error) { return s.Open(ctx, "file:///etc/passwd") }, `invalid: file:///etc/passwd does not begin with https:// or http://`},
		{"user", func() (*Pending, error) { return s.Open(ctx, "https://a:b@example.com/") }, `invalid: a URL cannot have a user name or a password`},
		{"host", func() (*Pending, error) { return s.Open(ctx, "https://example.com/x?secret") }, `denied: open https://example.com: no rule names the host example.com; the rules name 127.0.0.1`},
		{"scheme of a rule", func() (*Pending, error) { return s.Open(ctx, strings.Replace(url, "http:", "https:", 1)) }, `does not allow the scheme https`},
	} {
		p, err := c.do()
		if got := failed(t, p, err).Error(); !strings.HasPrefix(got, c.want) && (c.name != "scheme of a rule" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	p, err := s.Open(ctx, "https://example.com/x")
	denied, _ := errors.AsType[*abi.Error](failed(t, p, err))
	if want := `"bindings": { "b": {"browser":[{"host":"example.com"}]} }`; denied == nil || denied.Denial.Wants.Remedy("b") != want {
		t.Errorf("the remedy is %s, want %s", denied.Denial.Wants.Remedy("b"), want)
	}
	gone := httptest.NewServer(nil)
	at := strings.Replace(gone.URL, "http:", "https:", 1)
	gone.Close() // nothing listens there any more
	there, err := http.ParseRule(at + ",addresses=127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	p, err = newSession(t, there).Open(ctx, at)
	if err := failed(t, p, err); !errors.Is(err, abi.ErrUnavailable) || !strings.Contains(err.Error(), "the page did not open: its server cannot be reached") {
		t.Errorf("no server: %v", err)
	}
	open(t, s, url+"/large")
	for name, do := range map[string]func() (*Pending, error){
		"text":     func() (*Pending, error) { return s.Text(ctx, nil) },
		"evaluate": func() (*Pending, error) { return s.Evaluate(ctx, "'x'.repeat(3e6)", "[]") },
	} {
		p, err := do()
		if err := failed(t, p, err); !errors.Is(err, abi.ErrTooLarge) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	p, err = s.Markdown(ctx)
	if got := text(t, p, err); len(got) < maxMarkdown/2 || len(got) > maxMarkdown+200 || !strings.Contains(got, "[The page continues.") {
		t.Errorf("%d bytes of Markdown, which end with %q", len(got), got[max(0, len(got)-100):])
	}
	open(t, s, url+"/endless")
	p, err = s.Screenshot(ctx, true, nil)
	if err := failed(t, p, err); !errors.Is(err, abi.ErrInvalid) || !strings.Contains(err.Error(), "is too large") {
		t.Errorf("a huge picture: %v", err)
	}
}

func TestEvaluate(t *testing.T) {
	url, rule := serve(t, site())
	s, ctx := newSession(t, rule), t.Context()
	open(t, s, url)
	for _, c := range []struct{ code, arguments, want string }{
		{"1 + 1", "[]", "2"},
		{"document.title", "[]", `"Start"`},
		{"(a, b) => ({ sum: a + b.n })", `[1, {"n": 2}]`, `{"sum":3}`},
		{"async () => { await null; return [1] }", "[]", "[1]"},
		{"const x = 3; return x * args[0]", "[2]", "6"},
		{"undefined", "[]", ""},
		{"null", "[]", "null"},
		{"String.fromCodePoint(0x2028, 0x1f600)", "[]", "\"\u2028\U0001f600\""},
		{"// a comment\n7 // and another", "[]", "7"},
	} {
		p, err := s.Evaluate(ctx, c.code, c.arguments)
		if got := text(t, p, err); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}
