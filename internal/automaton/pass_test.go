package automaton

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var lineBreak = regexp.MustCompile(`\r?\n|(\\r)?\\n|(%0[dD])?%0[aA]`)

// plainly lists where the longest of texts begins that ends with each byte, or the byte's end.
func plainly(texts []string, text string) (starts []int) {
	spans := lineBreak.FindAllStringIndex(text, -1)
	for end := 1; end <= len(text); end++ {
		start := end
		for _, t := range texts {
			if strings.HasSuffix(text[:end], t) {
				start = min(start, end-len(t))
			}
			if len(t) >= minWrapped && text[end-1] == t[len(t)-1] {
				start = min(start, wrappedStart(t, text[:end], spans))
			}
		}
		starts = append(starts, start)
	}
	return starts
}

// wrappedStart is where the end of text begins that is t in lines; the end of text, if there is none.
func wrappedStart(t, text string, spans [][]int) int {
	at, last := len(text), -1
	for left := len(t); left > 0; {
		i := slices.IndexFunc(spans, func(s []int) bool { return s[1] == at })
		switch {
		case i >= 0 && left < len(t): // none behind t
			if last >= 0 && spans[last][0]-spans[i][1] < minColumns {
				return len(text)
			}
			at, last = spans[i][0], i
		case at > 0 && text[at-1] == t[left-1]:
			at--
			left--
		default:
			return len(text)
		}
	}
	// A short line in front of the first break takes what began in it.
	if i := last - 1; i >= 0 && spans[last][0]-spans[i][1] < minColumns {
		return len(text)
	}
	return at
}

func TestPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.SampledFrom([]rune("nAA")), 1, 40, -1)
		texts := rapid.SliceOfN(letters, 1, 3).Draw(t, "texts")
		var text strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "number") {
			part := rapid.SampledFrom(texts).Draw(t, "part")
			for width := rapid.IntRange(1, 30).Draw(t, "width"); len(part) > width; part = part[width:] {
				text.WriteString(part[:width] + rapid.SampledFrom(append(breaks, "\r", "%", `\`, `\r\`, "%0")).Draw(t, "break"))
			}
			text.WriteString(part)
		}
		want := plainly(texts, text.String())
		p := New(texts).Start()
		opens := []int{0}
		for i := range text.Len() {
			start, found := p.Next(text.String()[i])
			if start != want[i] || found != (start <= i) {
				t.Fatalf("%q in %q: %d begins at %d, want %d", texts, text.String(), i, start, want[i])
			}
			opens = append(opens, p.Open())
		}
		for i, start := range want { // all of it was held back until its end
			for before := start + 1; before <= i; before++ {
				if opens[before] > start {
					t.Fatalf("%q in %q: at %d what begins at %d was let go", texts, text.String(), before, start)
				}
			}
		}
	})
}
