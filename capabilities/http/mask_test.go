package http

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	nethttp "net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/usagetest"
)

// Servers encode one string in many ways.
func TestSpellingsAreCovered(t *testing.T) {
	const secret = `k/+=abc!d"e'f<g&h`
	for name, echo := range map[string]string{
		"as it is":                 secret,
		"encodeURIComponent":       `k%2F%2B%3Dabc!d%22e'f%3Cg%26h`,
		"quote of Python":          `k/%2B%3Dabc%21d%22e%27f%3Cg%26h`,
		"JSON of Go":               `k/+=abc!d\"e'f\u003cg\u0026h`,
		"JSON of JavaScript":       `k/+=abc!d\"e'f<g&h`,
		"JSON of PHP":              `k\/+=abc!d\"e'f<g&h`,
		"JSON of Gson":             `k/+\u003dabc!d\"e\u0027f\u003cg\u0026h`,
		"JSON of System.Text.Json": `k/\u002B=abc!d\u0022e\u0027f\u003Cg\u0026h`,
		"JSON of Symfony":          `k\/+=abc!d\u0022e\u0027f\u003Cg\u0026h`,
		"JSON of a strict encoder": `k\/+=abc!d\"e'f\u003cg\u0026h`,
		"PathEscape of Go":         `k%2F+=abc%21d%22e%27f%3Cg&h`,
		"base64 in encodeURI":      `ay8rPWFiYyFkImUnZjxnJmg=`,
		"JSON of API Platform":     `k/+=abc!d\u0022e\u0027f\u003Cg\u0026h`,
		"HTML of Go":               `k/+=abc!d&#34;e&#39;f&lt;g&amp;h`,
		"HTML of Python":           `k/+=abc!d&quot;e&#x27;f&lt;g&amp;h`,
		"HTML of PHP":              `k/+=abc!d&quot;e&#039;f&lt;g&amp;h`,
		"HTML of Express":          `k/+=abc!d&quot;e&#39;f&lt;g&amp;h`,
		"HTML of XML libraries":    `k/+=abc!d&quot;e&apos;f&lt;g&amp;h`,
		"HTML with apostrophes":    `k/+=abc!d&quot;e'f&lt;g&amp;h`,
		"HTML of Handlebars":       `k/+&#x3D;abc!d&quot;e&#x27;f&lt;g&amp;h`,
		"HTML of Mustache":         `k&#x2F;+&#x3D;abc!d&quot;e&#39;f&lt;g&amp;h`,
	} {
		if got := (secrets{}).with(secret).mask(echo); strings.Trim(got, "*") != "" {
			t.Errorf("%s: %s of %s", name, got, echo)
		}
	}
}

// Encoders differ most in punctuation.
func TestPunctuationIsCovered(t *testing.T) {
	const secret = "k-_.~*()@` ab+c/d'e"
	for name, echo := range map[string]string{
		"URLSearchParams":          "k-_.%7E*%28%29%40%60+ab%2Bc%2Fd%27e",
		"urlencode of PHP":         "k-_.%7E%2A%28%29%40%60+ab%2Bc%2Fd%27e",
		"WebUtility of .NET":       "k-_.%7E*()%40%60+ab%2Bc%2Fd%27e",
		"HttpUtility of .NET":      "k-_.%7e*()%40%60+ab%2bc%2fd%27e",
		"NON_ALPHANUMERIC of Rust": "k%2D%5F%2E%7E%2A%28%29%40%60%20ab%2Bc%2Fd%27e",
		"escape of JavaScript":     "k-_.%7E*%28%29@%60%20ab+c/d%27e",
		"quote_plus of Python":     "k-_.~%2A%28%29%40%60+ab%2Bc%2Fd%27e",
		"encodeURIComponent":       "k-_.~*()%40%60%20ab%2Bc%2Fd'e",
		"HTML of Underscore":       "k-_.~*()@&#x60; ab+c/d&#x27;e",
		"HTML of Razor":            "k-_.~*()@&#x60; ab&#x2B;c/d&#x27;e",
		"JSON of System.Text.Json": `k-_.~*()@\u0060 ab\u002Bc/d\u0027e`,
	} {
		if got := (secrets{}).with(secret).mask(echo); strings.Trim(got, "*=") != "" {
			t.Errorf("%s: %s of %s", name, got, echo)
		}
	}
}

// Even if a server encodes the data with other text before and after it, only the bits that share a character with that text are visible.
func TestEncodedEchoes(t *testing.T) {
	const secret = `k/+=abc!d"e'f<g&h?~\x7ePQRS`
	forms := (secrets{}).with(secret)
	check := func(echo, before, after string) {
		t.Helper()
		read := map[string]string{"mask": forms.mask(before + echo + after)}
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(before + echo + after), "bytes": iotest.OneByteReader(strings.NewReader(before + echo + after)),
		} {
			text, err := io.ReadAll(&maskReader{r: r, secrets: forms})
			if err != nil {
				t.Fatal(err)
			}
			read[name] = string(text)
		}
		for name, got := range read {
			if len(got) != len(before+echo+after) || strings.Trim(got[len(before):len(before)+len(echo)], "*") != "" {
				t.Errorf("%s: %s becomes %s", name, before+echo+after, got)
			}
		}
	}
	for _, prefix := range []string{"", "Bearer "} {
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			check(alphabet.EncodeToString([]byte(prefix+secret)), `{"a":"`, `=="}`)
		}
	}
	check(hex.EncodeToString([]byte(secret)), `x `, ` x`)
	check(fmt.Sprintf("% x", secret), `x `, ` x`)
	check(strings.ReplaceAll(fmt.Sprintf("% X", secret), " ", ":"), `x `, ` x`)
	check("%"+strings.ReplaceAll(fmt.Sprintf("% x", secret), " ", "%"), `x `, ` x`)
	check(strings.ToUpper(hex.EncodeToString([]byte(secret))), `x `, ` x`)
	for _, prefix := range []string{"a", "ab", "abc", "Basic ", "user:", "Authorization: Bearer ", "Token token="} {
		for _, suffix := range []string{"", "a", "ab", "\r\nHost: x"} {
			for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
				text := alphabet.EncodeToString([]byte(prefix + secret + suffix))
				first, end := (8*len(prefix)+5)/6, 8*(len(prefix)+len(secret))/6
				for _, spell := range []func(string) string{func(s string) string { return s }, url.QueryEscape, func(s string) string { return strings.ReplaceAll(s, "/", `\/`) }} {
					check(spell(text[first:end]), spell(text[:first]), spell(text[end:]))
				}
			}
		}
	}
}

// Many servers break Base64 into lines, in JSON too.
func TestEchoesInLines(t *testing.T) {
	const secret = `k/+=abc!d"e'f<g&h?~\x7ePQRS`
	forms := (secrets{}).with(secret)
	for _, columns := range []int{60, 64, 76} {
		for _, lineBreak := range []string{"\n", "\r\n", `\n`, `\r\n`} {
			for before := range 2 * columns {
				plain := strings.Repeat("\x00", before) + secret
				encoded := base64.StdEncoding.EncodeToString([]byte(plain))
				var echo, want strings.Builder
				first, end := (8*before+5)/6, 8*len(plain)/6
				for i := range end {
					if i > 0 && i%columns == 0 {
						echo.WriteString(lineBreak)
						if i > first {
							want.WriteString(strings.Repeat("*", len(lineBreak)))
						} else {
							want.WriteString(lineBreak)
						}
					}
					echo.WriteByte(encoded[i])
					if i >= first {
						want.WriteByte('*')
					} else {
						want.WriteByte(encoded[i])
					}
				}
				echo.WriteString(encoded[end:])
				for name, r := range map[string]io.Reader{"whole": strings.NewReader(echo.String()), "bytes": iotest.OneByteReader(strings.NewReader(echo.String()))} {
					got, err := io.ReadAll(&maskReader{r: r, secrets: forms})
					if err != nil || len(got) != echo.Len() || string(got[:want.Len()]) != want.String() {
						t.Fatalf("%s, %d columns, %d before: %q becomes %q, %v", name, columns, before, echo.String(), got, err)
					}
				}
			}
		}
	}
}

// TestMaskIsLinear masks texts in which a secret could begin at every byte. A search that starts again at each of them would take
// thousands of times as long as is charged; the bound is far from what a slow machine takes, too.
func TestMaskIsLinear(t *testing.T) {
	forms := (secrets{}).with(strings.Repeat("a", maxSecret-1) + "b")
	const size = 4 << 20
	for name, text := range map[string]string{
		"begun": strings.Repeat("a", size), "nearly": strings.Repeat(strings.Repeat("a", maxSecret-1)+"c", size/maxSecret), "whole": strings.Repeat(strings.Repeat("a", maxSecret-1)+"b", size/maxSecret),
		"lines": strings.Repeat(strings.Repeat("a", 63)+"\n", size/64), "short lines": strings.Repeat(strings.Repeat("a", 15)+"\n", size/16), "breaks begun": strings.Repeat(`%0D%\r\\`, size/8),
	} {
		before := usagetest.Processor()
		n, err := io.Copy(io.Discard, &maskReader{r: strings.NewReader(text), secrets: forms})
		took := usagetest.Processor() - before
		t.Logf("%s: %v", name, took)
		if err != nil || n != size || took > 100*size*maskWork {
			t.Errorf("%s: %d bytes in %v, %v", name, n, took, err)
		}
	}
}

func BenchmarkMask(b *testing.B) {
	forms := (secrets{}).with("ghp_0123456789abcdefghijklmnopqrstuvwxyz")
	text := strings.Repeat(`{"name": "stile", "url": "https://api.example.com/repos/1", "id": 12345678}`+"\n", 14<<10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := io.Copy(io.Discard, &maskReader{r: strings.NewReader(text), secrets: forms}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCredentialIsPreparedOnce has a credential of punctuation, which has the most encodings, in many exchanges.
func TestCredentialIsPreparedOnce(t *testing.T) {
	secret := strings.Repeat(`"&'<>/+=~*!?`, maxSecret/12)
	at := serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	})
	rule := good(at)
	rule.Credential = "a-token"
	c := client(t, Options{Rules: []Rule{rule}, Credentials: vault{"a-token": secret}})
	allocated := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if have := do(t, c, get(at, "/")); have.err != nil || strings.Trim(have.text, "*") != "Bearer " {
			t.Fatal(have)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	first := allocated()
	for range 5 {
		if again := allocated(); again > first/20 {
			t.Errorf("%d bytes were allocated, and %d the first time", again, first)
		}
	}
}

// TestKeptIsBounded has more credentials than the cache keeps.
func TestKeptIsBounded(t *testing.T) {
	for i := range 8 {
		(secrets{}).with(fmt.Sprint(i, strings.Repeat(`"&'<>/+=~*!?`, 300)))
	}
	size := 0
	for _, known := range kept.forms {
		size += known.size
	}
	if size != kept.size || size > maxKept {
		t.Errorf("%d bytes are kept, and %d counted", size, kept.size)
	}
}

// TestMaskingIsCharged has a credential searched for in heads and bodies.
func TestMaskingIsCharged(t *testing.T) {
	const size = 1 << 20
	at := serve(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 32<<10))
		_, _ = w.Write(make([]byte, size-100))
	})
	rule := good(at)
	rule.Credential = "a-token"
	var charged work
	opened, err := client(t, Options{Rules: []Rule{rule}, Credentials: vault{"a-token": "sk-1234567890"}}).grant.Open(abi.WithWork(t.Context(), charged.add))
	if err != nil {
		t.Fatal(err)
	}
	if have := do(t, opened.(*Client), get(at, "/")); have.err != nil {
		t.Fatal(have.err)
	}
	if charged.all() < size*maskWork {
		t.Errorf("%v were charged", charged.all())
	}
}
