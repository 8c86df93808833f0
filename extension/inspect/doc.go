package inspect

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/extension"
)

const maxDoc = 4096 // bytes

// doc is the content of a doc comment.
type doc struct {
	text       string            // up to the first tag
	parameters map[string]string // the texts of @param
	returns    string
	problem    *extension.Problem
}

// doc reads a doc comment. It refuses hidden characters, because people and models read the comment.
func (m *module) doc(at span) doc {
	d := doc{parameters: map[string]string{}}
	if at.end == 0 {
		return d
	}
	raw := m.text[at.start:at.end]
	if len(raw) > maxDoc {
		p := m.problem(int(at.start), fmt.Sprintf("the comment has %d bytes; %d are allowed, since it describes a tool to those who call it", len(raw), maxDoc), "a shorter one")
		d.problem = &p
		return d
	}
	if i, r, found := unseen(raw); found {
		p := m.problem(int(at.start)+i, fmt.Sprintf("the comment has the invisible character %+q", r), "only visible characters")
		d.problem = &p
		return d
	}
	blocks := []string{""}
	raw = strings.TrimSuffix(strings.TrimPrefix(raw, "/**"), "*/")
	for line := range strings.Lines(raw) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "*"))
		if strings.HasPrefix(line, "@") {
			blocks = append(blocks, "")
		}
		blocks[len(blocks)-1] += line + "\n"
	}
	d.text = strings.TrimSpace(blocks[0])
	for _, block := range blocks[1:] {
		tag, rest := cutSpace(block)
		switch tag {
		case "@param", "@arg", "@argument":
			name, text := cutSpace(afterType(rest))
			name, _, _ = strings.Cut(strings.Trim(name, "[]"), "=")
			d.parameters[name] = strings.TrimSpace(strings.TrimPrefix(text, "-"))
		case "@returns", "@return":
			d.returns = afterType(rest)
		}
	}
	return d
}

// cutSpace divides text at its first space.
func cutSpace(text string) (first, rest string) {
	i := strings.IndexAny(text, " \t\n")
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimSpace(text[i:])
}

// afterType skips a JSDoc type in braces.
func afterType(text string) string {
	if end := strings.IndexByte(text, '}'); end > 0 && text[0] == '{' {
		text = text[end+1:]
	}
	return strings.TrimSpace(text)
}
