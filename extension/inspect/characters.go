package inspect

import (
	"unicode"
	"unicode/utf8"
)

// unseen finds the first character that a reader of text does not see and a program does: control and format
// characters, characters that turn the direction of text, and the selectors and joiners that hide messages. A joiner or a
// selector that belongs to the character before it, as in emoji and several scripts, is none.
func unseen(text string) (at int, r rune, found bool) {
	previous := ' '
	for i, r := range text {
		if r < utf8.RuneSelf {
			if r < ' ' && r != '\n' && r != '\t' && (r != '\r' || i+1 == len(text) || text[i+1] != '\n') || r == 0x7f {
				return i, r, true
			}
		} else if invisible(r) && !belongs(previous, r) {
			return i, r, true
		} else if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i, r, true
			}
		}
		previous = r
	}
	return 0, 0, false
}

// belongs says whether r is a joiner or selector that changes how the character before it looks.
func belongs(previous, r rune) bool {
	switch r {
	case 0x200c, 0x200d, 0xfe0e, 0xfe0f:
		return previous >= utf8.RuneSelf && (!invisible(previous) || previous == 0xfe0f && r == 0x200d)
	default:
		return false
	}
}

func invisible(r rune) bool {
	const blankBraille = 0x2800
	return r == blankBraille || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point)
}

// turns says whether r changes the direction of text.
func turns(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }

// mixed says whether a name has letters of scripts that look alike, as no word of a language has.
func mixed(name string) bool {
	found := 0
	for _, script := range []*unicode.RangeTable{unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Cherokee} {
		for _, r := range name {
			if unicode.Is(script, r) {
				found++
				break
			}
		}
	}
	return found > 1
}
