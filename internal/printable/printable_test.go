package printable

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	long := strings.Repeat("ordinary text, ", 100_000)
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"plain", "plain text", "plain text"},
		{"line feed and tab stay", "a\tb\nc\n", "a\tb\nc\n"},
		{"other scripts stay", "日本語 עברית العربية नमस्ते é e\u0301", "日本語 עברית العربية नमस्ते é e\u0301"},
		{"emoji with joiner stays", "👩\u200d💻", "👩\u200d💻"},
		{"replacement character stays", "a\ufffdb", "a\ufffdb"},
		{"escape sequence", "\x1b[2J\x1b]0;title\x07", `\x1b[2J\x1b]0;title\x07`},
		{"NUL, backspace, delete", "a\x00b\bc\x7f", `a\x00b\x08c\x7f`},
		{"C1 as a character", "\u009b31m", `\u009b31m`},
		{"C1 as a raw byte", "\x9b31m", `\x9b31m`},
		{"lone CR", "ok\rdenied", `ok\x0ddenied`},
		{"CR at the end", "ok\r", `ok\x0d`},
		{"CR CR LF", "ok\r\r\n", "ok\\x0d\n"},
		{"CR LF", "a\r\nb\r\n", "a\nb\n"},
		{"bidi override", "a\u202eb\u202c", `a\u202eb\u202c`},
		{"bidi isolates and marks", "\u2066a\u2069\u200e\u200f\u061c", `\u2066a\u2069\u200e\u200f\u061c`},
		{"byte order mark", "\ufeffa", `\ufeffa`},
		{"zero width space and soft hyphen", "pay\u200bpal\u00ad", `pay\u200bpal\u00ad`},
		{"separators", "a\u2028b\u2029", `a\u2028b\u2029`},
		{"invisible tags", "a\U000e0041", `a\U000e0041`},
		{"broken UTF-8", "a\xff\xc3", `a\xff\xc3`},
		{"surrogate half", "\xed\xa0\x80", `\xed\xa0\x80`},
		{"overlong slash", "\xc0\xaf", `\xc0\xaf`},
		{"very long, clean", long, long},
		{"very long, one escape at the end", long + "\x1b", long + `\x1b`},
		{"very long, all escapes", strings.Repeat("\x1b", 1<<20), strings.Repeat(`\x1b`, 1<<20)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Text(tt.in); got != tt.want {
				t.Errorf("got %.80q, want %.80q", got, tt.want)
			}
		})
	}
}

// No line of text from elsewhere looks like a line around it.
func TestFurtherLines(t *testing.T) {
	for got, want := range map[string]string{
		Hanging("a\nstile: b\x1b"):                                 "a\n    stile: b\\x1b",
		HangingStack("Caused by a\nstile: b\n    at f (a:1)\n"):    "Caused by a\n    stile: b\n    at f (a:1)",
		Problem("a\nb", 1, 2, "threw a\nstile: b", "c\nd", "e\nf"): "a\\nb:1:2: threw a\n    stile: b; write c\n    d\n    e\n    f",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPrintableCut(t *testing.T) {
	tests := []struct {
		name, in string
		max      int
		want     string
	}{
		{"short", "abc", 4, "abc"},
		{"just fits", "abcd", 4, "abcd"},
		{"long", "abcde", 4, "abcd..."},
		{"between characters", "日本語", 6, "日本..."},
		{"in a character", "日本語", 5, "日..."},
		{"in the first character", "日本語", 2, "..."},
		{"to nothing", "abc", 0, "..."},
		{"escapes do not count", "\x1b\x1b\x1b", 2, `\x1b\x1b...`},
		{"bytes that are not UTF-8 are shown", "a\xffbcd", 3, `a\xffb...`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Short(tt.in, tt.max); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPrintableEnds(t *testing.T) {
	for _, tt := range []struct {
		in   string
		max  int
		want string
	}{
		{"abcd", 4, "abcd"},
		{"abcdefgh", 4, "ab\n... (4 bytes) ...\ngh"},
		{"日本語日本語", 8, "日\n... (12 bytes) ...\n語"},
		{"a\x1bxxxx\x1bb", 4, "a\\x1b\n... (4 bytes) ...\n\\x1bb"},
		{"ab\xbf\xbf\xbf\xbf\xbf\xbf", 6, "a\n... (7 bytes) ...\n"},
		{"abc", 0, "\n... (3 bytes) ...\n"},
	} {
		if got := Ends(tt.in, tt.max); got != tt.want {
			t.Errorf("Ends(%q, %d) = %q, want %q", tt.in, tt.max, got, tt.want)
		}
	}
}

func hides(s string) bool { at, _ := NextHidden(s, 0); return at >= 0 }

func FuzzPrintable(f *testing.F) {
	f.Add("a\r\n\x1b\u202e\xff")
	f.Add("👩\u200d💻\u200d\u200c1\ufe0f\u20e3\ufe0f")
	f.Add("क" + strings.Repeat("\u094d\u200d", 9) + "\u0301\u200cم\u0301\u20e3")
	f.Fuzz(func(t *testing.T, s string) {
		p := Text(s)
		switch {
		case !utf8.ValidString(p):
			t.Errorf("%q: not UTF-8", p)
		case hides(p):
			t.Errorf("%q: still hides something", p)
		case len(p) > 4*len(s):
			t.Errorf("%d bytes grew to %d", len(s), len(p))
		case Text(p) != p:
			t.Errorf("%q: a second pass changes it", p)
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add("aé\x80日", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(max(n, 0), 1<<20)
		got := Cut(s, n)
		if !strings.HasPrefix(s, got) || len(got) > n && len(s) > n || utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("Cut(%q, %d) = %q", s, n, got)
		}
	})
}
