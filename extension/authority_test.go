package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
)

// asks parses a manifest's authority.
func asks(t testing.TB, bindings string) []Binding {
	t.Helper()
	m, err := Parse([]byte(with(`"bindings": {` + bindings + `}`)))
	if err != nil {
		t.Fatal(err)
	}
	return m.Bindings
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		name, allowed, asked string
		want                 bool
	}{
		{"nothing", ``, ``, true},
		{"a clock", ``, `"a": {"clock": true}`, false},
		{"another name", `"b": {"clock": true}`, `"a": {"clock": true}`, true},
		{"two for one", `"b": {"kv": true}`, `"a": {"kv": true}, "c": {"kv": true}`, true},
		{"another kind", `"a": {"kv": true}`, `"a": {"clock": true}`, false},
		{"reading of writing", `"a": {"workspace": {"access": "read-write"}}`, `"a": {"workspace": {}}`, true},
		{"writing of reading", `"a": {"workspace": {}}`, `"a": {"workspace": {"access": "read-write"}}`, false},
		{"a directory", `"a": {"workspace": {"path": "/notes"}}`, `"a": {"workspace": {"path": "/notes/2026"}}`, true},
		{"a directory that starts alike", `"a": {"workspace": {"path": "/notes"}}`, `"a": {"workspace": {"path": "/notes2"}}`, false},
		{"the directory above", `"a": {"workspace": {"path": "/notes"}}`, `"a": {"workspace": {}}`, false},
		{"two that only together", `"a": {"workspace": {}}, "b": {"workspace": {"path": "/b", "access": "read-write"}}`, `"a": {"workspace": {"access": "read-write"}}`, false},
		{"http", `"a": {"http": [{"host": "*.x.com", "methods": ["*"]}]}`, `"b": {"http": [{"host": "a.x.com", "path": "/b"}]}`, true},
		{"http elsewhere", `"a": {"http": [{"host": "*.x.com"}]}`, `"a": {"http": [{"host": "a.x.com"}, {"host": "y.com"}]}`, false},
		{"http of two", `"a": {"http": [{"host": "x.com"}]}, "b": {"http": [{"host": "y.com"}]}`, `"a": {"http": [{"host": "x.com"}, {"host": "y.com"}]}`, false},
		{"an embedder's", `"a": {"x:y/z": {"q": 1, "p": 2}}`, `"a": {"x:y/z": {"p": 2, "q": 1}}`, true},
		{"an embedder's, set otherwise", `"a": {"x:y/z": {"q": 1}}`, `"a": {"x:y/z": {"q": 2}}`, false},
		{"another version of it", `"a": {"x:y/z@1.0.0": {}}`, `"a": {"x:y/z@1.0.1": {}}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Covers(asks(t, tt.allowed), asks(t, tt.asked)); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}

	given := func(g capability.Grant) []Binding { return []Binding{{"a", g}} }
	x, y := []http.Rule{{Host: "x.com"}}, []http.Rule{{Host: "y.com"}}
	for i, tt := range []struct {
		allowed, asked capability.Grant
		want           bool
	}{
		{workspace.Rights{Path: "/", Access: workspace.ReadWrite}, workspace.Rights{Store: "other", Path: "/", Access: workspace.Read}, false},
		{workspace.DiskRights{Path: "/a", Access: workspace.ReadWrite}, workspace.DiskRights{Path: "/a", Access: workspace.Read}, true},
		{workspace.DiskRights{Path: "/a", Access: workspace.Read}, workspace.DiskRights{Path: "/a", Access: workspace.ReadWrite}, false},
		{workspace.DiskRights{Path: "/a", Access: workspace.Read}, workspace.DiskRights{Path: "/a/../b", Access: workspace.Read}, false},
		{kv.Rights{}, kv.Rights{Store: "other/kv"}, false},
		{tools.Rights{Files: []string{"a"}}, tools.Rights{Files: []string{"a"}}, true},
		{tools.Rights{Files: []string{"a"}}, tools.Rights{Files: []string{"b"}}, false},
		{clock.Kind.On(), nil, false},
		{nil, nil, false},
		{http.Rights{Rules: x}, http.Rights{Rules: x, Within: [][]http.Rule{y}}, true},
		{http.Rights{Rules: x, Within: [][]http.Rule{y}}, http.Rights{Rules: x}, false},
		{http.Rights{Rules: x, Within: [][]http.Rule{y}}, http.Rights{Rules: x, Within: [][]http.Rule{y}}, true},
		{http.Rights{Rules: x, Within: [][]http.Rule{x}}, http.Rights{Rules: x}, true},
	} {
		if got := Covers(given(tt.allowed), given(tt.asked)); got != tt.want {
			t.Errorf("%d: got %v", i, got)
		}
	}
}

// A hostile manifest cannot keep its reader busy: with very many rules, the comparison gives up as unsure.
func TestCoversTooMuch(t *testing.T) {
	var many []Binding
	for i := range 60 {
		many = append(many, Binding{fmt.Sprintf("b%d", i), http.Rights{Rules: slices.Repeat([]http.Rule{{Host: "a.com", Path: "/a"}}, 250)}})
	}
	if Covers(many, many) {
		t.Error("15,000 rules are compared with as many")
	}
	if !Covers(many[:1], many[:1]) {
		t.Error("250 rules are not compared")
	}
	granted, cut := Limit(many[:1], append([]Binding{{"z", http.Rights{Rules: []http.Rule{{Host: "b.com"}}}}}, many[:5]...))
	if len(granted) != 5 || len(cut) != 1 || cut[0].Binding != "z" {
		t.Errorf("%d are granted, %d cut", len(granted), len(cut))
	}
}

func TestDifference(t *testing.T) {
	for _, tt := range []struct{ name, before, after, want string }{
		{"nothing", `"a": {"kv": true}`, `"a": {"kv": true}`, ""},
		{"the same in other words", `"a": {"http": [{"host": "x.com"}]}`, `"a": {"http": [{"host": "X.com", "port": 443, "path": "/**"}]}`, ""},
		{
			"added", ``, `"github": {"http": [{"host": "api.github.com", "methods": ["POST"], "path": "/repos/**", "credential": "github-token"}]}, "z": {"kv": true}`,
			"github added\n+ http POST https://api.github.com/repos/** with credential github-token\nz added\n+ kv",
		},
		{"removed", `"a": {"workspace": {"path": "/notes"}}`, ``, "a removed\n- workspace /notes read"},
		{
			"widened", `"a": {"workspace": {"path": "/notes"}}`, `"a": {"workspace": {"access": "read-write"}}`,
			"a widened\n- workspace /notes read\n+ workspace / read-write",
		},
		{
			"a rule more", `"a": {"http": [{"host": "x.com"}]}`, `"a": {"http": [{"host": "x.com"}, {"host": "*.y.com", "headers": ["X-A"], "maxResponse": 5}]}`,
			"a widened\n+ http GET,HEAD https://*.y.com/** with headers x-a up to 5 bytes",
		},
		{
			"narrowed", `"a": {"http": [{"host": "x.com", "methods": ["*"]}]}`, `"a": {"http": [{"host": "x.com", "methods": ["PUT"]}]}`,
			"a narrowed\n- http * https://x.com/**\n+ http PUT https://x.com/**",
		},
		{"another kind", `"a": {"kv": true}`, `"a": {"acme:crm/contacts@1.0.0": {"b": 1}}`, `a changed` + "\n- kv\n+ " + `acme:crm/contacts@1.0.0 {"b":1}`},
		{
			"the order of rules", `"a": {"http": [{"host": "x.com", "credential": "t", "as": "basic"}, {"host": "x.com"}]}`,
			`"a": {"http": [{"host": "x.com"}, {"host": "x.com", "credential": "t", "as": "basic"}]}`,
			"a changed\n- http GET,HEAD https://x.com/** with credential t as basic\n- http GET,HEAD https://x.com/**\n" +
				"+ http GET,HEAD https://x.com/**\n+ http GET,HEAD https://x.com/** with credential t as basic",
		},
		{
			"a host that looks alike", `"a": {"http": [{"host": "api.github.com"}]}`, `"a": {"http": [{"host": "аpi.github.com"}]}`,
			"a changed\n- http GET,HEAD https://api.github.com/**\n+ http GET,HEAD https://xn--pi-6kc.github.com/**",
		},
		{
			"text that hides", ``, `"a": {"x:y/z": {"a": "\u202e\n\u001b[2J"}}`,
			"a added\n+ x:y/z {\"a\":\"\\u202e\\n\\u001b[2J\"}",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range Difference(asks(t, tt.before), asks(t, tt.after)) {
				got = append(got, fmt.Sprintf("%s %s\n%s", c.Binding, c.What, c))
			}
			if text := strings.Join(got, "\n"); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
	got, err := json.Marshal(Difference(asks(t, `"a": {"workspace": {}}`), asks(t, `"b": {"clock": true}`)))
	want := `[{"binding":"a","what":"removed","before":{"workspace":{"path":"/","access":"read"}},"lines":["- workspace / read"]},` +
		`{"binding":"b","what":"added","after":{"clock":true},"lines":["+ clock"]}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		grant capability.Grant
		want  string
	}{
		{
			http.Rights{Rules: []http.Rule{{Host: "api.github.com", Methods: []string{"get", "POST"}, Path: "/repos/**", Credential: "github-token", Headers: []string{"X-A", "x-b"}}}},
			"may send GET and POST requests to https://api.github.com/repos/**, with the credential github-token, which it does not see, as bearer, setting the headers x-a, x-b, and take in up to 16 MiB of each response",
		},
		{
			http.Rights{Rules: []http.Rule{{Scheme: "http", Host: "*", Port: 8080, Methods: []string{"*"}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}},
			"may send requests of every method to http://*:8080/**, which is every host with a public address, also at the addresses 10.0.0.0/8, without encryption, and take in up to 16 MiB of each response",
		},
		{
			http.Rights{Rules: []http.Rule{{Host: "::1", MaxResponse: 5}}, Within: [][]http.Rule{{{Host: "b\u0430.com"}, {Host: "a b"}}}},
			"may send GET and HEAD requests to https://[::1]/**, an address that need not be public, and take in up to 5 B of each response\n" +
				"but whatever it sends has to be one of these as well:\n" +
				"  GET and HEAD requests to https://xn--b-8sb.com/**, and take in up to 16 MiB of each response\n  nothing, as a rule is not valid",
		},
		{workspace.Rights{Path: "/", Access: workspace.Read}, "may read files in its own workspace"},
		{workspace.Rights{Store: "w", Path: "/a", Access: workspace.ReadWrite}, "may read, write and remove files in /a of the workspace w"},
		{workspace.DiskRights{Path: "/home/\x1b\n", Access: workspace.ReadWrite}, `may read, write and remove files in the directory /home/\x1b\n of this machine`},
		{kv.Rights{}, "may keep small values from call to call"},
		{clock.Kind.On(), "may read the time, and wait"},
		{random.Kind.On(), "may draw random numbers"},
		{console.Kind.On(), "may write to the log"},
		{blob.Kind.On(), "may keep bytes on the host for the length of a call"},
		{tools.Rights{Files: []string{"a.ts", "\u202eb"}}, `may call the tools of a.ts, \u202eb`},
		{capability.Custom{Name: "x:y/z", Config: json.RawMessage("{\"a\":\"\u202e\"}")}, `may use x:y/z, a capability of the program that embeds the host, with {"a":"\u202e"}`},
		{nil, "may do something that this version does not know"},
	} {
		if got := strings.Join(Describe(Binding{"a", tt.grant}), "\n"); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, tt := range []struct{ name, ceiling, asked, granted, cut string }{
		{"nothing", ``, ``, `[]`, ""},
		{"what is harmless", ``, `"a": {"clock": true}, "b": {"random": true}, "c": {"console": true}, "d": {"blob": true}`, `[{"clock":true},{"random":true},{"console":true},{"blob":true}]`, ""},
		{"no kv", ``, `"a": {"kv": true}`, `[]`, "a removed: - kv"},
		{"kv", `"x": {"kv": true}`, `"a": {"kv": true}`, `[{"kv":true}]`, ""},
		{
			"reading only", `"x": {"workspace": {}}`, `"a": {"workspace": {"access": "read-write"}}`, `[{"workspace":{"path":"/","access":"read"}}]`,
			"a narrowed: - workspace / read-write, + workspace / read",
		},
		{
			"another directory", `"x": {"workspace": {"path": "/notes", "access": "read-write"}}`, `"a": {"workspace": {"path": "/notes/x"}}, "b": {"workspace": {"path": "/notebook"}}, "c": {"workspace": {}}`,
			`[{"workspace":{"path":"/notes/x","access":"read"}}]`, "b removed: - workspace /notebook read; c removed: - workspace / read",
		},
		{
			"the widest of two", `"x": {"workspace": {}}, "y": {"workspace": {"path": "/n", "access": "read-write"}}`, `"a": {"workspace": {"path": "/n/x", "access": "read-write"}}`,
			`[{"workspace":{"path":"/n/x","access":"read-write"}}]`, "",
		},
		{
			"http that fits", `"x": {"http": [{"host": "*.x.com", "methods": ["*"]}]}`, `"a": {"http": [{"host": "a.x.com"}]}`,
			`[{"http":[{"host":"a.x.com"}]}]`, "",
		},
		{
			"a rule elsewhere", `"x": {"http": [{"host": "*.x.com"}]}`, `"a": {"http": [{"host": "y.com"}, {"host": "a.x.com"}]}`,
			`[{"http":[{"host":"a.x.com"}]}]`, "a narrowed: - http GET,HEAD https://y.com/**",
		},
		{"all elsewhere", `"x": {"http": [{"host": "*.x.com"}]}`, `"a": {"http": [{"host": "x.com"}]}`, `[]`, "a removed: - http GET,HEAD https://x.com/**"},
		{"no http", `"x": {"kv": true}`, `"a": {"http": [{"host": "x.com"}]}`, `[]`, "a removed: - http GET,HEAD https://x.com/**"},
		{
			"part of a rule", `"x": {"http": [{"host": "x.com", "path": "/ok/**"}]}, "y": {"http": [{"host": "z.com"}]}`, `"a": {"http": [{"host": "x.com", "methods": ["*"]}]}`,
			`[{"http":{"rules":[{"host":"x.com","methods":["*"]}],"within":[[{"host":"x.com","path":"/ok/**"},{"host":"z.com"}]]}}]`,
			"a narrowed: + only within http GET,HEAD https://x.com/ok/**, + only within http GET,HEAD https://z.com/**",
		},
		{"a credential of nobody", `"x": {"http": [{"host": "x.com"}]}`, `"a": {"http": [{"host": "x.com", "credential": "t"}]}`, `[]`, "a removed: - http GET,HEAD https://x.com/** with credential t"},
		{
			"a credential that is not asked for", `"x": {"http": [{"host": "x.com", "credential": "t"}]}`, `"a": {"http": [{"host": "x.com"}]}`,
			`[{"http":{"rules":[{"host":"x.com"}],"within":[[{"host":"x.com","credential":"t"}]]}}]`,
			"a narrowed: + only within http GET,HEAD https://x.com/** with credential t",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ceiling := asks(t, tt.ceiling)
			granted, cut := Limit(ceiling, asks(t, tt.asked))
			var cuts []string
			for _, c := range cut {
				cuts = append(cuts, fmt.Sprintf("%s %s: %s", c.Binding, c.What, strings.Join(c.Lines, ", ")))
			}
			text, err := json.Marshal(append([]Binding{}, granted...))
			if err != nil || string(text) != tt.granted || strings.Join(cuts, "; ") != tt.cut {
				t.Errorf("got %s, %v\n%s", text, err, strings.Join(cuts, "; "))
			}
			again, cut := Limit(ceiling, granted)
			if text, _ := json.Marshal(append([]Binding{}, again...)); string(text) != tt.granted || cut != nil {
				t.Errorf("the same ceiling again makes %s of it, %v", text, cut)
			}
		})
	}
	for _, g := range []capability.Grant{workspace.DiskRights{Path: "/a", Access: workspace.Read}, tools.Rights{Files: []string{"a"}}, workspace.Rights{Store: "other", Path: "/", Access: workspace.Read}, kv.Rights{Store: "other/kv"}, capability.Custom{Name: "x:y/z", Config: json.RawMessage("{}")}, nil} {
		if granted, cut := Limit(asks(t, `"w": {"workspace": {}}, "k": {"kv": true}`), []Binding{{"a", g}}); granted != nil || len(cut) != 1 || cut[0].What != Removed {
			t.Errorf("of %v there is %v, %v", g, granted, cut)
		}
	}
}

// TestLimitNeverWidens checks that the requested binding allows whatever a limited one allows, and so does the
// ceiling if it has the credential as well. The clients are the real ones.
func TestLimitNeverWidens(t *testing.T) {
	s := NewState(t.TempDir(), func(console.Level, string) {})
	s.Configure(http.Kind, http.Options{Credentials: noCredentials{}})
	t.Cleanup(func() { _ = s.Close() })
	limited := 0
	rapid.Check(t, func(t *rapid.T) {
		ceiling, asked := drawBindings(t, "ceiling"), drawBindings(t, "asked")
		granted, _ := Limit(ceiling, asked)
		for _, g := range granted {
			if _, isHTTP := g.Grant.(http.Rights); !isHTTP {
				if !g.Harmless() && (!Covers(ceiling, []Binding{g}) || !Covers(asked, []Binding{g})) {
					t.Fatalf("%+v is granted of %+v below %+v", g, asked, ceiling)
				}
				continue
			}
			wanted := asked[slices.IndexFunc(asked, func(b Binding) bool { return b.Name == g.Name })]
			for range 10 {
				request := drawRequest(t)
				if !allows(t, s, g, request) {
					continue
				}
				limited++
				if !allows(t, s, wanted, request) {
					t.Fatalf("%+v is allowed by %+v, and nobody asked for it: %+v", request, g, wanted)
				}
				if !slices.ContainsFunc(ceiling, func(c Binding) bool { return allows(t, s, bare(c), request) }) {
					t.Fatalf("%+v is allowed by %+v, and no ceiling does: %+v", request, g, ceiling)
				}
			}
		}
	})
	if limited == 0 {
		t.Error("nothing is ever let through: nothing was tried")
	}
}

// TestCoversIsSound checks that the covering list allows whatever a covered list allows.
func TestCoversIsSound(t *testing.T) {
	s := NewState(t.TempDir(), func(console.Level, string) {})
	s.Configure(http.Kind, http.Options{Credentials: noCredentials{}})
	t.Cleanup(func() { _ = s.Close() })
	covered := 0
	rapid.Check(t, func(t *rapid.T) {
		asked := drawBindings(t, "asked")
		allowed := append(drawBindings(t, "allowed"), asked[:rapid.IntRange(0, len(asked)).Draw(t, "the same")]...)
		if !Covers(allowed, asked) {
			return
		}
		for _, b := range asked {
			for range 10 {
				request := drawRequest(t)
				if !allows(t, s, b, request) {
					continue
				}
				covered++
				if !slices.ContainsFunc(allowed, func(a Binding) bool { return allows(t, s, a, request) }) {
					t.Fatalf("%+v is allowed by %+v, and not by %+v", request, b, allowed)
				}
			}
		}
	})
	if covered == 0 {
		t.Error("nothing is ever covered: nothing was tried")
	}
}

// bare is a binding whose rules have no credentials, so they remove no header from a request without one.
func bare(b Binding) Binding {
	g, ok := b.Grant.(http.Rights)
	if !ok {
		return b
	}
	g.Rules = slices.Clone(g.Rules)
	for i := range g.Rules {
		g.Rules[i].Credential, g.Rules[i].As = "", ""
	}
	return Binding{b.Name, g}
}

// allows asks the binding's client. The call has already ended, so nothing is sent.
func allows(t *rapid.T, s *State, b Binding, r http.Request) bool {
	if _, ok := b.Grant.(http.Rights); !ok {
		return false
	}
	env, err := s.Env(context.Background(), []Binding{b})
	if err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(context.Background())
	end()
	client, err := env[b.Name].(*http.Grant).Open(over)
	if err != nil {
		t.Fatal(err)
	}
	exchange, err := client.(*http.Client).Start(over, r)
	if err != nil && !errors.Is(err, abi.ErrDenied) {
		t.Fatal(err)
	}
	if exchange != nil {
		_ = exchange.Close()
	}
	return err == nil
}

func drawBindings(t *rapid.T, label string) []Binding {
	var all []Binding
	for i := range rapid.IntRange(0, 3).Draw(t, label) {
		b := Binding{Name: fmt.Sprintf("b%d", i)}
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			b.Grant = workspace.Rights{Path: rapid.SampledFrom([]string{"/", "/a", "/a/b", "/ab"}).Draw(t, "path"), Access: rapid.SampledFrom([]workspace.Access{workspace.Read, workspace.ReadWrite}).Draw(t, "access")}
		case 1:
			b.Grant = rapid.SampledFrom([]capability.Grant{kv.Rights{}, clock.Kind.On(), capability.Custom{Name: "x:y/z", Config: json.RawMessage("{}")}}).Draw(t, "grant")
		default:
			b.Grant = http.Rights{Rules: rapid.SliceOfN(rapid.Custom(drawRule), 1, 3).Draw(t, "rules")}
		}
		all = append(all, b)
	}
	return all
}

func drawRule(t *rapid.T) http.Rule {
	r := http.Rule{
		Scheme:  "https",
		Host:    rapid.SampledFrom([]string{"a.com", "b.a.com", "*.a.com", "*", "127.0.0.1"}).Draw(t, "host"),
		Port:    443,
		Methods: rapid.SliceOfN(rapid.SampledFrom([]string{"GET", "POST", "*"}), 0, 2).Draw(t, "methods"),
		Path:    rapid.SampledFrom([]string{"", "/x", "/x/**", "/*", "/**/y", "/x*/y"}).Draw(t, "path"),
		Headers: rapid.SliceOfN(rapid.SampledFrom([]string{"x-a", "*", "range"}), 0, 1).Draw(t, "headers"),
	}
	if r.Host != "*" {
		r.Credential = rapid.SampledFrom([]string{"", "", "t"}).Draw(t, "credential")
	}
	return r
}

func drawRequest(t *rapid.T) http.Request {
	r := http.Request{
		Method: rapid.SampledFrom([]string{"GET", "POST"}).Draw(t, "method"),
		URL: "https://" + rapid.SampledFrom([]string{"a.com", "b.a.com", "c.b.a.com", "127.0.0.1"}).Draw(t, "host") +
			rapid.SampledFrom([]string{"/", "/x", "/x/y", "/x%2Fy", "/xx/y", "/y"}).Draw(t, "path"),
	}
	if name := rapid.SampledFrom([]string{"", "x-a", "range"}).Draw(t, "header"); name != "" {
		r.Headers = []http.Header{{Name: name, Value: "1"}}
	}
	return r
}
