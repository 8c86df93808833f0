package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
)

// check runs tests and compares what came of each: "" for one that passes, or else a part of its problem as text.
func check(t *testing.T, r Request, cases [][2]string) []Result {
	t.Helper()
	if r.Bindings == nil {
		r.Bindings = bindings
	}
	for i, c := range cases {
		test := parse(t, c[0])
		test.Name = fmt.Sprint(i)
		r.Tests = append(r.Tests, test)
	}
	results, err := Run(t.Context(), r)
	if err != nil || len(results) != len(cases) {
		t.Fatalf("%d results of %d, %v", len(results), len(cases), err)
	}
	for i, result := range results {
		got, want := "", cases[i][1]
		if result.Problem != nil {
			got = result.Problem.String()
		}
		if (got == "") != result.Passed || (want == "") != result.Passed || !strings.Contains(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", cases[i][0], got, want)
		}
		if len(got) > 8000 || printable.Text(got) != got {
			t.Errorf("%s\nthe problem is long or not printable: %q", cases[i][0], got)
		}
		if result.Name != fmt.Sprint(i) || result.Tool == "" || result.Duration <= 0 {
			t.Errorf("%+v", result)
		}
	}
	return results
}

func TestRun(t *testing.T) {
	c := build(t)
	results := check(t, Request{Component: c}, [][2]string{
		// The result.
		{`{"tool": "echo", "input": {"value": {"b": 1, "a": [1.50]}}, "expect": {"a": [1.5], "b": 1e0}}`, ""},
		{`{"tool": "echo", "input": {"value": {"a": [1, 2]}}, "expect": {"a": [1, 3]}}`, `test "1" of "echo": result.a[1]: expected 3, got 2`},
		{`{"tool": "echo", "expect": null}`, ""},
		{`{"tool": "echo", "input": {"value": 1}, "error": "x"}`, `expected an error with "x", got the result 1`},
		{`{"tool": "echo", "input": {"value": 1}}`, `manifest.json: test "4" of "echo": tests[4]: a test needs either expect or error`},
		{`{"tool": "echo", "expect": 1, "error": "x"}`, "needs either"},
		{`{"tool": "none", "expect": 1}`, `unknown tool "none"; there are: echo, strict,`},
		{`{"tool": "strict", "input": {"n": "x"}, "expect": 1}`, "invalid input: /n: got string, want number"},
		{`{"tool": "strict", "input": {}, "error": "missing property 'n'"}`, ""},
		// What is thrown.
		{`{"tool": "throws", "error": "RangeError: too far"}`, ""},
		{`{"tool": "throws", "expect": 1}`, `tool.ts:7:34: test "10" of "throws": RangeError: too far`},
		{`{"tool": "throws", "error": "too near"}`, `tool.ts:7:34: test "11" of "throws": expected an error with "too near", got: RangeError: too far`},
		// The network.
		{`{"tool": "titles", "input": {"url": "https://api.example.com/repos/a?b=1&c"}, "expect": ["x"],
			"env": {"github": {"GET https://API.example.com:443/repos/a?b=1&c#d": {"json": [{"title": "x"}]}}}}`, ""},
		{`{"tool": "get", "input": {"url": "https://api.example.com/repos", "method": "POST", "body": "{}"},
			"env": {"github": {"POST https://api.example.com/repos": {"status": 201, "headers": {"X-Rate": "5"}, "text": "made"}}},
			"expect": {"status": 201, "url": "https://api.example.com/repos", "headers": {"content-type": "text/plain;charset=utf-8", "x-rate": "5"}, "text": "made"}}`, ""},
		{`{"tool": "twice", "input": {"url": "https://api.example.com/repos"}, "expect": ["1", "2"],
			"env": {"github": {"GET https://api.example.com/repos": [{"text": "1"}, {"text": "2"}]}}}`, ""},
		{`{"tool": "twice", "input": {"url": "https://api.example.com/repos"}, "expect": ["1", "1"],
			"env": {"github": {"GET https://api.example.com/repos": {"text": "1"}}}}`, ""},
		{`{"tool": "twice", "input": {"url": "https://api.example.com/repos"}, "expect": ["1", "1"],
			"env": {"github": {"GET https://api.example.com/repos": [{"text": "1"}]}}}`, "it gives no answer for request 2 of GET https://api.example.com/repos; write"},
		{
			`{"tool": "titles", "input": {"url": "https://api.example.com/repos?a=\"b&c"}, "expect": [], "env": {"github": {}}}`,
			`manifest.json: test "17" of "titles": it gives no answer for GET https://api.example.com/repos?a=%22b&c; write "env": {"github": {"GET https://api.example.com/repos?a=%22b&c": {"status": 200, "json": {}}}}`,
		},
		{
			`{"tool": "both", "expect": ["rejected", "rejected"], "env": {"github": {}}}`,
			`write "env": {"github": {"GET https://api.example.com/repos/a": {"status": 200, "json": {}}, "GET https://api.example.com/repos/b": {"status": 200, "json": {}}}}`,
		},
		{`{"tool": "get", "input": {"url": "https://api.example.com/repos/old"}, "env": {"github": {
			"GET https://api.example.com/repos/old": {"status": 301, "headers": {"location": "/repos/new"}}, "GET https://api.example.com/repos/new": {}}},
			"expect": {"status": 200, "url": "https://api.example.com/repos/new", "headers": {}, "text": ""}}`, ""},
		{`{"tool": "get", "input": {"url": "https://key.example.com/?a=1"}, "env": {"github": {"GET https://key.example.com/?a=1": {"text": "stile-test-credential-key"}}},
			"expect": {"status": 200, "url": "https://key.example.com/?a=1", "headers": {"content-type": "text/plain;charset=utf-8"}, "text": "*************************"}}`, ""},
		{`{"tool": "timeout", "env": {"github": {"GET https://api.example.com/repos/a": {"text": "in time"}}}, "expect": ["in time", 1767225600000]}`, ""},
		// Files and values.
		{`{"tool": "read", "input": {"path": "a.md"}, "env": {"notes": {"/a.md": "text"}}, "expect": "text"}`, ""},
		{`{"tool": "look", "input": {"path": "/notes/a.md"}, "env": {"notes": {"/a.md": "text"}, "docs": {}}, "expect": "text"}`, ""},
		{`{"tool": "write", "input": {"path": "a/b", "binding": "notes"}, "env": {"notes": {}}, "expect": "new"}`, ""},
		{`{"tool": "list", "env": {"notes": {"/a.md": "", "b/c": ""}}, "expect": [["a.md", "b"], "2026-01-01T00:00:00.000Z"]}`, ""},
		{`{"tool": "count", "env": {"cache": {"n": "41"}}, "expect": 42}`, ""},
		{`{"tool": "count", "env": {"cache": {"n": "x"}}, "error": "invalid"}`, ""},
		{`{"tool": "keep", "env": {"cache": {}, "notes": {}}, "expect": 1}`, ""},
		{`{"tool": "leak", "env": {"cache": {}, "notes": {}}, "expect": [null, 0]}`, ""},
		// Time, chance and the log.
		{`{"tool": "wait", "expect": [1767225600000, 172800000, ["a", "b"]]}`, ""},
		{`{"tool": "wait", "env": {"clock": "2026-03-01T12:00:00+01:00"}, "expect": [1772362800000, 172800000, ["a", "b"]]}`, ""},
		{`{"tool": "log", "expect": null}`, ""},
		{`{"tool": "shout", "expect": null}`, ""},
		{`{"tool": "mumble", "expect": null}`, ""},
		// Tools.
		{`{"tool": "call", "input": {"name": "a_b"}, "env": {"helpers": {"a_b": {"output": {"n": 1}}}}, "expect": {"n": 1}}`, ""},
		{`{"tool": "call", "input": {"name": "a_b"}, "env": {"helpers": {"a_b": {"error": "full"}}}, "expect": "unavailable | unavailable: a_b: full"}`, ""},
		{`{"tool": "call", "input": {"name": "c"}, "env": {"helpers": {}}, "expect": 1}`, `it gives no answer for a call of the tool "c"; write "env": {"helpers": {"c": {"output": {}}}}`},
	})
	if got := strings.Join(results[32].Log, "\n"); got != "info: hello\nerror: \\x1b[31mred" {
		t.Errorf("the log is %q", got)
	}
	if got := len(strings.Join(results[33].Log, "")); got < 10_000 || got > 16<<10+1000 {
		t.Errorf("%d bytes of log are kept", got)
	}
	if got := len(results[34].Log); got != maxLines {
		t.Errorf("%d lines of log are kept", got)
	}
	if results[0].Usage.CPU <= 0 || results[26].Usage.Operations == 0 {
		t.Errorf("usage is not told: %+v", results[0].Usage)
	}
}

// TestMistakes has tests that cannot be run as they are.
func TestMistakes(t *testing.T) {
	env := func(env string) string { return `{"tool": "echo", "expect": null, "env": ` + env + `}` }
	values := map[string]string{}
	for i := range double.MaxAnswers + 1 {
		values[fmt.Sprint(i)] = ""
	}
	many, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	check(t, Request{Component: build(t), Bindings: append(slices.Clip(bindings),
		extension.Binding{Name: "crm", Grant: capability.Custom{Name: "acme:crm/contacts@1.0.0"}})}, [][2]string{
		{env(`{"githbu": {}}`), `manifest.json: test "0" of "echo": tests[0].env["githbu"]: the extension has no binding of that name; write one of the bindings: blob, cache,`},
		{env(`{"\u001b[31m": {}}`), `env["\x1b[31m"]: the extension has no binding`},
		{env(`{"crm": {}}`), "tests[2].env.crm: a test cannot give answers for acme:crm/contacts@1.0.0 yet"},
		{env(`{"console": 1}`), "cannot give answers"},
		{env(`{"clock": "now"}`), `this is not a valid start time for the test; write "2026-01-01T00:00:00Z"`},
		{env(`{"clock": "1969-01-01T00:00:00Z"}`), "this is not a valid start time"},
		{env(`{"github": []}`), "tests[6].env.github: the answers: a array does not belong there; write an object like"},
		{env(`{"github": null}`), "null where an object belongs"},
		{env(`{"github": {"GET https://a.example.com/": {"stauts": 200}}}`), `unknown field "stauts"`},
		{env(`{"github": {"GET https://a.example.com/": {"status": "200"}}}`), "a string does not belong there"},
		{env(`{"github": {"GET https://a.example.com/": {"status": 101}}}`), "the status 101 is not in 200 to 599"},
		{env(`{"github": {"GET https://a.example.com/": {"json": null, "text": ""}}}`), "the answer has both json and text"},
		{env(`{"github": {"GET https://a.example.com": {}, "GET https://A.example.com:443/": {}}}`), "this request appears twice"},
		{env(`{"github": {"https://a.example.com": {}}}`), "this is not a request"},
		{env(`{"github": {"get https://a.example.com": {}}}`), "this is not a request"},
		{env(`{"github": {"GET file:///etc/passwd": {}}}`), "this is not a request"},
		{env(`{"github": {"GET https://u:p@a.example.com/": {}}}`), "this is not a request"},
		{env(`{"github": {"GET https://a.example.com/": {"headers": {"X": "a\r\nSet-Cookie: b"}}}}`), `no server can send the header "X"`},
		{env(`{"github": {"GET https://a.example.com/": {"headers": {"a b": ""}}}}`), `no server can send the header "a b"`},
		{env(`{"github": {"GET https://a.example.com/": [{}, {"headers": {"Content-Length": "9"}}]}}`), "the header Content-Length is made by the connection"},
		{env(`{"notes": {"../a": ""}}`), `tests[20].env.notes["../a"]: denied`},
		{env(`{"notes": {"a/../../docs": ""}}`), "denied"},
		{env(`{"notes": {"a\\b": ""}}`), "invalid"},
		{env(`{"notes": {"a\u0000b": ""}}`), "invalid"},
		{env(`{"notes": {"a/": ""}}`), "names a directory"},
		{env(`{"notes": {"/a": "", "/a/b": ""}}`), `env.notes["/a/b"]`},
		{env(`{"notes": {"` + strings.Repeat("x", 300) + `": ""}}`), `"]: invalid: path "xxx`},
		{env(`{"notes": ` + string(many) + `}`), "there are 101 entries; write at most 100"},
		{env(`{"cache": {"k": null}}`), `env.cache["k"]: null, which is not an answer; write an object like {"key": "value"}`},
		{env(`{"notes": {"/a.md": null}}`), `env.notes["/a.md"]: null`},
		{env(`{"github": {"GET https://a.example.com/": null}}`), `env.github["GET https://a.example.com/"]: null`},
		{env(`{"github": {"GET https://a.example.com/": [{}, null]}}`), "null, which is not an answer"},
		{env(`{"helpers": {"a": null}}`), `env.helpers["a"]: null`},
		{env(`{"cache": {"k": 1}}`), "a number does not belong there"},
		{env(`{"cache": {"": "v"}}`), "invalid"},
		{env(`{"helpers": {"a": {}}}`), `["a"] needs either output or error`},
		{env(`{"helpers": {"a": {"output": 1, "error": "x"}}}`), "needs either"},
		{env(`{"random": 1}`), "not the bytes to draw"},
		{env(`{"random": "0g"}`), "not the bytes to draw"},
		{env(`{"random": ""}`), "not the bytes to draw"},
		{env(`{"random": null}`), "not the bytes to draw"},
	})
}

// TestAttacks has tools and tests that would like more than they get.
func TestAttacks(t *testing.T) {
	c := build(t)
	limits := host.Limits{CPU: 300 * time.Millisecond, Wall: 30 * time.Second, Memory: 32 << 20}
	results := check(t, Request{Component: c, Limits: limits}, [][2]string{
		{`{"tool": "loops", "expect": 1}`, `test "0" of "loops": limit reached: cpu (300ms)`},
		{`{"tool": "loops", "error": "limit"}`, "limit reached: cpu"}, // nobody expects that
		{`{"tool": "sleeps", "expect": 1}`, "limit reached: "},
		{`{"tool": "never", "expect": 1}`, "limit reached: promise"},
		{`{"tool": "big", "input": {"size": 1048576}, "expect": 1}`, "limit reached: output (1 MiB)"},
		{`{"tool": "big", "input": {"size": 1000000}, "expect": 1}`, `result: expected 1, got "xxx`},
		{`{"tool": "eats", "expect": 1}`, "limit reached: memory"},
		{`{"tool": "forges", "error": "fine"}`, ""},
		{`{"tool": "forges", "expect": 1}`, `\u202efine`},
		// Answers are no authority.
		{
			`{"tool": "get", "input": {"url": "https://evil.example.com/"}, "env": {"github": {"GET https://evil.example.com/": {"text": "in"}}}, "expect": 1}`,
			`denied: GET https://evil.example.com/ through "github": no rule names the host evil.example.com; the rules name api.example.com, key.example.com, 127.0.0.1; write "bindings": { "github":`,
		},
		{`{"tool": "get", "input": {"url": "https://api.example.com/repos", "method": "DELETE"}, "env": {"github": {"DELETE https://api.example.com/repos": {}}}, "error": "does not allow the method DELETE"}`, ""},
		{`{"tool": "get", "input": {"url": "https://api.example.com/repos"}, "env": {"github": {
			"GET https://api.example.com/repos": {"status": 302, "headers": {"location": "http://169.254.169.254/"}}, "GET http://169.254.169.254/": {"text": "in"}}},
			"error": "redirected by https://api.example.com/repos: no rule names the host 169.254.169.254"}`, ""},
		{`{"tool": "narrow", "input": {"url": "https://api.example.com/repos"}, "env": {"github": {"GET https://api.example.com/repos": {"text": "in"}}},
			"expect": "denied | denied: GET https://api.example.com/repos: the client was narrowed, and no rule names the host api.example.com; the rules name other.example.com"}`, ""},
		{`{"tool": "read", "input": {"path": "../b"}, "env": {"notes": {"/a": ""}, "docs": {"/b": "in"}}, "error": "the path leaves the directory that was granted"}`, ""},
		{`{"tool": "write", "input": {"path": "a", "binding": "docs"}, "env": {"docs": {}}, "error": "denied"}`, ""},
		// An operation that the test does not foresee is denied, whether the tool handles the denial or not.
		{`{"tool": "count", "expect": 1}`, `manifest.json: test "15" of "count": it gives no answer for the binding cache; write "env": {"cache": {}}`},
		{`{"tool": "count", "error": "denied"}`, "it gives no answer for the binding cache"},
		{`{"tool": "optional", "expect": "none"}`, "it gives no answer for the binding cache"},
		{`{"tool": "read", "input": {"path": "a"}, "error": "denied"}`, "it gives no answer for the binding notes"},
		{`{"tool": "titles", "input": {"url": "https://api.example.com/repos"}, "error": "denied"}`, "it gives no answer for the binding github"},
		// A server that is there: 127.0.0.1 is allowed by a rule, and nothing of the machine answers.
		{`{"tool": "get", "input": {"url": "http://127.0.0.1/"}, "env": {"github": {}}, "expect": 1}`, "it gives no answer for GET http://127.0.0.1/"},
	})
	if d := results[15].Usage.Denials; len(d) != 1 || d[0].Reason != "this test gives no answers for cache: add env.cache to the test" || d[0].Binding != "cache" {
		t.Errorf("the denials are %+v", d)
	}
	if p := results[8].Problem; p.File != "" && p.File != "tool.ts" {
		t.Errorf("the tool says where it failed: %+v", p)
	}
}

// TestOutside looks for anything in a test that is not of the test: two runs of it see the same.
func TestOutside(t *testing.T) {
	c := build(t)
	once := func() []Result {
		results, err := Run(t.Context(), Request{Component: c, Bindings: bindings, Tests: []extension.Test{
			parse(t, `{"name": "draws", "tool": "draw", "expect": 1}`), parse(t, `{"name": "draws", "tool": "draw", "expect": 1}`),
			parse(t, `{"tool": "around", "env": {"github": {}}, "expect": 1}`),
		}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range results {
			results[i].Duration, results[i].Usage = 0, host.Usage{}
		}
		return results
	}
	first := once()
	if !reflect.DeepEqual(first, once()) || first[0].Problem.Text != first[1].Problem.Text {
		t.Errorf("two runs differ: %s", first[2].Problem)
	}
	const want = `{"env":["blob","cache","clock","console","docs","github","helpers","notes","random"],"globals":[],"now":1767225600000,"performance":0,"random":0.`
	if got := first[2].Problem.Text; !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBounds(t *testing.T) {
	c := build(t)
	echo := parse(t, `{"tool": "echo", "expect": null}`)
	tests := make([]extension.Test, extension.MaxTests+50)
	for i := range tests {
		tests[i] = echo
	}
	results, err := Run(t.Context(), Request{Component: c, Bindings: bindings, Tests: tests})
	if err != nil || len(results) != extension.MaxTests+1 || !results[extension.MaxTests-1].Passed || results[extension.MaxTests].Passed ||
		!strings.Contains(results[extension.MaxTests].Problem.String(), "tests: there are 150; write at most 100") {
		t.Errorf("%d results, %v; the last is %+v", len(results), err, results[len(results)-1])
	}

	// A guest that waits for what never comes, so that only the clock of the machine ends it.
	stuck := parse(t, `{"tool": "loops", "expect": 1}`)
	results, err = Run(t.Context(), Request{
		Component: c, Bindings: bindings, Tests: []extension.Test{stuck, stuck, stuck, stuck, stuck, stuck, stuck, echo},
		Limits: host.Limits{Wall: 50 * time.Millisecond},
	})
	if err != nil || len(results) != 8 || !strings.Contains(results[0].Problem.Text, "limit reached: wall (50ms)") ||
		!strings.Contains(results[7].Problem.Text, "it was not run, because earlier tests used up the 300ms that all tests share") {
		t.Errorf("got %+v, %v", results[len(results)-1].Problem, err)
	}
}

// TestWithoutNames has two tests of one tool, which their problems tell apart.
func TestWithoutNames(t *testing.T) {
	echo := parse(t, `{"tool": "echo", "input": {"value": 1}, "expect": 2}`)
	mistaken := parse(t, `{"tool": "echo", "env": {"clock": "now"}, "expect": null}`)
	results, err := Run(t.Context(), Request{Component: build(t), Bindings: bindings, Tests: []extension.Test{echo, echo, mistaken}})
	if err != nil || len(results) != 3 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for i, want := range []string{`test "tests[0]" of "echo": result: expected 2, got 1`, `test "tests[1]" of "echo": result: expected 2`, `test "tests[2]" of "echo": tests[2].env.clock: `} {
		if got := results[i].Problem.Text; !strings.HasPrefix(got, want) || results[i].Name != "" {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestFaults has what is not the author's to mend.
func TestFaults(t *testing.T) {
	c := build(t)
	echo := parse(t, `{"tool": "echo", "expect": null}`)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if results, err := Run(ctx, Request{Component: c, Tests: []extension.Test{echo}}); !errors.Is(err, gone) || len(results) != 0 {
		t.Errorf("got %+v, %v", results, err)
	}
	notes := parse(t, `{"tool": "read", "input": {"path": "a"}, "env": {"notes": {"a": "x"}}, "expect": "x"}`)
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	results, err := Run(t.Context(), Request{Component: c, Bindings: bindings, Tests: []extension.Test{echo, notes, echo}})
	if !errors.Is(err, os.ErrNotExist) || len(results) != 1 || !results[0].Passed {
		t.Errorf("without a folder for temporary files: %+v, %v", results, err)
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if results, err = Run(t.Context(), Request{Component: c, Bindings: bindings, Tests: []extension.Test{notes}}); err != nil || !results[0].Passed {
		t.Errorf("got %+v, %v", results, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("a run leaves %v, %v", left, err)
	}
}

// FuzzAnswers reads what a test says that servers answer: whatever is wrong with it is its author's mistake.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{`{"GET https://api.example.com/x": {"status": 200, "json": {}}}`, `{"GET http://a/": [{"text": ""}, {"headers": {"a": "b"}}]}`, `{"GET http://[::1]:80?a#b": null}`, `null`, `{"": {}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			t.Skip() // a manifest was parsed before
		}
		_, err := http.Rights{}.Double(t.Context(), &double.Test{Path: "env.github"}, raw)
		if wrong, ok := errors.AsType[*double.MistakeError](err); err != nil && (!ok || len(wrong.Text) > 1000 || printable.Text(wrong.Text) != wrong.Text) {
			t.Fatalf("%q", err)
		}
	})
}

// TestNoSocket has a server that a rule allows. It gets no request.
func TestNoSocket(t *testing.T) {
	server := httptest.NewServer(nethttp.HandlerFunc(func(_ nethttp.ResponseWriter, r *nethttp.Request) {
		t.Errorf("the server was asked for %s", r.URL)
	}))
	defer server.Close()
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	check(t, Request{Component: build(t), Bindings: []extension.Binding{{Name: "github", Grant: http.Rights{
		Rules: []http.Rule{{Scheme: "http", Host: at.Addr().String(), Port: at.Port()}},
	}}}}, [][2]string{
		{`{"tool": "get", "input": {"url": "` + server.URL + `/a"}, "env": {"github": {}}, "expect": 1}`, "it gives no answer for GET " + server.URL + "/a"},
		{`{"tool": "twice", "input": {"url": "` + server.URL + `/a"}, "env": {"github": {"GET ` + server.URL + `/a": {"text": "stub"}}}, "expect": ["stub", "stub"]}`, ""},
	})
}
