package inspect

import (
	"strings"

	"github.com/stilehost/stile/internal/jslex"
)

// ImportOf returns where a source file imports a package: the offset of its name in bytes, or -1 if no import is certain. It ignores
// comments, strings, templates and anything in a JSX element that looks like an import.
func ImportOf(name, text, pkg string) int {
	if !jslex.IsCode(name) {
		return -1
	}
	s := lex(name, text, jslex.IsJSX(name))
	is := func(i int, of ...string) bool {
		for _, text := range of {
			if i >= 0 && s.text[s.tokens[i].start:s.tokens[i].end] == text {
				return true
			}
		}
		return false
	}
	for i, t := range s.tokens {
		if s.unclear != "" && int(t.start) >= s.unclearAt {
			break
		}
		if t.kind != jslex.String {
			continue
		}
		by := i - 1
		if is(by, "(") {
			if by--; !is(by, "import", "require") {
				continue
			}
		} else if !is(by, "from", "import") {
			continue
		}
		if s.tokens[by].kind != jslex.Word || is(by-1, ".", "?.") {
			continue
		}
		specifier := s.text[t.start+1 : max(t.start+1, t.end-1)]
		if specifier == pkg || strings.HasPrefix(specifier, pkg+"/") {
			return int(t.start) + 1
		}
	}
	return -1
}
