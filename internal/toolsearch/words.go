package toolsearch

import (
	"encoding/json"
	"strings"
	"unicode"
)

// split splits a text into words in lower case, at most so many: at everything that is no letter or digit, and where lower case becomes
// upper case.
func split(text string, most int) (words []string) {
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	before, beforeThat := rune(0), rune(0)
	for i, r := range text {
		if len(words) >= most {
			return words
		}
		switch {
		case r == '\'' || r == '’': // "user's" is "users"
			continue
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsDigit(before)):
			end()
			word.WriteRune(unicode.ToLower(r))
		case unicode.IsLower(r) && unicode.IsUpper(before) && unicode.IsUpper(beforeThat) && word.Len() > 1 && !endsHere(text[i:]):
			last := word.String()
			word.Reset()
			word.WriteString(last[:len(last)-len(string(unicode.ToLower(before)))]) // HTTPServer is http server
			end()
			word.WriteRune(unicode.ToLower(before))
			word.WriteRune(r)
		default:
			word.WriteRune(unicode.ToLower(r))
		}
		before, beforeThat = r, before
		if word.Len() > 64 { // no word of a language, and nobody types it
			end()
		}
	}
	end()
	return words[:min(len(words), most)]
}

// endsHere reports whether a plural s ends a word, as in PRs.
func endsHere(rest string) bool {
	if !strings.HasPrefix(rest, "s") {
		return false
	}
	for _, r := range rest[1:] {
		return !unicode.IsLower(r)
	}
	return true
}

// Words returns the first words of a text, in lower case, as a search reads them. A negative number means all.
func Words(text string, most int) []string {
	if most < 0 {
		most = len(text)
	}
	return split(text, most)
}

// maxSchema is how many bytes of a schema are read for names.
const maxSchema = 64 << 10

// properties returns the names of the properties in a schema. It reads the text as tokens, because decoded schemas take much memory.
func properties(schema string) (names []string) {
	d := json.NewDecoder(strings.NewReader(schema[:min(len(schema), maxSchema)]))
	type level struct {
		object, names, key bool // whether it is an object, whose keys are names, and a key comes next
	}
	var at []level
	next := false // the value that comes next is that of "properties"
	for len(names) < 100 {
		token, err := d.Token()
		if err != nil {
			return names // it ends here, or was cut
		}
		top := len(at) - 1
		if s, is := token.(string); is && top >= 0 && at[top].object && at[top].key {
			at[top].key = false
			if at[top].names {
				names = append(names, s)
			}
			next = s == "properties" && !at[top].names
			continue
		}
		switch token {
		case json.Delim('{'):
			at = append(at, level{object: true, names: next, key: true})
		case json.Delim('['):
			at = append(at, level{})
		case json.Delim('}'), json.Delim(']'):
			at = at[:top]
			if top--; top >= 0 {
				at[top].key = true
			}
		default:
			if top >= 0 {
				at[top].key = true
			}
		}
		next = false
	}
	return names
}

// Stem returns a word without the endings that change its form and not what it is about. It is lighter than Porter's algorithm: it has to
// make the forms of a word equal, and may leave them ugly.
func Stem(word string) string {
	if len(word) < 4 || word[0] < 'a' || word[0] > 'z' {
		return word
	}
	w := word
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "uses") && len(w) > 5:
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	for _, e := range endings {
		if stem, ok := strings.CutSuffix(w, e.from); ok && len(stem) >= e.least {
			w = stem + e.to
			break
		}
	}
	if n := len(w); n > 3 && w[n-1] == w[n-2] && !strings.ContainsAny(w[n-1:], "aeiouls") {
		w = w[:n-1] // "running" is "run"
	}
	if len(w) > 3 {
		w = strings.TrimSuffix(w, "e") // "create" is "creat", as "creating" is
	}
	if n := len(w); n > 2 && w[n-1] == 'y' && !strings.ContainsAny(w[n-2:n-1], "aeiou") {
		w = w[:n-1] + "i"
	}
	return w
}

// endings are what words of one family differ by, the longest first.
var endings = []struct {
	from, to string
	least    int
}{
	{"izations", "iz", 3},
	{"ization", "iz", 3},
	{"isation", "iz", 3},
	{"ations", "at", 3},
	{"ation", "at", 3},
	{"itions", "it", 3},
	{"ition", "it", 4},
	{"ions", "", 4},
	{"ption", "b", 5},
	{"ion", "", 4},
	{"ements", "", 4},
	{"ement", "", 4},
	{"ments", "", 4},
	{"ment", "", 4},
	{"ings", "", 3},
	{"ing", "", 3},
	{"ated", "at", 3},
	{"ied", "y", 2},
	{"ed", "", 3},
	{"ally", "al", 3},
	{"able", "", 4},
	{"ers", "", 4},
	{"als", "", 4},
	{"al", "", 5},
	{"ly", "", 4},
}
