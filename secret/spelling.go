package secret

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// minPart is the smallest number of characters for which a value is looked for inside longer base64. Fewer occur in any text.
const minPart = 8

// spellings returns the ways in which a value may appear in a text.
func spellings(value string) map[string]bool {
	all := map[string]bool{}
	if value == "" {
		return all
	}
	spaced := fmt.Sprintf("% X", value)
	for _, text := range []string{spaced, strings.ReplaceAll(spaced, " ", ":"), "%" + strings.ReplaceAll(spaced, " ", "%")} {
		all[text], all[strings.ToLower(text)] = true, true
	}
	encoded := append(base64Spellings(value), fmt.Sprintf("%x", value), fmt.Sprintf("%X", value))
	for _, text := range append(encoded, value) {
		all[text] = true
		for _, s := range urlSpellings(text) {
			all[s] = true
		}
		for _, s := range jsonSpellings(text) {
			all[s] = true
		}
	}
	return all
}

// base64Spellings returns the value encoded with and without padding. It also returns the part that does not depend on its
// neighbours, for a value that begins at the first, second or third byte of a group.
func base64Spellings(value string) []string {
	var all []string
	for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		padded := alphabet.EncodeToString([]byte(value))
		all = append(all, padded, strings.TrimRight(padded, "="))
		for before := range 3 {
			text := alphabet.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
			part := text[(8*before+5)/6 : 8*(before+len(value))/6]
			if len(part) >= minPart {
				all = append(all, part)
			}
		}
	}
	return all
}

// The characters that common encoders leave unchanged in a URL, besides letters and digits.
var urlPlain = []string{
	"-_.~",                   // RFC 3986; Go's QueryEscape
	"-_.*",                   // forms, as browsers send them
	"-_.~!*'()",              // encodeURIComponent
	"-_.~!*'();,/?:@&=+$#",   // encodeURI
	"-_.~$&+:=@",             // Go's PathEscape
	"-_.~!*'()$&+,;=:@",      // RFC 3986, a segment of a path
	"-_.~!*'()$&+,;=:@/?[]|", // lenient clients, which escape little
}

func urlSpellings(value string) []string {
	var all []string
	for _, plain := range urlPlain {
		for _, space := range []string{"%20", "+"} {
			for _, escape := range []string{"%%%02X", "%%%02x"} {
				var b strings.Builder
				for i := range len(value) {
					switch c := value[i]; {
					case c == ' ':
						b.WriteString(space)
					case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(plain, c) >= 0:
						b.WriteByte(c)
					default:
						fmt.Fprintf(&b, escape, c)
					}
				}
				all = append(all, b.String())
			}
		}
	}
	return all
}

var jsonShort = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// jsonSpellings are those of encoders that escape more or less than necessary.
func jsonSpellings(value string) []string {
	if !utf8.ValidString(value) {
		return nil // the value cannot appear in JSON
	}
	var all []string
	for mode := range 16 {
		html, ascii, slash, upper := mode&1 != 0, mode&2 != 0, mode&4 != 0, mode&8 != 0
		escape := `\u%04x`
		if upper {
			escape = `\u%04X`
		}
		var b strings.Builder
		for _, r := range value {
			short, ok := jsonShort[r]
			switch {
			case ok:
				b.WriteString(short)
			case r == '/' && slash:
				b.WriteString(`\/`)
			case r < ' ', html && strings.ContainsRune("<>&\u2028\u2029", r), ascii && r >= utf8.RuneSelf && r <= 0xffff:
				fmt.Fprintf(&b, escape, r)
			case ascii && r > 0xffff:
				high, low := utf16.EncodeRune(r)
				fmt.Fprintf(&b, escape+escape, high, low)
			default:
				b.WriteRune(r)
			}
		}
		all = append(all, b.String())
	}
	return all
}
