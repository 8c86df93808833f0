// Package spelling lists the ways in which servers, libraries and logs write a secret: unchanged, in hex, in base64, and escaped for
// URLs, JSON and HTML. It also says which names secrets have.
package spelling

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/lazyregexp"
)

var name = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// IsName reports whether a secret can have a name.
func IsName(text string) bool { return name.MatchString(text) }

// minPart is how many characters of base64 a value must have to be
// searched for inside longer base64. Fewer occur in any text by chance.
const minPart = 8

// MaxBytes is roughly the most bytes that the spellings of a value have together.
// A token or a key needs 100 times its own bytes, punctuation 700 times.
const MaxBytes = 4 << 20

// Of returns the spellings of a value, each once; an empty value has none. They include escaped encodings, such as base64 in a URL. Once
// they have more than MaxBytes, Of leaves out further spellings, but none without an escape.
func Of(value string) []string {
	all, _ := list(value)
	return all
}

// Complete reports whether Of leaves out no spelling.
func Complete(value string) bool {
	_, complete := list(value)
	return complete
}

func list(value string) (all []string, complete bool) {
	if value == "" {
		return nil, true
	}
	known := map[string]bool{}
	size := 0
	add := func(text string) {
		if !known[text] {
			known[text] = true
			all = append(all, text)
			size += len(text)
		}
	}
	complete = true
	escaped := append([]string{value, fmt.Sprintf("%x", value), fmt.Sprintf("%X", value)}, base64Spellings(value)...)
	texts := slices.Clone(escaped)
	spaced := fmt.Sprintf("% X", value)
	for _, text := range []string{spaced, strings.ReplaceAll(spaced, " ", ":"), "%" + strings.ReplaceAll(spaced, " ", "%")} {
		texts = append(texts, text, strings.ToLower(text))
	}
	for _, text := range texts {
		add(text)
	}
	for _, text := range escaped {
		sample := specials(text)
		if sample == "" {
			continue
		}
		// Two ways that write the special characters alike write the whole text alike.
		tried := map[string]bool{}
		for _, write := range ways() {
			if way := write(sample); !tried[way] {
				tried[way] = true
				if complete = complete && size < MaxBytes; !complete {
					return all, false
				}
				add(write(text))
			}
		}
	}
	return all, complete
}

// specials returns the characters of text that some encoder escapes, each
// once and followed by a letter. Bytes that are not UTF-8 stay unchanged.
func specials(text string) string {
	var b strings.Builder
	known := map[string]bool{}
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if at := text[:size]; (r >= utf8.RuneSelf || !plain(byte(r))) && !known[at] {
			known[at] = true
			b.WriteString(at + "z") // no encoder escapes z, and no escape contains it
		}
		text = text[size:]
	}
	return b.String()
}

// ways are the ways to escape a text. A way that cannot express the text returns it unchanged.
var ways = sync.OnceValue(func() []func(string) string {
	return slices.Concat(urlWays(), jsonWays(), htmlWays())
})

func plain(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }

// base64Spellings returns the base64 of the value with and without padding, by itself and after "Bearer ". It also returns the part that
// does not depend on neighbouring bytes, for a value that begins at the first, second or third byte of a group, with and without text
// after it. If a character is shared with a neighbour, at most four of its bits come from the value.
func base64Spellings(value string) []string {
	var all []string
	for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		padded := alphabet.EncodeToString([]byte(value))
		bare := alphabet.WithPadding(base64.NoPadding)
		all = append(all, padded, strings.TrimRight(padded, "="), bare.EncodeToString([]byte("Bearer "+value)))
		for before := range 3 {
			text := bare.EncodeToString([]byte("\x00\x00"[:before] + value))
			start, end := (8*before+5)/6, 8*(before+len(value))/6
			for _, part := range []string{text[start:], text[start:end]} {
				if len(part) >= minPart {
					all = append(all, part)
				}
			}
		}
	}
	return all
}

// urlPlain lists the characters that encoders leave unchanged in a URL, in addition to letters and digits.
var urlPlain = []string{
	"",                       // NON_ALPHANUMERIC of Rust's percent-encoding
	"-_.",                    // urlencode of PHP
	"-_.*",                   // forms: browsers, URLSearchParams, URLEncoder of Java
	"-_.!*()",                // WebUtility of .NET
	"-_./*@+",                // escape of JavaScript
	"-_.~",                   // RFC 3986; Go's QueryEscape
	"-_.~/",                  // quote of Python
	"-_.~!*'()",              // encodeURIComponent
	"-_.~!*'();,/?:@&=+$#",   // encodeURI
	"-_.~$&+:=@",             // Go's PathEscape
	"-_.~!*'()$&+,;=:@",      // RFC 3986, a segment of a path
	"-_.~!*'()$&+,;=:@/?[]|", // lenient clients, which escape little
}

func urlWays() (all []func(string) string) {
	for _, kept := range urlPlain {
		for _, space := range []string{"%20", "+"} {
			for _, digits := range []string{"0123456789ABCDEF", "0123456789abcdef"} {
				all = append(all, func(text string) string {
					var b strings.Builder
					for i := range len(text) {
						switch c := text[i]; {
						case c == ' ':
							b.WriteString(space)
						case plain(c) || strings.IndexByte(kept, c) >= 0:
							b.WriteByte(c)
						default:
							b.WriteByte('%')
							b.WriteByte(digits[c>>4])
							b.WriteByte(digits[c&15])
						}
					}
					return b.String()
				})
			}
		}
	}
	return all
}

var jsonShort = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// jsonEscaped lists the characters that encoders escape with a number
// although they need not, in addition to all characters outside ASCII.
var jsonEscaped = []string{
	"",
	"<>&\u2028\u2029",   // Go
	`"<>&'`,             // Symfony
	"<>&='\u2028\u2029", // Gson
	"\"<>&+'`\u007f",    // System.Text.Json
}

// jsonWays are the ways of encoders that escape more or less than necessary. PHP writes unnecessary escapes with numbers in upper case and
// all others in lower case.
func jsonWays() (all []func(string) string) {
	for mode := range len(jsonEscaped) << 4 {
		ascii, slash, upper, upperRest := mode&1 != 0, mode&2 != 0, mode&4 != 0, mode&8 != 0
		escaped := jsonEscaped[mode>>4]
		number := func(upper bool) string {
			if upper {
				return `\u%04X`
			}
			return `\u%04x`
		}
		all = append(all, func(text string) string {
			if !utf8.ValidString(text) {
				return text // it cannot appear in JSON
			}
			var b strings.Builder
			for _, r := range text {
				short, ok := jsonShort[r]
				switch {
				case strings.ContainsRune(escaped, r):
					_, _ = fmt.Fprintf(&b, number(upper), r)
				case ok:
					b.WriteString(short)
				case r == '/' && slash:
					b.WriteString(`\/`)
				case r < ' ', ascii && r >= utf8.RuneSelf && r <= 0xffff:
					_, _ = fmt.Fprintf(&b, number(upperRest), r)
				case ascii && r > 0xffff:
					high, low := utf16.EncodeRune(r)
					_, _ = fmt.Fprintf(&b, number(upperRest)+number(upperRest), high, low)
				default:
					b.WriteRune(r)
				}
			}
			return b.String()
		})
	}
	return all
}

// htmlWays are the ways to escape for HTML and XML. Libraries differ in the characters that they escape.
func htmlWays() (all []func(string) string) {
	for _, quote := range []string{"&#34;", "&quot;"} {
		for _, apostrophe := range []string{"&#39;", "&#039;", "&#x27;", "&apos;", "'"} {
			for _, more := range [][]string{
				nil,
				{"`", "&#x60;"},                // Underscore
				{"`", "&#x60;", "+", "&#x2B;"}, // Razor
				{"`", "&#x60;", "=", "&#x3D;"}, // Handlebars
				{"`", "&#x60;", "=", "&#x3D;", "/", "&#x2F;"}, // Mustache
			} {
				pairs := append([]string{"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, quote, "'", apostrophe}, more...)
				all = append(all, strings.NewReplacer(pairs...).Replace)
				for i := 1; i < len(pairs); i += 2 {
					pairs[i] = strings.ToLower(pairs[i])
				}
				all = append(all, strings.NewReplacer(pairs...).Replace)
			}
		}
	}
	return all
}
