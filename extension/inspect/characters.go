package inspect

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/printable"
)

// unseen finds the first hidden character, as [printable.NextHidden] defines it. The end of a line may be CR LF.
func unseen(text string) (at int, r rune, found bool) {
	for from := 0; ; {
		at, size := printable.NextHidden(text, from)
		if at < 0 {
			return 0, 0, false
		}
		from = at + size
		if r, _ = utf8.DecodeRuneInString(text[at:]); r != '\r' || !strings.HasPrefix(text[from:], "\n") {
			return at, r, true
		}
	}
}

// turns reports whether r changes the direction of text.
func turns(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }

// mixed reports whether a name mixes letters of scripts that look alike, as no word of a language does.
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
