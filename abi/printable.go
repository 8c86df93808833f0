package abi

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns s in a form that is safe on a terminal and hides nothing from a reader. Line feed, tab and printable
// text stay as they are, and CR LF becomes LF. Every other control character, every invisible or direction-changing
// format character, line and paragraph separators and bytes that are not UTF-8 are spelled as Go escapes: \x1b, \u202e,
// \U000e0041. The two joiners that emoji and several scripts need (U+200C, U+200D) stay.
//
// The result is valid UTF-8, at most four times as long as s, and unchanged by a second Printable.
func Printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case !hidden(r):
			b.WriteString(s[i : i+size])
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// PrintableLine is [Printable] of s in one line: line feeds and tabs are spelled as escapes, too.
func PrintableLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Printable(s))
}

// PrintableCut is [Printable] of what [Cut] keeps of s, with "..." after it where that is not all.
func PrintableCut(s string, max int) string {
	kept := Cut(s, max)
	if len(kept) < len(s) {
		return Printable(kept) + "..."
	}
	return Printable(s)
}

// Cut returns the first max bytes of s, or up to three fewer so as not to split a character.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for back := range utf8.UTFMax {
		if back <= max && utf8.RuneStart(s[max-back]) {
			return s[:max-back]
		}
	}
	return s[:max]
}

// hidden reports whether a terminal or a reader could be misled by r.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	}
	const nonJoiner, joiner = 0x200c, 0x200d
	return r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
