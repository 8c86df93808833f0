package printable

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NextHidden finds the first text in s, from a position on, that a reader does not see or that a terminal acts on: invalid UTF-8,
// carriage returns, control characters, characters without a glyph in Unicode's tables (format characters, private use, unassigned),
// all of Default_Ignorable_Code_Point, characters that are drawn blank, and each mark after [maxMarks] on one letter, because piles
// of marks cover the lines above and below. size is its length in bytes. at is -1 if there is none.
//
// Line feeds, tabs and spaces are not hidden. Joiners and selectors
// are not hidden where they change the visible text: in emoji, and
// between letters of scripts whose spelling needs them. The text before from has no influence, because it was found to be hidden.
func NextHidden(s string, from int) (at, size int) {
	marks := 0
	for i := from; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			marks = 0
			if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
				return i, 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || hidden(r) && (marks == maxMarks || !belongs(s[from:], i-from, r, size)) {
			return i, size
		}
		if marks = pile(marks, r); marks > maxMarks {
			return i, size
		}
		i += size
	}
	return -1, 0
}

// NextUnseen finds the first character in a line of text that a reader does not see, or that is a line feed or tab. It returns -1 if
// there is none.
func NextUnseen(line string) int {
	at, _ := NextHidden(line, 0)
	if feed := strings.IndexAny(line, "\n\t"); at < 0 || feed >= 0 && feed < at {
		return feed
	}
	return at
}

// maxMarks is how many marks a letter can have above, below and around it. A Tibetan stack has eight.
const maxMarks = 8

// pile counts the marks on one letter, given how many there were before r.
func pile(marks int, r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return marks + 1
	case r == joiner || r == nonJoiner: // it takes no room and separates nothing
		return marks
	}
	return 0
}

// Unclear finds the first character that could make a name look like another one: hidden characters, even in emoji, piles of marks,
// and all white space except the space itself.
func Unclear(name string) (r rune, found bool) {
	marks := 0
	for i, r := range name {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(name[i:]); size == 1 {
				return r, true
			}
		}
		if marks = pile(marks, r); marks > maxMarks || hidden(r) || r != ' ' && unicode.IsSpace(r) {
			return r, true
		}
	}
	return 0, false
}

// blank are graphic characters that fonts draw as nothing: BRAILLE PATTERN BLANK, OBJECT REPLACEMENT CHARACTER, two blank hieroglyphs, KHITAN
// SMALL SCRIPT FILLER and MUSICAL SYMBOL NULL NOTEHEAD.
var blank = []rune{0x2800, 0xfffc, 0x13441, 0x13442, 0x16fe4, 0x1d159}

// hidden reports whether a character by itself is invisible or misleading.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	}
	return !unicode.IsGraphic(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || slices.Contains(blank, r)
}

const (
	nonJoiner     = 0x200c
	joiner        = 0x200d
	textSelector  = 0xfe0e
	emojiSelector = 0xfe0f
	keycap        = 0x20e3
)

// belongs reports whether the hidden character r of s changes how its neighbours look, as in emoji and several scripts.
func belongs(s string, at int, r rune, size int) bool {
	previous, n := utf8.DecodeLastRuneInString(s[:at])
	next, _ := utf8.DecodeRuneInString(s[at+size:])
	switch r {
	case textSelector, emojiSelector:
		return pictographic(previous) || strings.ContainsRune("#*0123456789", previous) && next == keycap
	case joiner, nonJoiner:
		if joins(previous) && joins(next) {
			return true
		}
		if previous == emojiSelector {
			previous, _ = utf8.DecodeLastRuneInString(s[:at-n])
		}
		return r == joiner && pictographic(previous) && pictographic(next)
	default:
		return false
	}
}

// pictographic reports whether r can be part of an emoji: a symbol, one of the few other characters, or a skin tone.
func pictographic(r rune) bool {
	return r != utf8.RuneError && (unicode.Is(unicode.So, r) && !hidden(r) || r >= 0x1f3fb && r <= 0x1f3ff || strings.ContainsRune("‼⁉ℹ↔〰", r))
}

// joins reports whether r is a letter, or a mark on one, of a script whose spelling needs joiners.
func joins(r rune) bool {
	return !hidden(r) && unicode.In(r, unicode.Letter, unicode.Mark) && unicode.In(r,
		unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
		unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar)
}
