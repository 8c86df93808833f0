package spelling

import (
	"slices"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for value, want := range map[string][]string{
		"":        nil,
		"abcd":    {"abcd", "61626364", "YWJjZA==", "YWJjZA", "QmVhcmVyIGFiY2Q", "61 62 63 64", "61:62:63:64", "%61%62%63%64"},
		"\xff/":   {"\xff/", "ff2f", "FF2F", "%FF%2F", "%ff%2f", "%FF/", "/y8=", "%2Fy8%3D", `\/y8=`, `\/y8\u003d`, "&#x2f;y8&#x3d;"},
		"\u00f6'": {`\u00f6'`, `\u00F6\u0027`, `\u00f6\u0027`, "\u00f6&apos;", "%C3%B6'"},
	} {
		got := Of(value)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%q lacks %q", value, w)
			}
		}
		if slices.Sort(got); len(slices.Compact(slices.Clone(got))) != len(got) || slices.Contains(got, "") {
			t.Errorf("%q: one is empty, or there twice: %q", value, got)
		}
	}
}

// TestCost has values made of what is escaped in most ways. A token has few spellings, and none has many times more.
func TestCost(t *testing.T) {
	for value, most := range map[string]int{
		strings.Repeat("0123456789abcdef", 64): 40, strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDb/3+xk\n", 32): 80, strings.Repeat("\"&'<>/+= ~*`\u00f6\u2028", 64): 700,
	} {
		total := 0
		for _, text := range Of(value) {
			total += len(text)
		}
		t.Logf("%.20q: %d times its bytes", value, total/len(value))
		if total > most*len(value) {
			t.Errorf("%.20q: its spellings have %d times its bytes", value, total/len(value))
		}
	}
}
