package printable

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// defaultIgnorable is Default_Ignorable_Code_Point as DerivedCoreProperties.txt of Unicode derives it.
func defaultIgnorable(r rune) bool {
	if unicode.In(r, unicode.White_Space, unicode.Prepended_Concatenation_Mark) || r >= 0xfff9 && r <= 0xfffb || r >= 0x13430 && r <= 0x13440 {
		return false
	}
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector)
}

// All of Default_Ignorable_Code_Point, and whatever else is not seen, is escaped between letters, at the ends and by itself.
func TestHidden(t *testing.T) {
	ignorable := 0
	for r := rune(utf8.RuneSelf); r <= unicode.MaxRune; r++ {
		switch r {
		case 0xd800: // surrogates are no characters, as TestPrintable has it
			r = 0xe000
		case 0x40000: // nothing is assigned in these planes
			r = 0xe0000
		case 0xf0100: // private use
			r = 0x10fe00
		}
		want := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) || strings.ContainsRune("\u2800\ufffc\U00013441\U00013442\U00016fe4\U0001d159", r)
		if defaultIgnorable(r) {
			ignorable++
			want = true
		}
		if !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z) {
			want = true // unassigned, too
		}
		for _, in := range []string{string(r), "a" + string(r) + "b", "👩" + string(r) + "b", string(r) + "👩"} {
			selector := (r == textSelector || r == emojiSelector) && strings.HasPrefix(in, "👩")
			if got := hides(in); got != (want && !selector) {
				t.Fatalf("%+q: hides something: %v", in, got)
			}
			if p := Text(in); want && !selector && strings.ContainsRune(p, r) {
				t.Fatalf("%+q becomes %+q", in, p)
			}
		}
		if bad, found := Unclear("a" + string(r)); found != (want || unicode.IsSpace(r)) || found && bad != r {
			t.Fatalf("%+q is unclear: %v", r, found)
		}
	}
	if ignorable != 4174 { // as Unicode counts them, in all versions from 9.0 to 16.0
		t.Errorf("Default_Ignorable_Code_Point has %d", ignorable)
	}
}

// A letter keeps the marks that languages put on it. More of them, which would cover other lines, become escapes, and do not
// cover more in parts.
func TestPiles(t *testing.T) {
	const acute = "\u0301"
	eight := strings.Repeat(acute, 8)
	for in, want := range map[string]string{
		"Z" + eight:                                   "",
		"Z" + eight + "Z" + eight:                     "",
		"Z" + eight + acute:                           "Z" + eight + `\u0301`,
		"Z" + strings.Repeat(acute, 18):               "Z" + eight + `\u0301` + eight + `\u0301`,
		strings.Repeat("\u20dd", 9):                   strings.Repeat("\u20dd", 8) + `\u20dd`, // enclosing
		"क" + strings.Repeat("\u094d", 9):             "क" + strings.Repeat("\u094d", 8) + `\u094d`,
		"क" + strings.Repeat("\u094d\u200d", 9) + "क": "क" + strings.Repeat("\u094d\u200d", 7) + "\u094d" + `\u200d` + "\u094d\u200dक",
		"ཧྐྵྨླྺྼྻྂ":                                   "", // eight on a letter
		"שָׁ֑לוֹם กี่ Ệ̂ é⃣":                          "",
	} {
		if want == "" {
			want = in
		}
		got := Text(in)
		if got != want || Text(got) != got {
			t.Errorf("%+q becomes %+q, not %+q", in, got, want)
		}
		if _, found := Unclear(in); found != (in != want || strings.ContainsRune(in, joiner)) {
			t.Errorf("%+q is unclear: %v", in, found)
		}
	}
}

// Joiners and selectors stay where they change what is seen, and nowhere else.
func TestJoiners(t *testing.T) {
	for in, want := range map[string]string{
		"👩\u200d❤\ufe0f\u200d👨":           "",
		"🧑🏽\u200d🚀":                       "",
		"🏳\ufe0f\u200d🌈":                  "",
		"🙂\u200d↔\ufe0f":                  "",
		"1\ufe0f\u20e3":                   "",
		"⚠\ufe0f ⚠\ufe0e ‼\ufe0f ™\ufe0f": "",
		"می\u200cخواهم":                   "",
		"क्\u200dष क्\u200cष":             "",
		"ශ්\u200dරී":                      "",
		"a\u200db":                        `a\u200db`,
		"a\u200cb":                        `a\u200cb`,
		"👩\u200d":                         `👩\u200d`,
		"👩\u200d\u200d👩":                  `👩\u200d\u200d👩`,
		"👩\u200da":                        `👩\u200da`,
		"👩\u200c👩":                        `👩\u200c👩`,
		"👩\ufe0f\ufe0f":                   "👩\ufe0f" + `\ufe0f`,
		"1\ufe0f":                         `1\ufe0f`,
		"a\ufe0f":                         `a\ufe0f`,
		"日\U000e0100本":                    `日\U000e0100本`,
		"م\u200c":                         `م\u200c`,
		"م\u200c\u200cم":                  `م\u200c\u200cم`,
		"\u200cم":                         `\u200cم`,
		"\ufe0f\u200d👩":                   `\ufe0f\u200d👩`,
		"\u2800\ufe0f":                    `\u2800\ufe0f`,
		"👩\U000e0067\U000e007f":           `👩\U000e0067\U000e007f`,
		"\xff\ufe0f":                      `\xff\ufe0f`,
		"\xff\u200d\xff":                  `\xff\u200d\xff`,
	} {
		if want == "" {
			want = in
		}
		if got := Text(in); got != want || Text(got) != got {
			t.Errorf("%+q: got %+q, want %+q", in, got, want)
		}
	}
	for name, want := range map[string]bool{"tool.ts": false, "größe": false, "a b": false, "a\u00a0b": true, "a\u3000b": true, "👩\u200d💻": true, "a\xffb": true, "a\tb": true, "a\n": true} {
		if _, found := Unclear(name); found != want {
			t.Errorf("%+q: %v", name, found)
		}
	}
}
