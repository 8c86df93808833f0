package http

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
)

func TestDenialTeaches(t *testing.T) {
	rules := []Rule{
		{Host: "api.github.com", Path: "/repos/**"},
		{Host: "api.github.com", Methods: []string{"POST"}, Path: "/graphql"},
		{Host: "*.example.com", Methods: []string{"*"}, Headers: []string{"*"}},
		{Scheme: "http", Host: "*", Port: 8080},
	}
	for _, test := range []struct {
		name, method, url string
		headers           []Header
		reason, grant     string
	}{
		{
			"method", "POST", "https://api.github.com/repos/a/b?token=secret", nil,
			"the closest rule, https://api.github.com/repos/**, does not allow the method POST",
			`{"http":[{"host":"api.github.com","methods":["POST"],"path":"/repos/a/b"}]}`,
		},
		{
			"path", "GET", "https://api.github.com/user", nil,
			"the closest rule, https://api.github.com/repos/**, does not allow the path /user",
			`{"http":[{"host":"api.github.com","path":"/user"}]}`,
		},
		{
			"host", "GET", "https://evil.example/", nil,
			"no rule names the host evil.example; the rules name api.github.com, *.example.com, http://*:8080",
			`{"http":[{"host":"evil.example","path":"/"}]}`,
		},
		{
			"apex", "GET", "https://example.com/", nil,
			"no rule names the host example.com; the rules name api.github.com, *.example.com, http://*:8080",
			`{"http":[{"host":"example.com","path":"/"}]}`,
		},
		{
			"not a subdomain", "GET", "https://evilexample.com/", nil,
			"no rule names the host evilexample.com; the rules name api.github.com, *.example.com, http://*:8080",
			`{"http":[{"host":"evilexample.com","path":"/"}]}`,
		},
		{
			"scheme", "GET", "http://a.example.com/", nil,
			"the closest rule, https://*.example.com/**,methods=*,headers=*, does not allow the scheme http",
			`{"http":[{"scheme":"http","host":"a.example.com","path":"/"}]}`,
		},
		{
			"port", "GET", "https://a.example.com:8443/", nil,
			"the closest rule, https://*.example.com/**,methods=*,headers=*, does not allow the port 8443",
			`{"http":[{"host":"a.example.com","port":8443,"path":"/"}]}`,
		},
		{
			"header", "GET", "https://api.github.com/repos/x",
			[]Header{{"X-B", "1"}, {"Authorization", "secret"}},
			"the closest rule, https://api.github.com/repos/**, does not allow the header authorization",
			`{"http":[{"host":"api.github.com","path":"/repos/x","headers":["authorization","x-b"]}]}`,
		},
		{
			"header that * does not name", "DELETE", "https://a.example.com/",
			[]Header{{"X-Anything", "1"}, {"X-HTTP-Method-Override", "PUT"}},
			"the closest rule, https://*.example.com/**,methods=*,headers=*, does not allow the header x-http-method-override",
			`{"http":[{"host":"a.example.com","methods":["DELETE"],"path":"/","headers":["x-anything","x-http-method-override"]}]}`,
		},
		{
			"loopback", "GET", "http://127.0.0.1:8080/a", nil,
			"127.0.0.1 is in 127.0.0.0/8 (loopback), which needs a rule that names this address",
			`{"http":[{"scheme":"http","host":"127.0.0.1","port":8080,"path":"/a"}]}`,
		},
		{
			"mapped metadata", "GET", "http://[::ffff:a9fe:a9fe]:8080/latest", nil,
			"169.254.169.254 is in 169.254.169.254/32 (cloud metadata), which needs a rule that names this address",
			`{"http":[{"scheme":"http","host":"169.254.169.254","port":8080,"path":"/latest"}]}`,
		},
		{
			"address below a name", "GET", "https://127.0.0.1/", nil,
			"no rule names the host 127.0.0.1; the rules name api.github.com, *.example.com, http://*:8080",
			`{"http":[{"host":"127.0.0.1","path":"/"}]}`,
		},
		{
			"unspecified", "GET", "http://0.0.0.0:8080/", nil,
			"0.0.0.0 is unspecified, which no rule can allow", "",
		},
		{
			"odd path", "GET", "https://evil.example/a*b/c,d/e%2ff/", nil,
			"no rule names the host evil.example; the rules name api.github.com, *.example.com, http://*:8080",
			`{"http":[{"host":"evil.example","path":"/a%2Ab/c%2Cd/e%2Ff/"}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := Request{Method: test.method, URL: test.url, Headers: test.headers}
			denial := denialOf(t, request, rules)
			if denial.Reason != test.reason || captest.GrantIn(denial) != test.grant {
				t.Fatalf("have %s\n%s\nwant %s\n%s", denial.Reason, captest.GrantIn(denial), test.reason, test.grant)
			}
			if shown, _, _ := strings.Cut(test.url, "?"); !strings.HasPrefix(denial.Operation, test.method+" http") || strings.Contains(denial.Operation, "secret") {
				t.Fatalf("the operation of %s is %s", shown, denial.Operation)
			}
			if captest.GrantIn(denial) == "" {
				return
			}
			var grant map[string][]Rule
			if err := json.Unmarshal([]byte(captest.GrantIn(denial)), &grant); err != nil {
				t.Fatal(err)
			}
			if err := tryAuthorise(t, request, append(rules, grant["http"]...)); err != nil {
				t.Fatalf("the grant does not allow it: %v", err)
			}
		})
	}
}

func TestWithoutRulesNothingIsAllowed(t *testing.T) {
	denial := denialOf(t, Request{Method: "GET", URL: "https://example.com/"}, nil)
	if denial.Reason != "there are no rules" {
		t.Fatal(denial.Reason)
	}
}

// A name that is not ASCII is the same host in all its spellings, both in a rule and in a URL.
func TestSpellingsOfAHost(t *testing.T) {
	const composed, decomposed, encoded = "b\u00fccher.example", "bu\u0308cher.example", "xn--bcher-kva.example"
	spellings := []string{composed, decomposed, encoded, "B\u00dcCHER.example", "BU\u0308CHER.EXAMPLE", "XN--BCHER-KVA.example", "b\u00fccher\u3002example", composed + "."}
	others := []string{"bucher.example", "b\u00fccher.example.com", "b\u00fc\u0308cher.example", "b\u0443cher.example", "b\u0458cher.example"}
	for _, rule := range spellings {
		for _, host := range spellings {
			if err := tryAuthorise(t, Request{Method: "GET", URL: "https://" + host + "/"}, []Rule{{Host: rule}}); err != nil {
				t.Errorf("a rule for %+q does not allow %+q: %v", rule, host, err)
			}
		}
		for _, host := range others {
			if err := tryAuthorise(t, Request{Method: "GET", URL: "https://" + host + "/"}, []Rule{{Host: rule}}); err == nil {
				t.Errorf("a rule for %+q allows %+q", rule, host)
			}
		}
	}
}

func TestBadRuleSurfaces(t *testing.T) {
	if _, err := New(Options{Rules: []Rule{{Host: "a"}, {Host: "a b"}}}); err == nil || !strings.Contains(err.Error(), "rule 2") {
		t.Fatal(err)
	}
	if _, err := Allow(Rule{Host: "*"}).Open(t.Context()); err == nil {
		t.Fatal("a grant with a bad rule opens")
	}
	if _, err := New(Options{Rules: make([]Rule, MaxRules+1)}); err == nil {
		t.Fatal("too many rules are accepted")
	}
	for _, o := range []Options{{Timeout: -1}, {Pending: -1}, {Held: -1}} {
		if _, err := New(o); err == nil {
			t.Fatalf("%+v is accepted", o)
		}
	}
}

func TestNarrow(t *testing.T) {
	client := open(t, Allow(Rule{Host: "*.example.com", Methods: []string{"GET", "POST"}}))
	narrow, err := client.Narrow(t.Context(), []WitRule{{Host: "a.example.com", Path: "/ok/**"}, {Host: "evil.example"}})
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[[2]string]string{
		{"GET", "https://a.example.com/ok/1"}:  "",
		{"GET", "https://a.example.com/other"}: "the client was narrowed, and the closest rule, https://a.example.com/ok/**, does not allow the path /other",
		{"POST", "https://a.example.com/ok/1"}: "the client was narrowed, and the closest rule, https://a.example.com/ok/**, does not allow the method POST",
		{"GET", "https://b.example.com/ok/1"}:  "the client was narrowed, and no rule names the host b.example.com; the rules name a.example.com, evil.example",
		{"GET", "https://evil.example/"}:       "no rule names the host evil.example; the rules name *.example.com",
	} {
		err := narrow.authorise(checked(t, Request{Method: request[0], URL: request[1]}))
		if denied, ok := errors.AsType[*abi.Error](err); ok != (want != "") || ok && denied.Denial.Reason != want {
			t.Errorf("%s: have %v, want %s", request, err, want)
		}
	}
	rules := narrow.Rules(t.Context())
	if len(rules) != 2 || rules[0].Host != "a.example.com" || *rules[0].Port != 443 || rules[0].Methods[0] != "GET" || rules[1].Path != "/**" {
		t.Fatalf("%+v", rules)
	}
	rules[0].Methods[0] = "POST"
	if narrow.Rules(t.Context())[0].Methods[0] != "GET" || defaultMethods[0] != "GET" {
		t.Fatal("what Rules returned is shared")
	}
	nothing, err := narrow.Narrow(t.Context(), nil)
	if err != nil || nothing.authorise(checked(t, Request{Method: "GET", URL: "https://a.example.com/ok/1"})) == nil {
		t.Fatalf("narrowed to nothing, something is allowed: %v", err)
	}
	if _, err := client.Narrow(t.Context(), []WitRule{{Host: "*"}}); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
	if _, err := client.Narrow(t.Context(), make([]WitRule, MaxRules+1)); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
	for range maxNarrowings {
		if client, err = client.Narrow(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = client.Narrow(t.Context(), nil); !errors.Is(err, abi.ErrExhausted) {
		t.Fatal(err)
	}
}

// TestNarrowNeverWidens checks that whatever a narrowed client allows, the original client and the given rules allow too.
func TestNarrowNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		client := drawClient(t, "grant")
		narrowing := drawRules(t, "narrowing")
		narrow, err := client.Narrow(t.Context(), witRules(narrowing))
		if err != nil {
			t.Fatal(err)
		}
		further, err := narrow.Narrow(t.Context(), narrow.Rules(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		request := drawRequest(t)
		above := client.authorise(checked(t, request)) == nil
		given := openRules(t, narrowing).authorise(checked(t, request)) == nil
		have := narrow.authorise(checked(t, request)) == nil
		if have && !above || have && !given {
			t.Fatalf("%+v is allowed, though above it is %v and by the given rules %v", request, above, given)
		}
		if !have && above && given {
			t.Fatalf("%+v is denied, though both allow it", request)
		}
		if (further.authorise(checked(t, request)) == nil) != have {
			t.Fatalf("%+v: narrowing a client to its own rules changes it", request)
		}
	})
}

// TestGrantIsRemedy checks that the grant in a denial, added to the rules, allows the request but none with another method, host
// or path.
func TestGrantIsRemedy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules(t, "rules")
		request, other := drawRequest(t), drawRequest(t)
		client := openRules(t, rules)
		denied, ok := errors.AsType[*abi.Error](client.authorise(checked(t, request)))
		if !ok || captest.GrantIn(denied.Denial) == "" {
			return
		}
		var grant map[string][]Rule
		if err := json.Unmarshal([]byte(captest.GrantIn(denied.Denial)), &grant); err != nil {
			t.Fatal(err)
		}
		wider := openRules(t, append(rules, grant["http"]...))
		if err := wider.authorise(checked(t, request)); err != nil {
			t.Fatalf("%s does not allow it: %v", captest.GrantIn(denied.Denial), err)
		}
		a, b := checked(t, request), checked(t, other)
		same := a.operation() == b.operation()
		for name := range b.header {
			same = same && (safeHeader(name) || a.header[name] != nil)
		}
		if !same && client.authorise(b) != nil && wider.authorise(checked(t, other)) == nil {
			t.Fatalf("%s allows %+v too", captest.GrantIn(denied.Denial), other)
		}
	})
}

var (
	hosts   = []string{"a.example", "b.a.example", "c.b.a.example", "example", "xa.example", "93.184.216.34", "127.0.0.1", "[2606:4700::1111]"}
	headers = []string{"accept", "authorization", "x-a", "x-http-method-override"}
)

func drawRules(t *rapid.T, label string) []Rule {
	host := rapid.SampledFrom(append([]string{"*.a.example", "*.example", "*"}, hosts...))
	rule := rapid.Custom(func(t *rapid.T) Rule {
		return Rule{
			Scheme:  rapid.SampledFrom([]string{"https", "http"}).Draw(t, "scheme"),
			Host:    host.Draw(t, "host"),
			Port:    rapid.SampledFrom([]uint16{443, 80, 8080}).Draw(t, "port"),
			Methods: rapid.SliceOfN(rapid.SampledFrom([]string{"GET", "POST", "*"}), 0, 2).Draw(t, "methods"),
			Path:    drawPath(t, "**", "*", "a*", "*b", "a%2Fb", "a%2A"),
			Headers: rapid.SliceOfN(rapid.SampledFrom(append([]string{"*"}, headers...)), 0, 2).Draw(t, "headers"),
		}
	})
	return rapid.SliceOfN(rule, 0, 4).Draw(t, label)
}

// drawPath joins a few segments: plain ones, or others.
func drawPath(t *rapid.T, others ...string) string {
	segment := rapid.SampledFrom(append([]string{"", "a", "b", "ab"}, others...))
	return "/" + strings.Join(rapid.SliceOfN(segment, 0, 4).Draw(t, "path"), "/")
}

func drawRequest(t *rapid.T) Request {
	request := Request{
		Method: rapid.SampledFrom([]string{"GET", "POST", "DELETE"}).Draw(t, "method"),
		URL: rapid.SampledFrom([]string{"https://", "http://"}).Draw(t, "scheme") + rapid.SampledFrom(hosts).Draw(t, "host") +
			rapid.SampledFrom([]string{"", ":80", ":443", ":8080"}).Draw(t, "port") + drawPath(t, "..", "%2e%2E", ".", "a%2Fb", "a*", "b,c", "%61"),
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(headers), 0, 2, rapid.ID).Draw(t, "headers") {
		request.Headers = append(request.Headers, Header{name, "1"})
	}
	return request
}

func drawClient(t *rapid.T, label string) *Client { return openRules(t, drawRules(t, label)) }

func witRules(rules []Rule) []WitRule {
	var wit []WitRule
	for _, r := range rules {
		wit = append(wit, WitRule{Scheme: r.Scheme, Host: r.Host, Port: new(r.Port), Methods: r.Methods, Path: r.Path, Headers: r.Headers})
	}
	return wit
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	rapid.TB
	Context() context.Context
}

func openRules(t tester, rules []Rule) *Client {
	grant, err := New(Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return open(t, grant)
}

func open(t tester, grant *Grant) *Client {
	client, err := grant.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client.(*Client)
}

func checked(t tester, r Request) *request {
	q, err := newRequest(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func tryAuthorise(t *testing.T, r Request, rules []Rule) error {
	return openRules(t, rules).authorise(checked(t, r))
}

func denialOf(t *testing.T, r Request, rules []Rule) *abi.Denial {
	t.Helper()
	denied, ok := errors.AsType[*abi.Error](tryAuthorise(t, r, rules))
	if !ok || denied.Denial == nil {
		t.Fatalf("%+v is allowed", r)
	}
	return denied.Denial
}
