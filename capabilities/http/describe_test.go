package http

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAnyHeader checks that a person reads which headers "*" leaves out, and that those are the ones that are left out.
func TestAnyHeader(t *testing.T) {
	left := func(list ...string) string {
		text := Rule{Host: "example.com", Headers: list}.Requests()
		_, text, found := strings.Cut(text, ", setting any header but ")
		if !found {
			t.Errorf("%q: nothing is left out", list)
		}
		return text
	}
	all := left("*")
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "capabilities.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"authorization", "cookie", "cookie2", "forwarded", "x-forwarded", "x-forwarded-for", "x-real-ip", "x-http-method-override", "x-rewrite-url"} {
		rule, err := Rule{Host: "example.com", Headers: []string{"*"}}.compile()
		if err != nil || rule.allowsHeader(name) {
			t.Errorf("* allows %s: %v", name, err)
		}
		word := strings.Replace(name, "x-forwarded-for", "x-forwarded-", 1)
		if !strings.Contains(all, word) || !strings.Contains(string(guide), "`"+word+"`") {
			t.Errorf("%s is not named in %q, or not in docs/capabilities.md", word, all)
		}
	}
	for _, name := range namedHeaders {
		if !strings.Contains(all, name) || !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("%s is not named in %q, or not in docs/capabilities.md", name, all)
		}
	}
	if text := left("*", "cookie", "x-mine"); slices.Contains(strings.Split(text, ", "), "cookie") || !strings.HasSuffix(text, ", and also cookie") {
		t.Errorf("with a cookie: %q", text)
	}
	for _, name := range []string{"host", "content-length", "connection", "te", "via", "proxy-authorization"} {
		if !forbiddenHeader(name) {
			t.Errorf("%s can be set", name)
		}
	}
}
