package http

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func rules(specs ...string) []Rule {
	var all []Rule
	for _, spec := range specs {
		r, err := ParseRule(spec)
		if err != nil {
			panic(err)
		}
		all = append(all, r)
	}
	return all
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		name           string
		allowed, asked []Rule
		want           bool
	}{
		{"nothing", nil, nil, true},
		{"something of nothing", nil, rules("https://a.com"), false},
		{"nothing of something", rules("https://a.com"), nil, true},
		{"the same", rules("https://a.com/x/**,methods=POST"), rules("https://A.com:443/x/**,methods=POST"), true},
		{"scheme", rules("https://a.com"), rules("http://a.com"), false},
		{"port", rules("https://a.com"), rules("https://a.com:8443"), false},
		{"another host", rules("https://a.com"), rules("https://b.com"), false},
		{"a name in it", rules("https://*.a.com"), rules("https://b.a.com"), true},
		{"names in it", rules("https://*.a.com"), rules("https://*.b.a.com"), true},
		{"names that end alike", rules("https://*.a.com"), rules("https://*.ba.com"), false},
		{"the same names", rules("https://*.a.com"), rules("https://*.a.com"), true},
		{"wider names", rules("https://*.b.a.com"), rules("https://*.a.com"), false},
		{"the apex", rules("https://*.a.com"), rules("https://a.com"), false},
		{"an end of it", rules("https://*.a.com"), rules("https://ba.com"), false},
		{"names for a name", rules("https://a.com"), rules("https://*.a.com"), false},
		{"any host", rules("https://*:443"), rules("https://a.com"), true},
		{"any host for names", rules("https://*.a.com"), rules("https://*:443"), false},
		{"any host, a public address", rules("https://*:443"), rules("https://93.184.216.34"), true},
		{"any host, loopback", rules("https://*:443"), rules("https://127.0.0.1"), false},
		{"any host, metadata", rules("http://*:80"), rules("http://169.254.169.254"), false},
		{"any host, mapped loopback", rules("https://*:443"), rules("https://[::ffff:127.0.0.1]"), false},
		{"any host, NAT64 of loopback", rules("https://*:443"), rules("https://[64:ff9b::7f00:1]"), false},
		{"the address itself", rules("https://127.0.0.1"), rules("https://127.0.0.1/a"), true},
		{"addresses", rules("https://a.com,addresses=10.0.0.0/8"), rules("https://a.com,addresses=10.1.0.0/16"), true},
		{"fewer addresses", rules("https://a.com,addresses=10.0.0.0/8"), rules("https://a.com"), true},
		{"more addresses", rules("https://a.com,addresses=10.1.0.0/16"), rules("https://a.com,addresses=10.0.0.0/8"), false},
		{"a longer range", rules("https://a.com,addresses=10.0.0.0/16"), rules("https://a.com,addresses=10.0.0.0/8"), false},
		{
			"an address that a rule before may not reach", // 10.0.0.1 would get at most 5 bytes, and the request is for more
			rules("https://*:443,max-response=5,addresses=10.0.0.0/8", "https://10.0.0.1"), rules("https://*:443,max-response=5", "https://10.0.0.1"), false,
		},
		{"all addresses", rules("https://a.com"), rules("https://a.com,addresses=0.0.0.0/0"), false},
		{"methods", rules("https://a.com,methods=GET+POST"), rules("https://a.com,methods=post"), true},
		{"more methods", rules("https://a.com"), rules("https://a.com,methods=GET+POST"), false},
		{"every method", rules("https://a.com,methods=*"), rules("https://a.com,methods=DELETE"), true},
		{"every method of some", rules("https://a.com,methods=GET+POST+PUT"), rules("https://a.com,methods=*"), false},
		{"a path below", rules("https://a.com/repos/**"), rules("https://a.com/repos/x/*/y"), true},
		{"a path beside", rules("https://a.com/repos/**"), rules("https://a.com/reposx"), false},
		{"a path that starts alike", rules("https://a.com/a/*"), rules("https://a.com/a/**"), false},
		{"a path of one segment", rules("https://a.com/a/*"), rules("https://a.com/a/b*c"), true},
		{"a glob in a glob", rules("https://a.com/a*c*"), rules("https://a.com/ab*xc"), true},
		{"a glob beside a glob", rules("https://a.com/a*c"), rules("https://a.com/a*"), false},
		{"a glob for a word", rules("https://a.com/ab"), rules("https://a.com/a*b"), false},
		{"an empty segment", rules("https://a.com/*"), rules("https://a.com/"), false},
		{"a star that is a letter", rules("https://a.com/a%2A"), rules("https://a.com/a*"), false},
		{"an encoded slash", rules("https://a.com/a/*"), rules("https://a.com/a%2Fb"), false},
		{"an encoded slash in a segment", rules("https://a.com/a/*"), rules("https://a.com/a/b%2Fc"), false},
		{"ends", rules("https://a.com/**/x"), rules("https://a.com/a/**/b/x"), true},
		{"wider ends", rules("https://a.com/**/b/x"), rules("https://a.com/**/x"), false},
		{"headers", rules("https://a.com,headers=X-A+x-b"), rules("https://a.com,headers=x-a"), true},
		{"more headers", rules("https://a.com"), rules("https://a.com,headers=x-a"), false},
		{"a header that needs no name", rules("https://a.com"), rules("https://a.com,headers=accept"), true},
		{"a header of all", rules("https://a.com,headers=*"), rules("https://a.com,headers=x-a"), true},
		{"authorization of all", rules("https://a.com,headers=*"), rules("https://a.com,headers=authorization"), false},
		{"all headers", rules("https://a.com,headers=x-a"), rules("https://a.com,headers=*"), false},
		{"a larger response", rules("https://a.com"), rules("https://a.com,max-response=16777217"), false},
		{"a smaller response", rules("https://a.com"), rules("https://a.com,max-response=5"), true},
		{"a credential", rules("https://a.com"), rules("https://a.com,credential=t"), false},
		{"another credential", rules("https://a.com,credential=t"), rules("https://a.com,credential=u"), false},
		{"a credential elsewhere", rules("https://a.com,credential=t"), rules("https://a.com,credential=t,as=query:k"), false},
		{"no credential any more", rules("https://a.com,credential=t"), rules("https://a.com"), false},
		{"the same credential", rules("https://a.com,credential=t"), rules("https://a.com/x,credential=t,as=bearer"), true},
		{"a credential and range", rules("https://a.com,credential=t"), rules("https://a.com,credential=t,headers=range"), false},
		{"two for one", rules("https://a.com", "https://a.com,methods=POST"), rules("https://a.com,methods=GET+POST"), false},
		{
			"a credential behind a rule without", // DELETE /x would have no credential, and one is requested
			rules("https://a.com/x,methods=DELETE", "https://a.com,methods=*,credential=t"),
			rules("https://a.com,methods=*,credential=t"), false,
		},
		{
			"a credential behind the same rule",
			rules("https://a.com/x,methods=DELETE", "https://a.com,methods=*,credential=t"),
			rules("https://a.com/x,methods=DELETE", "https://a.com,methods=*,credential=t"), true,
		},
		{
			"the same rules in another order",
			rules("https://a.com/x,methods=DELETE", "https://a.com,methods=*,credential=t"),
			rules("https://a.com,methods=*,credential=t", "https://a.com/x,methods=DELETE"), false,
		},
		{
			"a credential behind what is elsewhere",
			rules("https://b.com", "https://a.com/y", "https://a.com/x/**,credential=t"),
			rules("https://a.com/x/**,credential=t"), true,
		},
		{"a small response first", rules("https://a.com,max-response=5", "https://a.com"), rules("https://a.com"), false},
		{"not valid", rules("https://a.com"), []Rule{{Host: "a b"}}, false},
		{"not valid either", []Rule{{Host: "a b"}}, nil, false},
		{"too long to compare", long(200), long(200), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if have := Covers(test.allowed, test.asked); have != test.want {
				t.Fatalf("have %v", have)
			}
		})
	}
}

// long has paths that would take minutes to compare.
func long(n int) []Rule {
	all := make([]Rule, n)
	for i := range all {
		all[i] = Rule{Host: "a.com", Path: strings.Repeat("/**/*", 400)}
	}
	return all
}

func TestDisjoint(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"https://a.com", "https://a.com", false},
		{"https://a.com", "http://a.com", true},
		{"https://a.com", "https://a.com:8443", true},
		{"https://a.com", "https://b.com", true},
		{"https://a.com", "https://*.a.com", true},
		{"https://b.a.com", "https://*.a.com", false},
		{"https://*.b.a.com", "https://*.a.com", false},
		{"https://*.b.com", "https://*.a.com", true},
		{"https://*:443", "https://a.com", false},
		{"https://a.com,methods=GET", "https://a.com,methods=POST", true},
		{"https://a.com,methods=GET", "https://a.com,methods=*", false},
		{"https://a.com/repos/**", "https://a.com/users/**", true},
		{"https://a.com/repos/**", "https://a.com/*/x", false},
		{"https://a.com/a*/x", "https://a.com/b/x", true},
		{"https://a.com/a", "https://a.com/a/b", true},
		{"https://a.com/a", "https://a.com/a/**", false},
		{"https://a.com/**/a", "https://a.com/**/b", false}, // the result is unsure
	} {
		a, b := rules(test.a)[0], rules(test.b)[0]
		if disjoint(a, b) != test.want || disjoint(b, a) != test.want {
			t.Errorf("%s and %s: want %v", a, b, test.want)
		}
	}
	if kept, usable := Overlap(rules("https://a.com"), []Rule{{Host: "a.com"}, {Host: "a b"}}); kept != nil || usable {
		t.Error("rules that are not valid overlap with others")
	}
}

func disjoint(a, b Rule) bool {
	kept, _ := Overlap([]Rule{a}, []Rule{b})
	return kept == nil
}

func TestNormal(t *testing.T) {
	have, err := Rule{Host: "\u0430pi.GitHub.com", Methods: []string{"po\u017ft"}, Headers: []string{"X-A"}, Credential: "t"}.Normal()
	want := "https://xn--pi-6kc.github.com/**,methods=POST,headers=x-a,credential=t"
	if err != nil || have.String() != want || have.Port != 443 || have.MaxResponse != 16<<20 {
		t.Errorf("have %s, %v", have, err)
	}
	if _, err := (Rule{}).Normal(); err == nil {
		t.Error("a rule without host has a normal form")
	}
	plain, _ := Rule{Host: "a.com"}.Normal()
	plain.Methods[0] = "POST"
	if defaultMethods[0] != "GET" {
		t.Error("the defaults are shared")
	}
}

type noSecrets struct{}

func (noSecrets) Get(context.Context, string) (string, error) { return "", errors.New("none") }

// TestCoversIsSound checks that allowed permits whatever asked permits, with the same credential and at least the same response size.
func TestCoversIsSound(t *testing.T) {
	covered := 0
	rapid.Check(t, func(t *rapid.T) {
		allowed := drawFullRules(t, "allowed")
		asked := drawSimilar(t, allowed)
		if !Covers(allowed, asked) {
			return
		}
		covered++
		for range 20 {
			request := drawRequest(t)
			have, want := decide(t, Options{Rules: allowed}, request), decide(t, Options{Rules: asked}, request)
			if want == nil {
				continue
			}
			if have == nil || have.rule.Credential != want.rule.Credential || have.rule.As != want.rule.As || have.maxResponse < want.maxResponse {
				t.Fatalf("%+v is allowed by %v, and not so by %v", request, asked, allowed)
			}
		}
	})
	if covered == 0 {
		t.Error("no list of rules ever covers another: nothing was tried")
	}
}

// TestDisjointIsSound checks that no request matches both.
func TestDisjointIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := append(drawFullRules(t, "a"), drawFullRules(t, "b")...)
		request := drawRequest(t)
		for _, a := range all {
			for _, b := range all {
				if disjoint(a, b) && decide(t, Options{Rules: []Rule{a}}, request) != nil && decide(t, Options{Rules: []Rule{b}}, request) != nil {
					t.Fatalf("%+v is allowed by %s and by %s", request, a, b)
				}
			}
		}
	})
}

// TestWithinNeverWidens checks that whatever is allowed within a bound, both the rules and the bound allow.
func TestWithinNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		asked, bound, request := drawFullRules(t, "rules"), drawFullRules(t, "bound"), drawRequest(t)
		free := decide(t, Options{Rules: asked}, request)
		kept := decide(t, Options{Rules: asked, Within: [][]Rule{bound}}, request)
		var fits []Rule
		for _, b := range bound {
			bare := b
			bare.Credential, bare.As = "", ""
			c, _ := bare.compile()
			if free != nil && decide(t, Options{Rules: []Rule{bare}}, request) != nil && free.rule.addressesInside(c) && (free.rule.Credential == "" || free.rule.Credential == b.Credential) {
				fits = append(fits, b)
			}
		}
		if (kept != nil) != (len(fits) > 0) {
			t.Fatalf("%+v: within the bound it is allowed: %v; without: %v; by the bound: %v", request, kept, free, fits)
		}
		if kept == nil {
			return
		}
		if kept.rule.String() != free.rule.String() || kept.maxResponse > free.maxResponse {
			t.Fatalf("%+v is allowed in another way", request)
		}
		if first, _ := fits[0].Normal(); kept.maxResponse > first.MaxResponse {
			t.Fatalf("%d bytes, where the bound has %d", kept.maxResponse, first.MaxResponse)
		}
	})
}

func decide(t tester, o Options, r Request) *request {
	o.Credentials = noSecrets{}
	grant, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	q := checked(t, r)
	if open(t, grant).authorise(q) != nil {
		return nil
	}
	return q
}

// drawFullRules draws rules with credentials, sizes and addresses as well.
func drawFullRules(t *rapid.T, label string) []Rule {
	all := drawRules(t, label)
	for i := range all {
		all[i] = drawExtras(t, all[i])
	}
	return all
}

// drawExtras gives a rule the fields that no other function draws, if the rule stays valid.
func drawExtras(t *rapid.T, r Rule) Rule {
	changed := r
	changed.MaxResponse = rapid.SampledFrom([]int64{0, 5, 1 << 30}).Draw(t, "max response")
	changed.Credential = rapid.SampledFrom([]string{"", "", "t", "u"}).Draw(t, "credential")
	if rapid.Bool().Draw(t, "addresses") {
		changed.Addresses = []netip.Prefix{rapid.SampledFrom([]netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8"),
		}).Draw(t, "range")}
	}
	if _, err := changed.compile(); err != nil {
		return r
	}
	return changed
}

// drawSimilar draws rules that have much in common with others, in another order.
func drawSimilar(t *rapid.T, allowed []Rule) []Rule {
	if len(allowed) == 0 {
		return drawFullRules(t, "asked")
	}
	var all []Rule
	for range rapid.IntRange(0, 3).Draw(t, "number") {
		r := rapid.SampledFrom(allowed).Draw(t, "like")
		other := append(drawFullRules(t, "unlike"), r)[0]
		switch rapid.IntRange(0, 7).Draw(t, "aspect") {
		case 0:
			r.Host = other.Host
		case 1:
			r.Methods = other.Methods
		case 2:
			r.Path = other.Path
		case 3:
			r.Headers = other.Headers
		case 4:
			r = drawExtras(t, r)
		case 5:
			r = other
		}
		if _, err := r.compile(); err == nil {
			all = append(all, r)
		}
	}
	return all
}

func TestWithin(t *testing.T) {
	asked := rules("https://a.com,methods=*,credential=t", "https://127.0.0.1", "https://b.com,methods=*")
	for _, test := range []struct {
		name   string
		within [][]Rule
		r      Request
		want   string
	}{
		{"none", nil, Request{Method: "POST", URL: "https://a.com/x"}, ""},
		{"an empty set", [][]Rule{{}}, Request{Method: "GET", URL: "https://a.com/"}, "the operator's rules do not allow the host a.com"},
		{"all of it", [][]Rule{rules("https://a.com,methods=*,credential=t")}, Request{Method: "POST", URL: "https://a.com/x"}, ""},
		{
			"a method",
			[][]Rule{rules("https://a.com,credential=t")},
			Request{Method: "POST", URL: "https://a.com/x"},
			"the operator's rules do not allow the method POST",
		},
		{"a credential", [][]Rule{rules("https://a.com,methods=*")}, Request{Method: "GET", URL: "https://a.com/x"}, "the operator's rules do not allow the credential or the address of this request"},
		{"another credential", [][]Rule{rules("https://a.com,methods=*,credential=u")}, Request{Method: "GET", URL: "https://a.com/x"}, "the operator's rules do not allow the credential or the address of this request"},
		{
			"a credential in another place",
			[][]Rule{rules("https://a.com,methods=*,credential=t,as=basic")},
			Request{Method: "GET", URL: "https://a.com/x"},
			"the operator's rules do not allow the credential or the address of this request",
		},
		{"a credential that is not used", [][]Rule{rules("https://b.com,credential=t")}, Request{Method: "GET", URL: "https://b.com/", Headers: []Header{{"Range", "bytes=0-1"}}}, ""},
		{"loopback below any host", [][]Rule{rules("https://*:443,methods=*")}, Request{Method: "GET", URL: "https://127.0.0.1/"}, "the operator's rules do not allow the credential or the address of this request"},
		{"loopback", [][]Rule{rules("https://127.0.0.1")}, Request{Method: "GET", URL: "https://127.0.0.1/"}, ""},
		{
			"two sets",
			[][]Rule{rules("https://b.com,methods=*"), rules("https://b.com/x")},
			Request{Method: "GET", URL: "https://b.com/y"},
			"the operator's rules do not allow the path /y",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			grant, err := New(Options{Rules: asked, Within: test.within, Credentials: noSecrets{}})
			if err != nil {
				t.Fatal(err)
			}
			err = open(t, grant).authorise(checked(t, test.r))
			if (err == nil) != (test.want == "") || err != nil && !strings.HasSuffix(err.Error(), test.want) {
				t.Fatalf("have %v", err)
			}
		})
	}
	private := rules("https://a.com,addresses=10.0.0.0/8,max-response=50")
	for bound, want := range map[string]int64{
		"https://a.com": -1, "https://a.com,addresses=10.0.0.0/16": -1, "https://*:443,addresses=0.0.0.0/0": 50,
		"https://a.com,addresses=10.0.0.0/8,max-response=5": 5, "https://a.com,addresses=10.0.0.0/8,max-response=500": 50,
	} {
		have := int64(-1)
		if q := decide(t, Options{Rules: private, Within: [][]Rule{rules(bound)}}, Request{Method: "GET", URL: "https://a.com/"}); q != nil {
			have = q.maxResponse
		}
		if have != want {
			t.Errorf("within %s a response has %d bytes, want %d", bound, have, want)
		}
	}
	for _, bad := range [][]Rule{{{Host: "a b"}}, {{Host: "a.com", Credential: "A"}}, make([]Rule, MaxRules+1)} {
		if _, err := New(Options{Within: [][]Rule{bad}}); err == nil {
			t.Errorf("%v is accepted", bad[0])
		}
	}
}
