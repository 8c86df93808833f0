package http

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestParseRule(t *testing.T) {
	for spec, want := range map[string]Rule{
		"https://a,credential=a-token": {
			Scheme: "https", Host: "a", Port: 443, Methods: []string{"GET", "HEAD"}, Path: "/**", Credential: "a-token", As: "bearer", MaxResponse: 16 << 20,
		},
		"https://a,credential=a-token,as=header:X-Api-Key": {
			Scheme: "https", Host: "a", Port: 443, Methods: []string{"GET", "HEAD"}, Path: "/**", Credential: "a-token", As: "header:X-Api-Key", MaxResponse: 16 << 20,
		},
		"https://api.github.com": {
			Scheme: "https", Host: "api.github.com", Port: 443, Methods: []string{"GET", "HEAD"}, Path: "/**", MaxResponse: 16 << 20,
		},
		"https://api.github.com/repos/**,methods=GET+post": {
			Scheme: "https", Host: "api.github.com", Port: 443, Methods: []string{"GET", "POST"}, Path: "/repos/**", MaxResponse: 16 << 20,
		},
		"http://*:8080/**": {
			Scheme: "http", Host: "*", Port: 8080, Methods: []string{"GET", "HEAD"}, Path: "/**", MaxResponse: 16 << 20,
		},
		"HTTP://*.Bücher.example./,methods=*,headers=Authorization+*,max-response=5": {
			Scheme: "http", Host: "*.xn--bcher-kva.example", Port: 80, Methods: []string{"*"}, Path: "/", Headers: []string{"authorization", "*"}, MaxResponse: 5,
		},
		"http://127.0.0.1:8080/ok/**": {
			Scheme: "http", Host: "127.0.0.1", Port: 8080, Methods: []string{"GET", "HEAD"}, Path: "/ok/**", MaxResponse: 16 << 20,
		},
		"https://[2606:4700::0]:8443/a%2Cb,addresses=10.1.2.3/8+fd00::/8": {
			Scheme: "https", Host: "[2606:4700::]", Port: 8443, Methods: []string{"GET", "HEAD"}, Path: "/a%2Cb", MaxResponse: 16 << 20,
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
		},
	} {
		rule, err := ParseRule(spec)
		if err != nil {
			t.Error(err)
			continue
		}
		normal := compile(t, rule).Rule
		if normal.Headers == nil {
			want.Headers = nil
		}
		if len(normal.Headers) == 0 {
			normal.Headers = want.Headers
		}
		if len(normal.Addresses) == 0 {
			normal.Addresses = want.Addresses
		}
		if !reflect.DeepEqual(normal, want) {
			t.Errorf("%s: have %+v, want %+v", spec, normal, want)
		}
		again, err := ParseRule(normal.String())
		if err != nil || compile(t, again).String() != normal.String() {
			t.Errorf("%s: %s does not come back: %v, %v", spec, normal, again, err)
		}
	}
}

func TestParseRuleRefuses(t *testing.T) {
	for _, spec := range []string{
		"", "api.github.com", "ftp://a", "https://", "https://*", "https://*/", "https://**:1/", "https://*a:1/", "https://a.*:1/", "https://*.*:1", "https://*.:1",
		"https://*.10.0.0.1", "https://a:0", "https://a:65536", "https://a:b", "https://a@b", "https://user:pass@a", "https://a?b", "https://a#b",
		"https://a/b?c", "https://a/..", "http://127.1", "http://0x7f.1", "http://0.0.0.0:80", "http://[::]:80", "https://a,methods", "https://a,methods=",
		"https://a,methods=CONNECT", "https://a,methods=trace", "https://a,methods=GET POST", "https://a,headers=host", "https://a,headers=a b", "https://a,headers=Content-Length",
		"https://a,headers=proxy-authorization", "https://a,max-response=x", "https://a,max-response=-1", "https://a,max-response=9223372036854775807", "https://a,addresses=10.0.0.1", "https://a,unknown=1", "https:// a", "https://a\\b",
	} {
		if rule, err := ParseRule(spec); err == nil {
			t.Errorf("%q is accepted as %s", spec, rule)
		}
	}
}

func TestRuleJSON(t *testing.T) {
	var rule Rule
	text := `{"scheme":"http","host":"api.github.com","port":8080,"methods":["GET","POST"],"path":"/repos/**","headers":["authorization"],"maxResponse":1024}`
	if err := json.Unmarshal([]byte(text), &rule); err != nil {
		t.Fatal(err)
	}
	rule.Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	back, err := json.Marshal(rule)
	if err != nil || string(back) != text {
		t.Fatalf("%s, %v", back, err)
	}
	for _, text := range []string{
		`null`, `[]`, `"https://a"`, `{}`, `{"host":""}`, `{"host":null}`, `{"host":1}`, `{"host":"a","host":"b"}`, `{"Host":"a"}`, `{"host":"a","HOST":"b"}`,
		`{"host":"a","hots":"b"}`, `{"host":"a","methods":[]}`, `{"host":"a","methods":null}`, `{"host":"a","methods":"GET"}`, `{"host":"a","methods":[ ]}`, `{"host":"a","port":0}`,
		`{"host":"a","port":-1}`, `{"host":"a","port":65536}`, `{"host":"a","port":1.5}`, `{"host":"a","path":""}`, `{"host":"a","path":"a"}`, `{"host":"a","maxResponse":0}`,
		`{"host":"a","maxResponse":-1}`, `{"host":"a","addresses":["10.0.0.0/8"]}`, `{"host":"*"}`, `{"host":"*","port":443}`, `{"host":"a","credential":""}`, `{"host":"a","credential":"x","as":""}`, `{"host":"a"`,
		`{"host":"a","scheme":"ftp"}`, `{"host":"a","headers":["host"]}`,
	} {
		before := Rule{Host: "untouched"}
		after := before
		if err := json.Unmarshal([]byte(text), &after); err == nil {
			t.Errorf("%s is accepted as %s", text, after)
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s changes the rule", text)
		}
	}
}

func TestRuleIsBounded(t *testing.T) {
	many := strings.Split(strings.Repeat("X-A,", 200)+"X-A", ",")
	for name, rule := range map[string]Rule{
		"methods": {Host: "a", Methods: many}, "headers": {Host: "a", Headers: many}, "path": {Host: "a", Path: "/" + strings.Repeat("a", 1<<20)},
		"host": {Host: strings.Repeat("a.", 1<<20)}, "label": {Host: strings.Repeat("a/", 1<<20)}, "addresses": {Host: "a", Addresses: []netip.Prefix{{}}},
	} {
		if _, err := rule.compile(); err == nil || len(err.Error()) > 4096 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseRule(f *testing.F) {
	f.Add("https://api.github.com/repos/**,methods=GET+POST")
	f.Add("http://*:8080/**,headers=a+b,max-response=1,addresses=10.0.0.0/8")
	f.Add("http://[::1]:1/%2c%2F*")
	f.Fuzz(func(t *testing.T, spec string) {
		rule, err := ParseRule(spec)
		if err != nil {
			return
		}
		normal := compile(t, rule).String()
		again, err := ParseRule(normal)
		if err != nil || compile(t, again).String() != normal {
			t.Fatalf("%q: %q does not come back: %v", spec, normal, err)
		}
	})
}

func compile(t *testing.T, rule Rule) *compiled {
	t.Helper()
	c, err := rule.compile()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
