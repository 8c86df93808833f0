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

// TestMaxBytes has values that can be written in many ways.
func TestMaxBytes(t *testing.T) {
	const most = 16 << 10
	for name, c := range map[string]struct {
		value    string
		complete bool
	}{
		"a token":        {strings.Repeat("eyJhbGciOi-_.", most/13), true},
		"base64":         {strings.Repeat("MIIEvQIBADAN+/=\n", most/16), true},
		"JSON":           {strings.Repeat(`{"private_key": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDb/3+x\nk1"}`, most/80), true},
		"bytes":          {strings.Repeat("\x00\xff\x80/\"a", most/6), true},
		"4 KiB of signs": {strings.Repeat("\"&'<>/+= ~*`\u00f6\u2028", 4<<10/17), true},
		"signs":          {strings.Repeat("\"&'<>/+= ~*`", most/12), false},
	} {
		size, all := 0, Of(c.value)
		for _, text := range all {
			size += len(text)
		}
		t.Logf("%s: %d texts, %d times its bytes", name, len(all), size/len(c.value))
		if Complete(c.value) != c.complete || size > MaxBytes+6*len(c.value)*2 {
			t.Errorf("%s: %d bytes in %d spellings, complete: %t", name, size, len(all), Complete(c.value))
		}
	}
}
