package browser

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
)

// parsed reads a grant of a manifest.
func parsed(text string, short bool) (capability.Grant, error) {
	r := jsonform.New("grant", []byte(text))
	n := r.Parse()
	if r.Err != nil {
		return nil, errors.New(r.Err.Problem())
	}
	g := Kind.Parse
	if short {
		g = Kind.ParsePermission
	}
	grant := g(r, n)
	if r.Err != nil {
		return nil, errors.New(r.Err.Problem())
	}
	return grant, nil
}

func TestParse(t *testing.T) {
	rule := func(hosts ...string) (rules []http.Rule) {
		for _, h := range hosts {
			rules = append(rules, http.Rule{Host: h})
		}
		return rules
	}
	for text, want := range map[string]Rights{
		`[{"host": "a.example"}]`:                                                      {Rules: rule("a.example")},
		`[{"host": "*.a.example"}, {"host": "b.example"}]`:                             {Rules: rule("*.a.example", "b.example")},
		`[{"scheme": "http", "host": "a.example", "port": 8080}]`:                      {Rules: []http.Rule{{Scheme: "http", Host: "a.example", Port: 8080}}},
		`{"rules": [{"host": "a.example"}], "pages": 3, "seconds": 4, "megabytes": 5}`: {Rules: rule("a.example"), Budget: Budget{3, 4, 5}},
		`{"rules": [{"host": "a.example", "path": "/x", "methods": ["POST"], "credential": "c"}], "intercept": true}`: {
			Rules: []http.Rule{{Host: "a.example", Path: "/x", Methods: []string{"POST"}, Credential: "c"}}, Intercept: true,
		},
	} {
		got, err := parsed(text, false)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", text, got, err)
			continue
		}
		if again, err := parsed(string(capability.JSON(got.Document())), false); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: its document is read as %+v, %v", text, again, err)
		}
	}
	for text, want := range map[string]string{
		`[]`:                                    "the list is empty",
		`true`:                                  "where an object belongs",
		`{}`:                                    "rules",
		`[{"host": "a b"}]`:                     "host",
		`[{"path": "/x"}]`:                      "host",
		`[{"host": "a.example", "path": "/x"}]`: "a rule of browser has no path: inside TLS, a proxy sees the host and the port only",
		`[{"host": "a.example", "methods": ["GET"]}]`:                             "a rule of browser has no methods: inside TLS",
		`[{"host": "a.example", "credential": "c"}]`:                              "a rule of browser has no credential",
		`[{"host": "a.example", "headers": ["x"]}]`:                               "a rule of browser has no headers",
		`[{"host": "a.example", "maxResponse": 1}]`:                               "a rule of browser has no maxResponse",
		`{"rules": [{"host": "a.example", "maxResponse": 1}], "intercept": true}`: "maxResponse",
		`{"rules": [{"host": "a.example"}], "intercept": false}`:                  "this is not true",
		`{"rules": [{"host": "a.example"}], "pages": 0}`:                          "the budget has no such number of pages",
		`{"rules": [{"host": "a.example"}], "seconds": 1.5}`:                      "the budget has no such number of seconds",
		`{"rules": [{"host": "a.example"}], "megabytes": 1e9}`:                    "the budget has no such number of megabytes",
		`{"rules": [{"host": "a.example"}], "tabs": 1}`:                           "tabs",
	} {
		if _, err := parsed(text, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	if got, err := parsed(`["a.example", "*.b.example"]`, true); err != nil || !reflect.DeepEqual(got.(Rights).Hosts(), []string{"a.example", "*.b.example"}) {
		t.Errorf("the short form: %+v, %v", got, err)
	}
	for _, text := range []string{`["*"]`, `["a.example/x"]`, `[1]`, `["http://a.example"]`, `true`} {
		if got, err := parsed(text, true); err == nil {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

func TestParseSpec(t *testing.T) {
	set := capability.NewSet(Kind)
	for text, want := range map[string]string{
		"browser:https://example.com":                                            `[{"scheme":"https","host":"example.com"}]`,
		"browser:https://example.com/":                                           `[{"scheme":"https","host":"example.com"}]`,
		"browser:https://example.com:8443":                                       `[{"scheme":"https","host":"example.com","port":8443}]`,
		"browser:https://*.example.com":                                          `[{"scheme":"https","host":"*.example.com"}]`,
		"browser:http://127.0.0.1:8080,pages=2,seconds=3":                        `{"rules":[{"scheme":"http","host":"127.0.0.1","port":8080}],"pages":2,"seconds":3}`,
		"browser:https://a.example,megabytes=4,addresses=10.0.0.0/8":             `{"rules":[{"scheme":"https","host":"a.example"}],"megabytes":4}`,
		"browser:https://a.example/x/**,intercept,methods=GET+POST,credential=c": `{"rules":[{"scheme":"https","host":"a.example","methods":["GET","POST"],"path":"/x/**","credential":"c"}],"intercept":true}`,
	} {
		g, err := set.ParseSpec("web", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := string(capability.JSON(g.Document())); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"browser", "browser:", "browser:example.com", "browser:https://a.example/x", "browser:https://a.example,methods=GET", "browser:https://a.example,pages=x", "browser:https://a.example,credential=c", "browser:ftp://a.example"} {
		if g, err := set.ParseSpec("web", text); err == nil {
			t.Errorf("%s: got %+v", text, g)
		} else if mistake := (*capability.MistakeError)(nil); !errors.As(err, &mistake) || mistake.Fix != exampleSpec {
			t.Errorf("%s: got %v", text, err)
		}
	}
	one, _ := set.ParseSpec("web", "browser:https://a.example,pages=2")
	two, _ := set.ParseSpec("web", "browser:https://b.example,seconds=9")
	both := one.(Rights).Merge(two).(Rights)
	if !slices.Equal(both.Hosts(), []string{"a.example", "b.example"}) || both.Budget != (Budget{Pages: 2, Seconds: 9}) {
		t.Errorf("merged: %+v", both)
	}
	if both.Merge(http.Rights{}) != nil {
		t.Error("it merges with another kind")
	}
	wanted := Rights{Rules: []http.Rule{{Host: "c.example"}}}
	if got := both.Remedy("web=browser:https://a.example", wanted); got != "web=browser:https://c.example" {
		t.Errorf("the remedy is %s", got)
	}
}

// grants parses grants of a manifest.
func grants(t *testing.T, texts ...string) (all []Rights) {
	t.Helper()
	for _, text := range texts {
		g, err := parsed(text, false)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g.(Rights))
	}
	return all
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		have, want string
		covers     bool
	}{
		{`[{"host": "a.example"}]`, `[{"host": "a.example"}]`, true},
		{`[{"host": "*.a.example"}]`, `[{"host": "b.a.example"}]`, true},
		{`[{"host": "b.a.example"}]`, `[{"host": "*.a.example"}]`, false},
		{`[{"host": "a.example"}]`, `[{"host": "a.example", "port": 8443}]`, false},
		{`[{"host": "a.example"}]`, `[{"host": "a.example", "scheme": "http"}]`, false},
		{`[{"host": "a.example"}, {"host": "b.example"}]`, `[{"host": "b.example"}]`, true},
		{`{"rules": [{"host": "a.example"}], "pages": 5}`, `[{"host": "a.example"}]`, false},
		{`{"rules": [{"host": "a.example"}], "pages": 500}`, `[{"host": "a.example"}]`, true},
		{`[{"host": "a.example"}]`, `{"rules": [{"host": "a.example"}], "seconds": 601}`, false},
		{`[{"host": "a.example"}]`, `{"rules": [{"host": "a.example", "path": "/x"}], "intercept": true}`, true},
		{`[{"host": "a.example"}]`, `{"rules": [{"host": "a.example", "credential": "c"}], "intercept": true}`, false},
		{`{"rules": [{"host": "a.example", "methods": ["*"]}], "intercept": true}`, `[{"host": "a.example"}]`, false},
		{`{"rules": [{"host": "a.example"}], "intercept": true}`, `{"rules": [{"host": "a.example", "path": "/x"}], "intercept": true}`, true},
	} {
		g := grants(t, c.have, c.want)
		if got := g[0].Covers(g[1]); got != c.covers {
			t.Errorf("%s covers %s: %v", c.have, c.want, got)
		}
	}
	if (Rights{}).Covers(http.Rights{}) {
		t.Error("it covers another kind")
	}
}

func TestLimit(t *testing.T) {
	g := grants(t, `{"rules": [{"host": "*.a.example"}, {"host": "b.example"}], "pages": 50}`, `{"rules": [{"host": "x.a.example"}], "pages": 10, "seconds": 20}`)
	limited := g[0].Limit([]capability.Grant{g[1], http.Rights{}}).(Rights)
	if !slices.Equal(limited.Hosts(), []string{"*.a.example"}) || limited.Budget != (Budget{10, 20, 200}) || len(limited.Within) != 1 {
		t.Errorf("got %+v", limited)
	}
	if want := []string{
		"may visit https://*.a.example in a web browser, run what its pages say, and send them anything",
		"but only where this allows it as well:", "  https://x.a.example",
		"at most 10 pages, 20 seconds and 200 megabytes in each call",
	}; !slices.Equal(limited.Describe(), want) {
		t.Errorf("got %q", limited.Describe())
	}
	if want := []string{"browser https://*.a.example", "only within browser https://x.a.example", "browser up to 10 pages, 20 seconds, 200 megabytes"}; !slices.Equal(limited.Authority(), want) {
		t.Errorf("got %q", limited.Authority())
	}
	if g[0].Limit([]capability.Grant{grants(t, `[{"host": "c.example"}]`)[0]}) != nil {
		t.Error("there is something in common")
	}
	if g[0].Limit(nil) != nil {
		t.Error("nothing limits it")
	}
	s := newSession(t, http.Rule{Host: "x"})
	s.grant, _ = newGrant(s.grant.engine, capability.NewSite("", nil), limited)
	for url, allowed := range map[string]bool{"https://x.a.example/": true, "https://y.a.example/": false, "https://b.example/": false} {
		to, err := parseTarget(url)
		if err == nil {
			err = s.grant.check(to)
		}
		if (err == nil) != allowed {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// tested returns the session of a test, and what it lacks an answer for.
func tested(t *testing.T, answers string) (*Session, *[]string, error) {
	t.Helper()
	var missing []string
	d := &double.Test{Path: "env.web", Binding: "web", Missing: func(_, what, line string) { missing = append(missing, what+"|"+line) }}
	c, err := grants(t, `[{"host": "a.example"}]`)[0].Double(t.Context(), d, []byte(answers))
	if err != nil {
		return nil, nil, err
	}
	s, err := c.(*Grant).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.(*Session), &missing, nil
}

func TestDouble(t *testing.T) {
	s, missing, err := tested(t, `{"open https://a.example/": [{"title": "One"}, {"url": "https://a.example/2", "status": 404}], "markdown": {"text": "# Hi"},
		"evaluate 1 + 1": {"json": 2}, "evaluate f [1]": {"json": {"a": []}}, "download": {}, "pdf": {"file": "bytes"}, "click a": {"error": "gone"}}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if p := open(t, s, "https://a.example/"); *p != (Page{"https://a.example/", "One", 200}) {
		t.Errorf("got %+v", p)
	}
	if p := open(t, s, "https://a.example/"); *p != (Page{"https://a.example/2", "", 404}) {
		t.Errorf("got %+v", p)
	}
	p, err := s.Markdown(ctx)
	if got := text(t, p, err); got != "# Hi" {
		t.Errorf("got %s", got)
	}
	p, err = s.Evaluate(ctx, "f", "[1]")
	if got := text(t, p, err); got != `{"a": []}` {
		t.Errorf("got %s", got)
	}
	p, err = s.Download(ctx)
	if o := must(t, p, err); o.Case != OutcomeNothing {
		t.Errorf("got %+v", o)
	}
	p, err = s.PDF(ctx)
	if got, err := must(t, p, err).Blob.Text(ctx, 10); err != nil || got != "bytes" {
		t.Errorf("got %s, %v", got, err)
	}
	p, err = s.Fill(ctx, "a", "b")
	must(t, p, err)
	p, err = s.Click(ctx, "a")
	if err := failed(t, p, err); err.Error() != "unavailable: gone" {
		t.Errorf("got %v", err)
	}
	p, err = s.Open(ctx, "https://b.example/")
	if err := failed(t, p, err); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("got %v", err)
	}
	for _, do := range []func() (*Pending, error){
		func() (*Pending, error) { return s.Open(ctx, "https://a.example/") },
		func() (*Pending, error) { return s.HTML(ctx, new("p")) },
		func() (*Pending, error) { return s.Evaluate(ctx, "2", "[]") },
	} {
		p, err := do()
		if err := failed(t, p, err); !errors.Is(err, abi.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	}
	if want := []string{
		`action 3 of open https://a.example/|"open https://a.example/": {"title": "..."}`, `html p|"html p": {"text": "..."}`, `evaluate 2|"evaluate 2": {"json": {}}`,
	}; !slices.Equal(*missing, want) {
		t.Errorf("missing: %q", *missing)
	}
	for answers, want := range map[string]string{
		`{"visit x": {}}`:                            "this is not an action",
		`{"markdown": {"title": "x"}}`:               "markdown does not return that",
		`{"markdown": {"json": 1}}`:                  "markdown does not return that",
		`{"pdf": {"text": "x"}}`:                     "pdf does not return that",
		`{"fill a b": {"title": "x"}}`:               "fill does not return that",
		`{"open https://a.example/": {"text": "x"}}`: "open does not return that",
		`{"text": {"text": "x", "error": "y"}}`:      "more than one kind",
		`{"text": [null]}`:                           "null",
		`{"text": {"txt": "x"}}`:                     "unknown field",
	} {
		if _, _, err := tested(t, answers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", answers, err, want)
		}
	}
}

// TestRecorded makes the answers of a test from the operations of a call, and compares them.
func TestRecorded(t *testing.T) {
	none, some := abi.Variant{}, func(s string) abi.Variant { return abi.Variant{Case: 1, Value: s} }
	page := func(url string) abi.Value { return abi.Variant{Case: 1, Value: []abi.Value{url, "T", uint16(200)}} }
	written := func(s string) abi.Value { return abi.Variant{Case: 2, Value: s} }
	r := newRecorded(nil, "web")
	at := 0
	step := func(method string, outcome abi.Value, args ...abi.Value) double.Learner {
		t.Helper()
		at++
		made, err := r.Learn(double.Operation{At: at, Method: method, Args: args})
		if err != nil {
			t.Fatal(method, err)
		}
		if _, err := made.Learn(double.Operation{At: at, Method: "subscribe"}); err != nil {
			t.Error(err)
		}
		file, err := made.Learn(double.Operation{At: at, Method: "take", Value: outcome})
		if err != nil {
			t.Error(method, err)
		}
		return file
	}
	step("open", page("https://a.example/"), "https://a.example/")
	step("open", page("https://a.example/2"), "https://a.example/")
	step("click", page("https://a.example/3"), "#go")
	step("fill", none, "#q", "x")
	step("wait-for", page("https://a.example/3"), abi.Variant{Case: 1, Value: "Found"})
	step("text", written("all"), none)
	step("text", written("some"), some("p"))
	step("evaluate", written(`{"n":1}`), "f", "[1, 2]")
	step("evaluate", written(""), "g", "[]")
	file := step("download", abi.Variant{Case: 3})
	for _, o := range []double.Operation{{Method: "size", Value: uint64(3)}, {Method: "bytes", Args: []abi.Value{uint64(0), uint32(3)}, Value: []byte("abc")}} {
		if _, err := file.Learn(o); err != nil {
			t.Error(err)
		}
	}
	if made, err := r.Learn(double.Operation{Method: "open", Args: []abi.Value{"https://b.example/"}, Failed: "denied"}); made != nil || err != nil {
		t.Errorf("a denial: %v, %v", made, err)
	}
	all, err := r.Answers()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"click #go":{"url":"https://a.example/3","title":"T","status":200},"download":{"file":"abc"},"evaluate f [1,2]":{"json":{"n":1}},"evaluate g":{},` +
		`"open https://a.example/":[{"url":"https://a.example/","title":"T","status":200},{"url":"https://a.example/2","title":"T","status":200}],` +
		`"text":{"text":"all"},"text p":{"text":"some"},"wait-for text Found":{"url":"https://a.example/3","title":"T","status":200}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, _, err := tested(t, string(got)); err != nil {
		t.Errorf("a test does not take them: %v", err)
	}
	if _, err := r.Learn(double.Operation{Method: "pdf", Failed: "unavailable"}); err == nil {
		t.Error("a failure is learnt")
	}
	if _, err := r.Learn(double.Operation{Method: "pdf"}); err != nil {
		t.Error(err)
	}
	if _, err := r.Answers(); err == nil {
		t.Error("an outcome that nobody took is answered")
	}
}
