package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/internal/spelling"
)

func TestRedactSpellings(t *testing.T) {
	const value = "p/4 <s>\"w\\ö\U0001f511+r=d&\n%"
	std, raw, web := base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRedactor(value, "")
	for name, text := range map[string]string{
		"exact":              value,
		"hex":                hex.EncodeToString([]byte(value)),
		"HEX":                strings.ToUpper(hex.EncodeToString([]byte(value))),
		"hex with colons":    strings.ReplaceAll(fmt.Sprintf("% x", value), " ", ":"),
		"HEX with spaces":    fmt.Sprintf("% X", value),
		"all percent":        "%" + strings.ReplaceAll(fmt.Sprintf("% x", value), " ", "%"),
		"base64":             std.EncodeToString([]byte(value)),
		"base64 raw":         raw.EncodeToString([]byte(value)),
		"base64 URL":         web.EncodeToString([]byte(value)),
		"base64 in URL":      url.QueryEscape(std.EncodeToString([]byte(value))),
		"query":              url.QueryEscape(value),
		"path":               url.PathEscape(value),
		"query in lower":     lowerEscapes(url.QueryEscape(value)),
		"encodeURIComponent": "p%2F4%20%3Cs%3E%22w%5C%C3%B6%F0%9F%94%91%2Br%3Dd%26%0A%25",
		"encodeURI":          "p/4%20%3Cs%3E%22w%5C%C3%B6%F0%9F%94%91+r=d&%0A%25",
		"JSON from Go":       strings.Trim(string(quoted), `"`),
		"JSON.stringify":     `p/4 <s>\"w\\ö` + "\U0001f511" + `+r=d&\n%`,
		"JSON from Python":   `p/4 <s>\"w\\\u00f6\ud83d\udd11+r=d&\n%`,
		"JSON from PHP":      `p\/4 <s>\"w\\\u00f6\ud83d\udd11+r=d&\n%`,
	} {
		if got, want := r.Redact("before "+text+" after"), "before "+Mark+" after"; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestRedactEscapes has what libraries escape although they need not, or in their own way.
func TestRedactEscapes(t *testing.T) {
	const value = "k-_.~*()@` ab+c/d'e=<f>&\"\u00f6"
	r := NewRedactor(value)
	for name, text := range map[string]string{
		"NON_ALPHANUMERIC of Rust": "k%2D%5F%2E%7E%2A%28%29%40%60%20ab%2Bc%2Fd%27e%3D%3Cf%3E%26%22%C3%B6",
		"urlencode of PHP":         "k-_.%7E%2A%28%29%40%60+ab%2Bc%2Fd%27e%3D%3Cf%3E%26%22%C3%B6",
		"WebUtility of .NET":       "k-_.%7E*()%40%60+ab%2Bc%2Fd%27e%3D%3Cf%3E%26%22%C3%B6",
		"HttpUtility of .NET":      "k-_.%7e*()%40%60+ab%2bc%2fd%27e%3d%3cf%3e%26%22%c3%b6",
		"quote of Python":          "k-_.~%2A%28%29%40%60%20ab%2Bc/d%27e%3D%3Cf%3E%26%22%C3%B6",
		"JSON of Symfony":          `k-_.~*()@` + "`" + ` ab+c\/d\u0027e=\u003Cf\u003E\u0026\u0022\u00f6`,
		"JSON of API Platform":     `k-_.~*()@` + "`" + ` ab+c/d\u0027e=\u003Cf\u003E\u0026\u0022ö`,
		"JSON of Gson":             `k-_.~*()@` + "`" + ` ab+c/d\u0027e\u003d\u003cf\u003e\u0026\"ö`,
		"JSON of System.Text.Json": `k-_.~*()@\u0060 ab\u002Bc/d\u0027e=\u003Cf\u003E\u0026\u0022\u00F6`,
		"HTML of Go":               "k-_.~*()@` ab+c/d&#39;e=&lt;f&gt;&amp;&#34;\u00f6",
		"HTML of Python":           "k-_.~*()@` ab+c/d&#x27;e=&lt;f&gt;&amp;&quot;\u00f6",
		"HTML of PHP":              "k-_.~*()@` ab+c/d&#039;e=&lt;f&gt;&amp;&quot;\u00f6",
		"XML":                      "k-_.~*()@` ab+c/d&apos;e=&lt;f&gt;&amp;&quot;\u00f6",
		"HTML of Underscore":       "k-_.~*()@&#x60; ab+c/d&#x27;e=&lt;f&gt;&amp;&quot;\u00f6",
		"HTML of Razor":            "k-_.~*()@&#x60; ab&#x2B;c/d&#x27;e=&lt;f&gt;&amp;&quot;\u00f6",
		"HTML of Handlebars":       "k-_.~*()@&#x60; ab+c/d&#x27;e&#x3D;&lt;f&gt;&amp;&quot;\u00f6",
		"HTML of Mustache":         "k-_.~*()@&#x60; ab+c&#x2F;d&#39;e&#x3D;&lt;f&gt;&amp;&quot;\u00f6",
		"Bearer in base64":         base64.StdEncoding.EncodeToString([]byte("Bearer " + value)),
	} {
		if got := strings.TrimRight(r.Redact("before "+text), "="); got != "before "+Mark {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestRedactInsideBase64 has the value as a part of what is encoded, at each place in a group.
func TestRedactInsideBase64(t *testing.T) {
	const value = "ghp_0123456789abcdef"
	r := NewRedactor(value)
	for _, user := range []string{"", "a", "ab", "abc", "abcd"} {
		for _, after := range []string{"", "z", "zy", "zyx"} {
			got := r.Redact("Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+value+after)))
			before, rest, found := strings.Cut(strings.TrimPrefix(got, "Basic "), Mark)
			if !found || len(before) > 8 || len(rest) > 8 {
				t.Errorf("%q: %s", user, got)
			}
		}
	}
}

func TestRedactOverlap(t *testing.T) {
	for _, c := range []struct {
		values     []string
		text, want string
	}{
		{[]string{"abcd", "cdef"}, "xabcdefx", "x*x"},
		{[]string{"abcd", "bc"}, "xabcx abcd", "xa*x *"},
		{[]string{"abcdef", "cd"}, "abcdex", "ab*ex"},
		{[]string{"ab"}, "abab ab", "* *"},
		{[]string{"aaaa"}, "aaaaaaa aaa", "* aaa"},
		{[]string{"abc"}, "ab", "ab"},
		{nil, "abc", "abc"},
	} {
		if got := strings.ReplaceAll(NewRedactor(c.values...).Redact(c.text), Mark, "*"); got != c.want {
			t.Errorf("%q without %q: got %q, want %q", c.text, c.values, got, c.want)
		}
	}
	var none *Redactor
	if got := none.Redact("abc"); got != "abc" {
		t.Errorf("got %q", got)
	}
}

// TestReaderThatFails leaves out what may be the begin of a value.
func TestReaderThatFails(t *testing.T) {
	broken := errors.New("broken")
	r := NewRedactor("secret-value").Reader(io.MultiReader(strings.NewReader("a secret-value, a secret-va"), iotest.ErrReader(broken)))
	got, err := io.ReadAll(r)
	if string(got) != "a "+Mark+", a " || !errors.Is(err, broken) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestHostileText is text made to be slow: at each byte nearly the whole value matches.
func TestHostileText(t *testing.T) {
	r := NewRedactor(strings.Repeat("a", MaxValue-1) + "b")
	text := strings.Repeat("a", 4<<20)
	if got := r.Redact(text); got != text {
		t.Error("the text was changed")
	}
	var out bytes.Buffer
	w := r.Writer(&out)
	for range 1 << 18 { // one byte at a time
		if _, err := w.Write([]byte("a")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || out.Len() != 1<<18 {
		t.Fatal(out.Len(), err)
	}
}

// TestRedactProperty compares with a redactor that is slow and plain, through each way in and in chunks of any size.
func TestRedactProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]rune("ab<\"/ +%ö\n"))
		values := rapid.SliceOfN(rapid.StringOfN(letters, 0, 6, -1), 0, 3).Draw(t, "values")
		pieces := []string{"a", "b", "%", "\\u00", " ", "\xff"}
		for _, v := range values {
			pieces = append(pieces, spelling.Of(v)...)
		}
		slices.Sort(pieces)
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 20).Draw(t, "text"), "")
		same(t, values, text, func(most int) int { return rapid.IntRange(1, most).Draw(t, "chunk") })
	})
}

func FuzzRedactor(f *testing.F) {
	f.Add("token", "to-ken", "a token, dG9rZW4=, to-token", uint8(3))
	f.Add("a\nb", "", `a\nb a%0Ab`, uint8(1))
	f.Add("aa", "aaa", "aaaaabaa", uint8(2))
	f.Fuzz(func(t *testing.T, first, second, text string, chunk uint8) {
		if len(first)+len(second) > 64 || len(text) > 4096 {
			return // the plain redactor is slow
		}
		same(t, []string{first, second}, text, func(most int) int { return min(int(chunk)+1, most) })
	})
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// same checks that Redact, Reader and Writer do what plainly does.
func same(t failer, values []string, text string, chunk func(most int) int) {
	t.Helper()
	want := plainly(values, text)
	r := NewRedactor(values...)
	if got := r.Redact(text); got != want {
		t.Fatalf("%q without %q: got %q, want %q", text, values, got, want)
	}
	var out bytes.Buffer
	w := r.Writer(&out)
	for rest := text; rest != ""; {
		n := chunk(len(rest))
		if _, err := w.Write([]byte(rest[:n])); err != nil {
			t.Fatalf("%v", err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil || out.String() != want {
		t.Fatalf("%q without %q, in chunks: got %q, want %q, %v", text, values, out.String(), want, err)
	}
	got, err := io.ReadAll(iotest.OneByteReader(r.Reader(iotest.DataErrReader(iotest.HalfReader(strings.NewReader(text))))))
	if err != nil || string(got) != want {
		t.Fatalf("%q without %q, read: got %q, want %q, %v", text, values, got, want, err)
	}
}

// plainly marks every byte that a spelling covers.
func plainly(values []string, text string) string {
	covered := make([]bool, len(text))
	for _, v := range values {
		for _, s := range spelling.Of(v) {
			for i := range len(text) {
				if strings.HasPrefix(text[i:], s) {
					for k := range len(s) {
						covered[i+k] = true
					}
				}
			}
		}
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !covered[i]:
			b.WriteByte(text[i])
		case i == 0 || !covered[i-1]:
			b.WriteString(Mark)
		}
	}
	return b.String()
}

func lowerEscapes(text string) string {
	b := []byte(text)
	for i := range b {
		if b[i] == '%' {
			copy(b[i:], bytes.ToLower(b[i:i+3]))
		}
	}
	return string(b)
}

// TestRedactInLines has base64 of the value and its neighbours in lines, as encoders wrap them and as JSON and URLs carry line breaks.
func TestRedactInLines(t *testing.T) {
	for _, value := range []string{"ghp_0123456789abcdef", strings.Repeat("0123456789abcdefghijklmnopqrstuv", 20) + "-----END\nKEY"} {
		r := NewRedactor(value)
		for _, columns := range []int{60, 64, 76} {
			for _, lineBreak := range []string{"\n", "\r\n", `\n`, `\r\n`, "%0A", "%0D%0A"} {
				for before := range 2 * columns {
					encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
					var text strings.Builder
					for ; len(encoded) > columns; encoded = encoded[columns:] {
						text.WriteString(encoded[:columns] + lineBreak)
					}
					got := r.Redact(text.String() + encoded + "\n")
					first, rest, found := strings.Cut(got, Mark)
					if first = strings.ReplaceAll(first, lineBreak, ""); !found || len(first) != (8*before+5)/6 || len(strings.TrimRight(rest, "=\n")) > 1 {
						t.Fatalf("%d before, %d columns, %q: %s", before, columns, lineBreak, got)
					}
				}
			}
		}
	}
}

// TestPunctuation has values that can be written in the most ways.
func TestPunctuation(t *testing.T) {
	signs := strings.Repeat(`"&'<>/+= ~*?`, MaxValue/12)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := NewRedactor(signs)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 300<<20 {
		t.Errorf("a redactor took %d MiB", took>>20)
	}
	if got := r.Redact("a" + signs + "b" + base64.StdEncoding.EncodeToString([]byte(signs)) + "c"); got != "a"+Mark+"b"+Mark+"c" {
		t.Error("it is not redacted")
	}
	store, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var refused *ValueError
	if err := store.Set(t.Context(), "signs", signs); !errors.As(err, &refused) || !strings.Contains(err.Error(), "too much punctuation") {
		t.Error(err)
	}
	if err := store.Set(t.Context(), "token", strings.Repeat("eyJhbGciOi-_.+/=", MaxValue/16)); err != nil {
		t.Error(err)
	}
}
