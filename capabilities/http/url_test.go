package http

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestURLIsNormalised(t *testing.T) {
	for in, want := range map[string]string{
		"https://example.com":                          "https://example.com/",
		"HTTPS://EXAMPLE.com:443/":                     "https://example.com/",
		"http://example.com:80/a":                      "http://example.com/a",
		"http://example.com:0443/":                     "http://example.com:443/",
		"https://example.com./a":                       "https://example.com/a",
		"https://EXAMPLE.COM.:8443/a":                  "https://example.com:8443/a",
		"https://example.com/a#fragment":               "https://example.com/a",
		"https://example.com#@evil.example/":           "https://example.com/",
		"https://example.com?@evil.example/":           "https://example.com/?@evil.example/",
		"https://bücher.example/":                      "https://xn--bcher-kva.example/",
		"https://BÜCHER.example/":                      "https://xn--bcher-kva.example/",
		"https://xn--bcher-kva.example/":               "https://xn--bcher-kva.example/",
		"https://XN--BCHER-KVA.example/":               "https://xn--bcher-kva.example/",
		"https://bu\u0308cher.example/":                "https://xn--bcher-kva.example/",
		"https://BU\u0308CHER.example/":                "https://xn--bcher-kva.example/",
		"https://stra\u00dfe.example/":                 "https://xn--strae-oqa.example/",
		"https://\u0130x.example/":                     "https://xn--ix-rub.example/",
		"https://STRA\u1e9eE.example/":                 "https://xn--strae-oqa.example/",
		"https://\u212aelvin.example/":                 "https://kelvin.example/",
		"https://example。com/":                         "https://example.com/",
		"https://ｅｘａｍｐｌｅ.com/":                         "https://example.com/",
		"https://_dmarc.r3---x.example/":               "https://_dmarc.r3---x.example/",
		"http://127.0.0.1/":                            "http://127.0.0.1/",
		"http://１２７.0.0.1/":                            "http://127.0.0.1/",
		"http://127.0.0.1./":                           "http://127.0.0.1/",
		"http://[::1]:8080/":                           "http://[::1]:8080/",
		"http://[0:0:0:0:0:0:0:1]/":                    "http://[::1]/",
		"http://[::ffff:127.0.0.1]/":                   "http://127.0.0.1/",
		"http://[::ffff:7f00:1]/":                      "http://127.0.0.1/",
		"https://example.com/ok/../secret":             "https://example.com/secret",
		"https://example.com/ok/%2e%2e/secret":         "https://example.com/secret",
		"https://example.com/ok/%2E./secret":           "https://example.com/secret",
		"https://example.com/ok/./a/.":                 "https://example.com/ok/a/",
		"https://example.com/ok/a/..":                  "https://example.com/ok/",
		"https://example.com/../../a":                  "https://example.com/a",
		"https://example.com/%61%7e%2D/%e2%82%ac":      "https://example.com/a~-/%E2%82%AC",
		"https://example.com/€|\"":                     "https://example.com/%E2%82%AC%7C%22",
		"https://example.com/a%2fb":                    "https://example.com/a%2Fb",
		"https://example.com/a//b":                     "https://example.com/a//b",
		"https://example.com//evil.example/":           "https://example.com//evil.example/",
		"https://example.com/?q=%2e%2e&r=é'<":          "https://example.com/?q=%2e%2e&r=%C3%A9%27%3C",
		"https://example.com/?a=%zz":                   "https://example.com/?a=%zz",
		"https://example.com/100%25":                   "https://example.com/100%25",
		"https://example.com/[a];b=c,d@e:f!$&'()*+,;=": "https://example.com/[a];b=c,d@e:f!$&'()*+,;=",
	} {
		got, err := parseTarget(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		} else if got.String() != want {
			t.Errorf("%s: have %s, want %s", in, got, want)
		}
	}
}

func TestURLIsRefused(t *testing.T) {
	for _, in := range []string{
		"", "https", "https:", "https:/example.com", "https:example.com", "//example.com", "/a", "example.com",
		"https://", "https:///a", "https://?a", "https://#a", "https://:443/", "https://./", "https://../",
		"ftp://example.com/", "file:///etc/passwd", "javascript://example.com/%0aalert(1)", "ws://example.com/", "data:,a",
		"file://example.com/C:/a", "file:////example.com/a", "blob:https://example.com/a", "blob:https://example.com/2eb8aa08-aa98-11ea-b4aa-73b441d16380", "C|/a",
		" https://example.com/", "https://example.com/ ", "https://exa mple.com/", "https://example.com/a b",
		"https://example.com/\t", "\thttps://example.com/", "https://example.com/a\r\nHost: evil.example", "https://example.com/\x00",
		"https://example.com\x7f/", "https://example.com/\u0085", "https://example.com/\xff", "https://exam\xffple.com/",
		// Ambiguous hosts.
		"https://good.example@evil.example/", "https://user:pass@example.com/", "https://@example.com/", "https://:@example.com/",
		`https://good.example\@evil.example/`, `https://evil.example\.good.example/`, `https:\\example.com/`, `https://example.com\a`,
		"https://good.example%40evil.example/", "https://good.example%2f.evil.example/", "https://good.example%00.evil.example/",
		"https://exa%6dple.com/", "https://good.example;evil.example/", "https://good.example,evil.example/", "https://good.example&evil.example/",
		"https://example..com/", "https://.example.com/", "https://example.com../", "https://*.example.com/",
		"https://" + strings.Repeat("a", 64) + ".example/", "https://" + strings.Repeat("a.", 127) + "example/",
		"https://xn--a/", "https://xn--/", "https://xn--bcher-kva\u200b!.example/", "https://\u00ad/", "https://☃!.example/",
		// Ports.
		"https://example.com:/", "https://example.com:0/", "https://example.com:65536/", "https://example.com:99999999999/",
		"https://example.com:-1/", "https://example.com:+443/", "https://example.com:80:80/", "https://example.com:http/", "https://example.com:４４３/",
		"https://example.com:443@evil.example/",
		// Spellings of 127.0.0.1 and 169.254.169.254.
		"http://0177.0.0.1/", "http://0x7f.0.0.1/", "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://127.1/",
		"http://127.0.1/", "http://127.0.0.01/", "http://127.0.0.0x1/", "http://256.0.0.1/", "http://1.2.3.4.5/", "http://0x/", "http://0xa9fea9fe/",
		"http://2852039166/", "http://①②⑦.1/", "http://127.0.0.1.0x/", "http://foo.0x4/", "http://foo.1/",
		"http://[::1/", "http://::1/", "http://[]/", "http://[127.0.0.1]/", "http://[::1]x/", "http://[::1%25eth0]/", "http://[fe80::1%eth0]/",
		"http://[::1].example/", "http://x[::1]/", "http://[[::1]]/", "http://[::ffff:127.1]/", "http://[v1.x]/",
		// Paths that a server may interpret differently.
		"https://example.com/a%", "https://example.com/%2", "https://example.com/%zz", "https://example.com/%00", "https://example.com/%0d%0a",
		"https://example.com/%5c..%5cx", "https://example.com/%7f", "https://example.com/ok/..;/secret", "https://example.com/ok/..%3b/secret",
		"https://example.com/ok/.;x/secret", "https://example.com/ok/..%2fsecret", "https://example.com/ok/%2e%2e%2fsecret", "https://example.com/ok%2f..",
		"https://example.com/ok/%252e%252e/secret", "https://example.com/ok/.%252e", "https://example.com/ok%252fsecret", "https://example.com/%255c", "https://example.com/%2500",
		"https://example.com/%25252525252e", "https://example.com/%c0%ae%c0%ae/", "https://example.com/%ff",
		"https://example.com/" + strings.Repeat("a", maxURL), "https://example.com/" + strings.Repeat("é", maxURL/4),
	} {
		if got, err := parseTarget(in); err == nil {
			t.Errorf("%q: accepted as %s", in, got)
		}
	}
}

// FuzzURL checks that the authorised host is the one that is dialled and sent, according to net/url and net/http.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/", "http://[::ffff:127.0.0.1]:8080/a/../b?c#d", `http://good\@evil/`, "https://bücher.example/%2e%2e/%2f",
		"https://xn--bcher-kva.example./", "http://0x7f.1/", "http://a/..;/b", "http://a//b/%252e", "HTTP://EXAMPLE.COM:80?q", "http://a/[]|\"é",
		"https://bu\u0308cher.example/", "https://\u0130\u1e9e.example/", "https://\u212a.example/", "https://\u05d0.example/", "blob:https://a/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		target, err := parseTarget(in)
		if err != nil {
			return
		}
		normal := target.String()
		again, err := parseTarget(normal)
		if err != nil || again.String() != normal {
			t.Fatalf("%q: %q is not normal: %v, %v", in, normal, again, err)
		}
		sent := (&request{method: "GET", target: target}).http(t.Context())
		if sent.URL.Scheme != target.scheme || sent.URL.Hostname() != strings.Trim(target.host.String(), "[]") || sent.Host != sent.URL.Host {
			t.Fatalf("%q: %s is sent to %s", in, normal, sent.URL.Host)
		}
		line := target.path
		if target.query != "" {
			line += "?" + target.query
		}
		if sent.URL.RequestURI() != line {
			t.Fatalf("%q: %s is sent as %s", in, line, sent.URL.RequestURI())
		}
		other, err := url.Parse(normal)
		if err != nil || other.User != nil || other.Host != target.authority() || other.EscapedPath() != target.path || other.RawQuery != target.query {
			t.Fatalf("%q: net/url reads %s as %#v: %v", in, normal, other, err)
		}
		if addr, err := netip.ParseAddr(other.Hostname()); (err == nil) != target.host.addr.IsValid() || err == nil && addr != target.host.addr {
			t.Fatalf("%q: the host is %v and %v", in, addr, target.host)
		}
		if plainly, err := url.Parse(in); err == nil && ascii(in) {
			host := strings.TrimSuffix(strings.ToLower(plainly.Hostname()), ".")
			if addr, err := netip.ParseAddr(host); err == nil {
				host = addr.Unmap().String()
			}
			if host != strings.Trim(target.host.String(), "[]") {
				t.Fatalf("net/url reads %q with the host %s, not %s", in, host, target.host)
			}
		}
		for _, segment := range append(target.split, target.segments...) {
			if segment == "." || segment == ".." || strings.ContainsAny(segment, "\\\x00\r\n") {
				t.Fatalf("%q: the segment %q", in, segment)
			}
		}
		if _, err := parsePattern(patternOf(target)); err != nil && len(patternOf(target)) <= maxPattern {
			t.Fatalf("%q: %v", in, err)
		} else if p, _ := parsePattern(patternOf(target)); err == nil && !p.matches(target) {
			t.Fatalf("%q: its own pattern %s does not match", in, patternOf(target))
		}
	})
}
