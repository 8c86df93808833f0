// Package spelling lists the ways in which servers, libraries and logs write a secret: as it is, in hex, in base64, and escaped for URLs,
// JSON and HTML.
package spelling

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// minPart is the smallest number of characters for which a value is looked for inside longer base64. Fewer occur in any text.
const minPart = 8

// Of returns the spellings of a value, each once; an empty value has none. Escapes of encodings are among them, such as base64 in a URL.
func Of(value string) []string {
	if value == "" {
		return nil
	}
	var all []string
	known := map[string]bool{}
	add := func(text string) {
		if !known[text] {
			known[text] = true
			all = append(all, text)
		}
	}
	texts := append([]string{value, fmt.Sprintf("%x", value), fmt.Sprintf("%X", value)}, base64Spellings(value)...)
	for _, text := range texts {
		if known[text] {
			continue
		}
		add(text)
		if !strings.ContainsFunc(text, special) {
			continue
		}
		urlSpellings(text, add)
		jsonSpellings(text, add)
		for _, escapes := range html() {
			add(escapes.Replace(text))
		}
	}
	spaced := fmt.Sprintf("% X", value)
	for _, text := range []string{spaced, strings.ReplaceAll(spaced, " ", ":"), "%" + strings.ReplaceAll(spaced, " ", "%")} {
		add(text)
		add(strings.ToLower(text))
	}
	return all
}

func special(r rune) bool { return r >= utf8.RuneSelf || !plain(byte(r)) }

func plain(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }

// base64Spellings are the value with and without padding, by itself and behind "Bearer ", and what of it does not depend on its neighbours
// when it begins at the first, second or third byte of a group, with and without more behind it. Of a character that it shares with a
// neighbour at most four bits are its own.
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

// urlPlain is what encoders leave as it is in a URL, beside letters and digits.
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

func urlSpellings(text string, add func(string)) {
	for _, kept := range urlPlain {
		for _, space := range []string{"%20", "+"} {
			for _, escape := range []string{"%%%02X", "%%%02x"} {
				var b strings.Builder
				for i := range len(text) {
					switch c := text[i]; {
					case c == ' ':
						b.WriteString(space)
					case plain(c) || strings.IndexByte(kept, c) >= 0:
						b.WriteByte(c)
					default:
						_, _ = fmt.Fprintf(&b, escape, c) // a Builder does not fail
					}
				}
				add(b.String())
			}
		}
	}
}

var jsonShort = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// jsonEscaped is what encoders escape with a number although they need not, beside what is not ASCII.
var jsonEscaped = []string{
	"",
	"<>&\u2028\u2029",   // Go
	`"<>&'`,             // Symfony
	"<>&='\u2028\u2029", // Gson
	"\"<>&+'`\u007f",    // System.Text.Json
}

// jsonSpellings are those of encoders that escape more or less than necessary. PHP has its numbers in upper case where it need not escape
// and in lower case elsewhere.
func jsonSpellings(text string, add func(string)) {
	if !utf8.ValidString(text) {
		return // it cannot appear in JSON
	}
	for mode := range len(jsonEscaped) << 4 {
		ascii, slash, upper, upperRest := mode&1 != 0, mode&2 != 0, mode&4 != 0, mode&8 != 0
		escaped := jsonEscaped[mode>>4]
		number := func(upper bool) string {
			if upper {
				return `\u%04X`
			}
			return `\u%04x`
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
		add(b.String())
	}
}

// html are the escapes of HTML and XML, as libraries differ in what they escape.
var html = sync.OnceValue(func() []*strings.Replacer {
	var all []*strings.Replacer
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
				all = append(all, strings.NewReplacer(pairs...))
				for i := 1; i < len(pairs); i += 2 {
					pairs[i] = strings.ToLower(pairs[i])
				}
				all = append(all, strings.NewReplacer(pairs...))
			}
		}
	}
	return all
})
