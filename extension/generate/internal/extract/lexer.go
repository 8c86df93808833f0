package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// lexer reads TypeScript line by line, well enough to say two things: whether a line begins inside a template or comment,
// and how brackets match. It is sure of neither, as what it reads may not be code at all.
type lexer struct {
	comment bool
	// open are the brackets that wait for their end: ` is a template, $ an expression in one.
	open []byte
	// value says that the token before ends a value, after which a slash divides.
	value bool
}

// token is a word, a string (with its quotes), a template (one for all of its text), or one other character.
type token struct {
	kind tokenKind
	text string
}

type tokenKind int

const (
	wordToken tokenKind = iota
	stringToken
	otherToken
)

// inText reports whether the next line begins in a template or a comment.
func (l *lexer) inText() bool {
	return l.comment || len(l.open) > 0 && l.open[len(l.open)-1] == '`'
}

// line reads a line, and gives its tokens to found, which may be nil.
func (l *lexer) line(s string, found func(token)) {
	emit := func(kind tokenKind, text string, value bool) {
		l.value = value
		if found != nil {
			found(token{kind, text})
		}
	}
	for at := 0; at < len(s); {
		rest := s[at:]
		c := rest[0]
		switch {
		case l.comment:
			end := strings.Index(rest, "*/")
			if end < 0 {
				return
			}
			l.comment = false
			at += end + 2
		case l.inText():
			at += l.template(rest)
			if !l.inText() && s[at-1] == '`' {
				emit(stringToken, "`", true)
			}
		case c <= ' ':
			at++
		case strings.HasPrefix(rest, "//"):
			return
		case strings.HasPrefix(rest, "/*"):
			l.comment = true
			at += 2
		case c == '"' || c == '\'':
			end := quoted(rest, c)
			emit(stringToken, rest[:end], true)
			at += end
		case c == '/' && !l.value:
			at += regularExpression(rest)
			emit(otherToken, "/", true)
		case isWord(c):
			end := strings.IndexFunc(rest, func(r rune) bool { return r < utf8.RuneSelf && !isWord(byte(r)) })
			if end < 0 {
				end = len(rest)
			}
			emit(wordToken, rest[:end], !slices.Contains(beforeValue, rest[:end]))
			at += end
		case c == '`':
			l.open = append(l.open, '`')
			at++
		default:
			l.bracket(c)
			at++
			emit(otherToken, rest[:1], c == ')' || c == ']' || c == '}')
		}
	}
}

// template skips text of a template, up to its end or an expression in it.
func (l *lexer) template(s string) int {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '`':
			l.open = l.open[:len(l.open)-1]
			return i + 1
		case strings.HasPrefix(s[i:], "${"):
			l.open = append(l.open, '$')
			l.value = false
			return i + 2
		}
	}
	return len(s)
}

// bracket opens a bracket, or closes the last one whatever its kind: code that is wrong is for others to complain about.
func (l *lexer) bracket(c byte) {
	switch c {
	case '(', '[', '{':
		l.open = append(l.open, c)
	case ')', ']', '}':
		if len(l.open) > 0 {
			l.open = l.open[:len(l.open)-1]
		}
	}
}

// quoted is the length of a string, which ends with its line at the latest.
func quoted(s string, quote byte) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return len(s)
}

// regularExpression is the length of one, or 1 if it does not end in its line.
func regularExpression(s string) int {
	class := false
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				return i + 1
			}
		}
	}
	return 1
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}

// beforeValue are words after which a value begins, so that a slash there is a regular expression.
var beforeValue = strings.Fields("return typeof case in of delete void throw new else do yield await instanceof default")

// ToolNames are the names under which a source declares its tools, the keys in `extension({ tools: { ... } })`; nil when
// they do not all show.
func ToolNames(source string) []string {
	var l lexer
	var tokens []token
	for line := range strings.Lines(source) {
		l.line(line, func(t token) { tokens = append(tokens, t) })
	}
	at := declaration(tokens)
	if at < 0 {
		return nil
	}
	var names []string
	depth := 1 // of brackets; a key stands at 1, after "{" or ","
	for key := true; at < len(tokens); at++ {
		t := tokens[at]
		switch {
		case t.kind == otherToken && strings.Contains("([{", t.text):
			if key {
				return nil
			}
			depth++
		case t.kind == otherToken && strings.Contains(")]}", t.text):
			if depth--; depth == 0 {
				return names
			}
		case depth == 1 && t.text == ",":
			key = true
		case depth == 1 && key:
			name := strings.Trim(t.text, `"'`)
			if !toolName.MatchString(name) || at+1 == len(tokens) || !strings.Contains(":,}", tokens[at+1].text) {
				return nil
			}
			names = append(names, name)
			key = false
		}
	}
	return nil
}

var toolName = lazyregexp.New(`^[a-z][a-z0-9_]{0,63}$`)

// declaration is where the first key of the tools stands, or -1.
func declaration(tokens []token) int {
	start := []string{"extension", "(", "{", "tools", ":", "{"}
	for i := range len(tokens) - len(start) + 1 {
		if slices.EqualFunc(tokens[i:i+len(start)], start, func(t token, text string) bool { return t.text == text }) {
			return i + len(start)
		}
	}
	return -1
}
