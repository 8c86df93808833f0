package inspect

import (
	"strings"

	"github.com/stilehost/stile/internal/jslex"
)

// ImportOf is where a file of source imports a package: the place of its name, in bytes; -1 where nothing that is certain imports it.
// Comments, strings, templates and what looks like an import in an element of JSX import nothing.
func ImportOf(name, text, pkg string) int {
	if !isCode(name) {
		return -1
	}
	s := lex(name, text, isJSX(name))
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
