package http

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
)

func TestPathMatches(t *testing.T) {
	for _, test := range []struct {
		pattern string
		yes, no []string
	}{
		{"/**", []string{"/", "/a", "/a/", "/a/b%2Fc"}, nil},
		{"/", []string{"/", "/.", "/a/.."}, []string{"/a", "//"}},
		{"/ok", []string{"/ok", "/%6fk", "/x/../ok"}, []string{"/ok/", "/OK", "/okay", "/ok/..", "/"}},
		{"/ok/", []string{"/ok/", "/ok/a/.."}, []string{"/ok", "/ok/a"}},
		{"/ok/**", []string{"/ok", "/ok/", "/ok/a/b", "/ok//a", "/ok/a%2Fb"}, []string{"/okay", "/ok/../secret", "/ok/%2e%2e/secret", "/ok%2Fa", "/x/ok"}},
		{"/ok/*", []string{"/ok/a", "/ok/a;b=c"}, []string{"/ok", "/ok/", "/ok/a/", "/ok/a/b", "/ok/a%2Fb"}},
		{"/repos/*/*/issues/**", []string{"/repos/a/b/issues", "/repos/a/b/issues/1/x"}, []string{"/repos/a/issues", "/repos//b/issues", "/repos/a/b/c/issues"}},
		{"/**/x/**/y", []string{"/x/y", "/a/x/y", "/x/x/a/y/y"}, []string{"/x", "/y", "/x/y/", "/x/y/z"}},
		{"/a/**/b/*.json", []string{"/a/b/c.json", "/a/1/2/b/.json"}, []string{"/a/b/c.jsonx", "/a/b/c/d.json", "/b/c.json"}},
		{"/v*/a*b*c", []string{"/v1/abc", "/v/aXbYc", "/v/abbcc"}, []string{"/v1/ab", "/v1/acb", "/w/abc", "/v1/abc/"}},
		{"/aa*aa", []string{"/aaaa", "/aaXaa"}, []string{"/aaa", "/aa"}},
		{"/%2A/%2a", []string{"/*/*", "/%2A/*"}, []string{"/a/b"}},
		{"/caf%C3%A9/é", []string{"/café/%C3%A9"}, []string{"/cafe/e"}},
		{"/projects/group%2Fproject/**", []string{"/projects/group%2fproject", "/projects/group%2Fproject/x"}, []string{"/projects/group/project", "/projects/group"}},
		{"/projects/*%2F*", []string{"/projects/a%2Fb"}, []string{"/projects/a/b", "/projects/a%2Fb%2Fc", "/projects/a"}},
		{"/a/**/c", []string{"/a/b%2Fb/c"}, []string{"/a%2Fc", "/a/b%2Fc"}},
	} {
		p, err := parsePattern(test.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range test.yes {
			if target := parse(t, "https://e"+path); !p.matches(target) {
				t.Errorf("%s does not match %s", test.pattern, path)
			}
		}
		for _, path := range test.no {
			if target := parse(t, "https://e"+path); p.matches(target) {
				t.Errorf("%s matches %s", test.pattern, path)
			}
		}
	}
}

func TestPatternIsRefused(t *testing.T) {
	for _, pattern := range []string{
		"", "a", "*", "**", "/a**", "/**a", "/***", "/**%2F**", "/a?b", "/a#b", "/..", "/.", "/a/../b", "/%2e%2e", "/..;a", "/..%2F*", "/ ", "/\\", "/%5c",
		"/%", "/%0", "/%00", "/%ff", "/\xff", "/\n", "/%252e", "/" + strings.Repeat("a", maxPattern),
	} {
		if _, err := parsePattern(pattern); err == nil {
			t.Errorf("%q is accepted", pattern)
		}
	}
}

// TestMatchingIsQuick matches patterns that take exponential time if every * is retried.
func TestMatchingIsQuick(t *testing.T) {
	p, err := parsePattern(strings.Repeat("/**/"+strings.Repeat("a*", 20)+"b", 40))
	if err != nil {
		t.Fatal(err)
	}
	target := parse(t, "https://e"+strings.Repeat("/"+strings.Repeat("a", 60), 120))
	start := time.Now()
	if p.matches(target) || time.Since(start) > time.Minute { // exponential time would be years
		t.Fatalf("matched in %v", time.Since(start))
	}
}

// TestAuthorisingIsQuick has a guest narrow a client with rules that are slow to compare with its path.
func TestAuthorisingIsQuick(t *testing.T) {
	narrowed := openRules(t, []Rule{{Host: "e"}})
	slow := WitRule{Host: "e", Path: "/**" + strings.Repeat("/*", 500) + "/b/**"}
	rules := append(slices.Repeat([]WitRule{slow}, 50), WitRule{Host: "e"})
	for {
		next, err := narrowed.Narrow(t.Context(), rules)
		if err != nil {
			break // as much as a call may hold
		}
		narrowed = next
	}
	for _, test := range []struct {
		segments int
		want     error
	}{{4000, abi.ErrExhausted}, {50, nil}} {
		start := time.Now()
		err := narrowed.authorise(checked(t, Request{Method: "GET", URL: "https://e" + strings.Repeat("/a", test.segments)}))
		if !errors.Is(err, test.want) || time.Since(start) > time.Minute {
			t.Errorf("%d segments: %v in %v", test.segments, err, time.Since(start))
		}
	}
}

func TestMatchingAgreesWithDefinition(t *testing.T) { rapid.Check(t, agreesWithDefinition) }

func FuzzMatching(f *testing.F) { f.Fuzz(rapid.MakeFuzz(agreesWithDefinition)) }

func agreesWithDefinition(t *rapid.T) {
	pattern := rapid.SliceOfN(rapid.SampledFrom([]string{"**", "*", "a", "b", "a*", "*b", "a*b", "*a*", ""}), 1, 6).Draw(t, "pattern")
	path := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "aab", "ba", "c", ""}), 1, 7).Draw(t, "path")
	if have, want := parseSegments("/"+strings.Join(pattern, "/")).match(path), definedMatch(pattern, path); have != want {
		t.Fatalf("%v on %v: have %v, want %v", pattern, path, have, want)
	}
}

// definedMatch is the definition of "**" over segments, as recursion.
func definedMatch(pattern, path []string) bool {
	switch {
	case len(pattern) == 0:
		return len(path) == 0
	case pattern[0] == "**":
		return definedMatch(pattern[1:], path) || len(path) > 0 && definedMatch(pattern, path[1:])
	case len(path) == 0 || path[0] == "" && pattern[0] != "":
		return false
	default:
		return definedText(pattern[0], path[0]) && definedMatch(pattern[1:], path[1:])
	}
}

// definedText is the definition of "*" within a segment.
func definedText(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return definedText(pattern[1:], text) || text != "" && definedText(pattern, text[1:])
	default:
		return text != "" && text[0] == pattern[0] && definedText(pattern[1:], text[1:])
	}
}

func parse(t *testing.T, url string) *target {
	t.Helper()
	parsed, err := parseTarget(url)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return parsed
}
