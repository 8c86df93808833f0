package extract

import (
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/jslex"
)

// reader tells whether a place in a text is inside a template or a comment. It is never certain, because the text may not be code at
// all.
type reader struct {
	lexer *jslex.Lexer
	token jslex.Token // the last one that was read
	more  bool
}

func newReader(text string) *reader { return &reader{lexer: jslex.New(text, false), more: true} }

// inText reports whether a line that begins at a place does so in a template or a comment. Call it for places in order.
func (r *reader) inText(at int) bool {
	for r.more && int(r.token.End) <= at {
		if r.token, r.more = r.lexer.Next(); !r.more {
			return false
		}
	}
	return r.more && int(r.token.Start) < at && (r.token.Kind == jslex.Template || r.token.Kind == jslex.Comment)
}

// ToolNames returns the names under which a source declares its tools, the keys in `extension({ tools: { ... } })`. It returns nil
// if not all are visible.
func ToolNames(source string) []string {
	next := tokens(source)
	if !declaration(next) {
		return nil
	}
	var names []string
	depth := 1 // of brackets; a key stands at 1, after "{" or ","
	key := true
	for t, text := next(); text != ""; {
		after, following := next()
		switch {
		case t.Opens && t.Kind == jslex.Mark:
			if key {
				return nil
			}
			depth++
		case t.Closes && t.Kind == jslex.Mark:
			if depth--; depth == 0 {
				return names
			}
		case depth == 1 && text == ",":
			key = true
		case depth == 1 && key:
			name := strings.Trim(text, `"'`)
			if !extension.IsToolName(name) || following != ":" && following != "," && following != "}" {
				return nil
			}
			names = append(names, name)
			key = false
		}
		t, text = after, following
	}
	return nil
}

// tokens reads the code of a source. The text of a token is empty behind the end.
func tokens(source string) func() (jslex.Token, string) {
	l := jslex.New(source, false)
	return func() (jslex.Token, string) {
		for {
			t, more := l.Next()
			if !more || t.Kind != jslex.Comment {
				return t, source[t.Start:t.End]
			}
		}
	}
}

// declaration reads up to the first key of the tools, if they are declared.
func declaration(next func() (jslex.Token, string)) bool {
	start := []string{"extension", "(", "{", "tools", ":", "{"}
	read := make([]string, len(start))
	for _, text := next(); text != ""; _, text = next() {
		if read = append(read[1:], text); slices.Equal(read, start) {
			return true
		}
	}
	return false
}
